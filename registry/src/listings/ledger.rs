//! What may be stored, judged the same for every store: versions, quotas, places in the log.

use std::collections::{BTreeMap, HashMap};

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;

use super::{NewListing, Origin, Put, Reviewed, StoredListing, Trail, Verdict, listing_id};
use crate::limits::DELETED_PER_LISTING;

/// Where the log stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LogState {
    /// The last change.
    pub(crate) change_seq: u64,
    /// The last number that a listing was given.
    pub(crate) number: u64,
}

/// How much an agent has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Holding {
    /// Listings.
    pub(crate) live: u64,
    /// Tombstones.
    pub(crate) deleted: u64,
}

/// All that has to be known of what is stored in order to judge some changes, and what it is after them.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) log: LogState,
    /// By the hub's id.
    pub(crate) rows: BTreeMap<String, StoredListing>,
    pub(crate) holdings: HashMap<Did, Holding>,
}

impl Ledger {
    /// Judges a version and, if it is good, has it.
    pub(crate) fn put(&mut self, new: &NewListing, max_per_agent: u32, now: Timestamp) -> Put {
        let id = listing_id(&new.agent, &new.listing_id);
        let stored = self.rows.get(&id);
        if let Some(stored) = stored {
            if stored.deleted == new.deleted && stored.digest == new.digest {
                return Put::Unchanged(stored.clone());
            }
            // Who hands in asked before whether the agent has signed it; it may have done so since.
            let is_the_agents = stored.origin == Origin::Signed && new.origin != Origin::Signed;
            if new.version <= stored.version || is_the_agents {
                let version = stored.version;
                return Put::Conflict { version };
            }
        }
        let holding = self.holdings.entry(new.agent.clone()).or_default();
        let was_deleted = stored.map(|stored| stored.deleted);
        let Some(after) = holding.after(was_deleted, new.deleted, max_per_agent) else {
            return Put::TooMany { max: max_per_agent };
        };
        *holding = after;
        let trail = Trail::after(stored, new, whole_millis(now));
        let number = stored.map(|stored| stored.number);
        let number = number.unwrap_or_else(|| self.log.next_number());
        let listing = StoredListing {
            trail,
            ..stored_listing(id.clone(), number, self.log.next_change(), new, now)
        };
        self.rows.insert(id, listing.clone());
        let is_new = !new.deleted && was_deleted != Some(false);
        Put::Stored { listing, is_new }
    }
}

impl Ledger {
    /// Has what an operator decided, or only a new place in the log.
    pub(crate) fn review(&mut self, id: &str, version: Option<u64>, verdict: Option<Verdict>) -> Reviewed {
        let Some(stored) = self.rows.get_mut(id).filter(|stored| !stored.deleted) else {
            return Reviewed::Unknown;
        };
        if version.is_some_and(|version| version != stored.version) {
            return Reviewed::OtherVersion {
                version: stored.version,
            };
        }
        if verdict.is_some_and(|verdict| !stored.judge(verdict)) {
            return Reviewed::Unknown;
        }
        stored.change_seq = self.log.next_change();
        Reviewed::Done(Box::new(stored.clone()))
    }
}

impl LogState {
    pub(crate) fn next_change(&mut self) -> u64 {
        self.change_seq += 1;
        self.change_seq
    }

    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }
}

impl Holding {
    /// What it is after a row that was live, deleted or not there becomes live or deleted; `None` if that is too much. What
    /// is there can always be replaced and taken away.
    fn after(self, was_deleted: Option<bool>, is_deleted: bool, max: u32) -> Option<Self> {
        let max = u64::from(max);
        let is_row_new = was_deleted.is_none();
        if is_row_new && self.live + self.deleted >= max * (1 + u64::from(DELETED_PER_LISTING)) {
            return None;
        }
        let is_one_more = !is_deleted && was_deleted != Some(false);
        if is_one_more && self.live >= max {
            return None;
        }
        let mut after = self;
        match was_deleted {
            Some(true) => after.deleted = after.deleted.saturating_sub(1),
            Some(false) => after.live = after.live.saturating_sub(1),
            None => {}
        }
        if is_deleted {
            after.deleted += 1;
        } else {
            after.live += 1;
        }
        Some(after)
    }
}

/// As times are kept.
fn whole_millis(time: Timestamp) -> Timestamp {
    Timestamp::from_unix_millis(time.unix_millis())
}

fn stored_listing(
    id: String,
    number: u64,
    change_seq: u64,
    new: &NewListing,
    now: Timestamp,
) -> StoredListing {
    let (json, flags, expires_at) = if new.deleted {
        (Vec::new(), Vec::new(), None)
    } else {
        (
            new.json.clone(),
            new.flags.clone(),
            new.expires_at.map(whole_millis),
        )
    };
    StoredListing {
        id,
        number,
        agent: new.agent.clone(),
        listing_id: new.listing_id.clone(),
        version: new.version,
        deleted: new.deleted,
        json,
        digest: new.digest,
        origin: new.origin.clone(),
        flags,
        change_seq,
        stored_at: whole_millis(now),
        expires_at,
        trail: Trail::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_signed_is_replaced_by_what_it_signs_only() {
        let version = |number: u8, provider: Option<&str>| NewListing {
            agent: Did::parse("did:aip:hub.example:shop").expect("a DID"),
            listing_id: "a".to_owned(),
            version: number.into(),
            deleted: false,
            json: b"{}".to_vec(),
            digest: [number; 32],
            origin: provider.map_or(Origin::Signed, |provider| Origin::Ingested {
                provider: provider.to_owned(),
            }),
            flags: Vec::new(),
            expires_at: None,
        };
        let mut ledger = Ledger::default();
        let mut put = |new: NewListing| ledger.put(&new, 10, Timestamp::UNIX_EPOCH);
        assert!(matches!(put(version(1, Some("feed"))), Put::Stored { .. }));
        assert!(matches!(put(version(2, None)), Put::Stored { .. }));
        assert_eq!(put(version(9, Some("feed"))), Put::Conflict { version: 2 });
        assert!(matches!(put(version(3, None)), Put::Stored { .. }));
    }
}
