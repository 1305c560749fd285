//! A model of the store of listings, written from its contract, against the stores: what each call answers, and what somebody
//! knows who follows the log.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use aip_registry::listings::{NewListing, Put, StoredListing, listing_id};
use aip_registry::testsuite::fixtures::at;
use aip_registry::testsuite::listings::{deletion, did, version};
use aip_registry::{Listings, MemoryStore};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::place::Place;

/// What is done. Small numbers, so that listings and versions meet.
#[derive(Debug, Clone)]
enum Step {
    Put(Vec<Version>, u32),
    Remove(u8),
    Touch(u8),
    Forget(i64, u32),
    Follow(u32),
}

#[derive(Debug, Clone)]
struct Version {
    agent: u8,
    listing: u8,
    number: u64,
    flavour: u8,
    is_deletion: bool,
}

impl Version {
    fn new_listing(&self) -> NewListing {
        let (agent, listing) = (self.agent.to_string(), self.listing.to_string());
        if self.is_deletion {
            deletion(&agent, &listing, self.number)
        } else {
            version(&agent, &listing, self.number, &self.flavour.to_string())
        }
    }
}

fn a_version() -> impl Strategy<Value = Version> {
    (0_u8..3, 0_u8..4, 0_u64..6, 0_u8..3, prop::bool::weighted(0.3)).prop_map(
        |(agent, listing, number, flavour, is_deletion)| Version {
            agent,
            listing,
            number,
            flavour,
            is_deletion,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (vec(a_version(), 1..6), 1_u32..4).prop_map(|(versions, max)| Step::Put(versions, max)),
        1 => (0_u8..3).prop_map(Step::Remove),
        1 => (0_u8..3).prop_map(Step::Touch),
        1 => (0_i64..60, 1_u32..4).prop_map(|(secs, limit)| Step::Forget(secs, limit)),
        4 => (1_u32..5).prop_map(Step::Follow),
    ]
}

/// What the contract says.
#[derive(Debug, Default)]
struct Model {
    rows: BTreeMap<String, Row>,
    change: u64,
    number: u64,
    forgotten: u64,
}

#[derive(Debug, Clone)]
struct Row {
    said: NewListing,
    version: u64,
    is_deleted: bool,
    number: u64,
    change: u64,
    secs: i64,
}

/// What came of a version, in a form that model and store have in common: the place in the log and the number, or why not.
#[derive(Debug, PartialEq)]
enum Answer {
    Stored(u64, u64, bool),
    Unchanged(u64),
    Conflict(u64),
    TooMany,
}

impl Model {
    fn of_agent(&self, agent: u8) -> impl Iterator<Item = &Row> {
        let agent = did(&agent.to_string());
        self.rows.values().filter(move |row| row.said.agent == agent)
    }

    fn put(&mut self, given: &Version, max: u32, secs: i64) -> Answer {
        let new = given.new_listing();
        let id = listing_id(&new.agent, &new.listing_id);
        let (rows, live) = (
            self.of_agent(given.agent).count(),
            self.of_agent(given.agent).filter(|row| !row.is_deleted).count(),
        );
        let (max, held) = (max as usize, self.rows.get(&id).cloned());
        let was_live = held.as_ref().is_some_and(|held| !held.is_deleted);
        if let Some(held) = &held {
            if held.said.digest == new.digest && held.is_deleted == new.deleted {
                return Answer::Unchanged(held.change);
            }
            if held.version >= new.version {
                return Answer::Conflict(held.version);
            }
        }
        // Four tombstones for each listing that it may have.
        if held.is_none() && rows >= 5 * max || !new.deleted && !was_live && live >= max {
            return Answer::TooMany;
        }
        let number = held.map_or_else(
            || {
                self.number += 1;
                self.number
            },
            |held| held.number,
        );
        self.change += 1;
        let row = Row {
            version: new.version,
            is_deleted: new.deleted,
            said: new,
            number,
            change: self.change,
            secs,
        };
        let is_new = !row.is_deleted && !was_live;
        self.rows.insert(id, row);
        Answer::Stored(self.change, number, is_new)
    }

    fn move_up(&mut self, agent: u8, removed_at: Option<i64>) -> u64 {
        let (agent, before) = (did(&agent.to_string()), self.change);
        for row in self
            .rows
            .values_mut()
            .filter(|row| row.said.agent == agent && !row.is_deleted)
        {
            self.change += 1;
            row.change = self.change;
            if let Some(secs) = removed_at {
                (row.is_deleted, row.secs) = (true, secs);
            }
        }
        self.change - before
    }

    fn forget(&mut self, secs: i64, limit: u32) -> u64 {
        let mut old: Vec<_> = self
            .rows
            .values()
            .filter(|row| row.is_deleted && row.secs < secs)
            .collect();
        old.sort_by_key(|row| row.change);
        let Some(last) = old.iter().take(limit as usize).map(|row| row.change).next_back() else {
            return 0;
        };
        let before = self.rows.len();
        self.rows.retain(|_, row| !row.is_deleted || row.change > last);
        self.forgotten = last;
        (before - self.rows.len()) as u64
    }

    /// Whether a row of a store says the same.
    fn agrees(&self, stored: &StoredListing) -> bool {
        self.rows.get(&stored.id).is_some_and(|row| {
            let has_text = (stored.json == row.said.json) || row.is_deleted && stored.json.is_empty();
            has_text
                && (stored.number, stored.change_seq) == (row.number, row.change)
                && (stored.version, stored.deleted) == (row.version, row.is_deleted)
                && stored.digest == row.said.digest
        })
    }
}

fn answer(put: &Put) -> Answer {
    match put {
        Put::Stored { listing, is_new } => Answer::Stored(listing.change_seq, listing.number, *is_new),
        Put::Unchanged(listing) => Answer::Unchanged(listing.change_seq),
        Put::Conflict { version } => Answer::Conflict(*version),
        Put::TooMany { .. } => Answer::TooMany,
    }
}

/// Somebody who knows only what the log says.
#[derive(Debug, Default)]
struct Follower {
    live: BTreeMap<String, StoredListing>,
    after: u64,
    /// What was forgotten before it began.
    forgotten: u64,
}

impl Follower {
    /// Takes a page, and begins anew where the log is not whole any more. Says whether there was anything.
    async fn follow<S: Listings>(&mut self, store: &S, limit: u32) -> bool {
        if self.after == 0 {
            self.forgotten = store.complete_from().await.expect("read");
        }
        let page = store.changes(self.after, limit).await.expect("read");
        if store.complete_from().await.expect("read") > self.after.max(self.forgotten) {
            *self = Self::default();
            return true;
        }
        for row in &page {
            assert!(row.change_seq > self.after);
            self.after = row.change_seq;
            if row.deleted {
                self.live.remove(&row.id);
            } else {
                self.live.insert(row.id.clone(), row.clone());
            }
        }
        !page.is_empty()
    }
}

/// Does all steps to the model and to the store, and compares.
async fn compare<S: Listings>(steps: Vec<Step>, store: &S) -> Result<(), TestCaseError> {
    let (mut model, mut follower) = (Model::default(), Follower::default());
    for (step, secs) in steps.into_iter().zip(0_i64..) {
        match step {
            Step::Put(versions, max) => {
                let new: Vec<_> = versions.iter().map(Version::new_listing).collect();
                let puts = store.put_many(&new, max, at(secs)).await.expect("answered");
                let expected: Vec<_> = versions
                    .iter()
                    .map(|version| model.put(version, max, secs))
                    .collect();
                prop_assert_eq!(puts.iter().map(answer).collect::<Vec<_>>(), expected);
            }
            Step::Remove(agent) => {
                let removed = store
                    .remove_of(&did(&agent.to_string()), at(secs))
                    .await
                    .expect("answered");
                prop_assert_eq!(removed, model.move_up(agent, Some(secs)));
            }
            Step::Touch(agent) => {
                let touched = store.touch_of(&did(&agent.to_string())).await.expect("answered");
                prop_assert_eq!(touched, model.move_up(agent, None));
            }
            Step::Forget(before, limit) => {
                let forgotten = store.forget_deleted(at(before), limit).await.expect("answered");
                prop_assert_eq!(forgotten, model.forget(before, limit));
            }
            Step::Follow(limit) => drop(follower.follow(store, limit).await),
        }
        prop_assert_eq!(store.latest_change().await.expect("read"), model.change);
        prop_assert_eq!(store.complete_from().await.expect("read"), model.forgotten);
    }
    let all = store.changes(0, 1_000).await.expect("read");
    prop_assert!(all.is_sorted_by(|a, b| a.change_seq < b.change_seq));
    prop_assert_eq!(all.len(), model.rows.len());
    prop_assert!(all.iter().all(|row| model.agrees(row)), "{:?} {:?}", all, model);
    let counts = store.count_listings().await.expect("read");
    let live: Vec<_> = all.iter().filter(|row| !row.deleted).cloned().collect();
    prop_assert_eq!(
        (counts.live, counts.deleted),
        (live.len() as u64, (all.len() - live.len()) as u64)
    );
    while follower.follow(store, 3).await {}
    let live: BTreeMap<_, _> = live.into_iter().map(|row| (row.id.clone(), row)).collect();
    prop_assert_eq!(&follower.live, &live, "who followed knows what there is");
    for agent in 0..3 {
        let agent = did(&agent.to_string());
        let listed = store.of_agent(&agent, None, 100).await.expect("read");
        let own: Vec<_> = live.values().filter(|row| row.agent == agent).cloned().collect();
        prop_assert_eq!(listed, own);
    }
    Ok(())
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().expect("a runtime").block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn memory_does_what_the_model_says(steps in vec(step(), 1..60)) {
        block_on(compare(steps, &MemoryStore::new()))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_does_what_the_model_says(steps in vec(step(), 1..40)) {
        block_on(async {
            let place = Place::sqlite();
            let store = place.open().await;
            compare(steps, &store).await?;
            let problems = store.check_integrity().await.expect("checked");
            prop_assert_eq!(problems, Vec::<String>::new());
            store.close().await;
            Ok::<_, TestCaseError>(())
        })?;
    }

    #[test]
    fn postgres_does_what_the_model_says(steps in vec(step(), 1..40)) {
        static PLACE: LazyLock<Place> = LazyLock::new(Place::postgres);
        block_on(async {
            let store = PLACE.open().await;
            PLACE.damage("TRUNCATE listings, listing_owners; \
                UPDATE listing_log SET change_seq = 0, number = 0, forgotten_seq = 0").await;
            compare(steps, &store).await?;
            let problems = store.check_integrity().await.expect("checked");
            prop_assert_eq!(problems, Vec::<String>::new());
            store.close().await;
            Ok::<_, TestCaseError>(())
        })?;
    }
}
