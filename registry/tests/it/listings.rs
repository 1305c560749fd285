//! Listings where several processes write to one database, and where one is damaged or moved.

use std::sync::Arc;

use aip_registry::listings::Put;
use aip_registry::testsuite::fixtures::{at, newcomer};
use aip_registry::testsuite::listings::{deletion, did, stored, version};
use aip_registry::{Directory, Listings};
use tokio::task::JoinSet;

use crate::place::{Place, on_both_engines};

const MANY: u32 = 10_000;

on_both_engines!(
    on two threads:
    who_follows_several_processes_misses_nothing,
    several_processes_do_not_pass_the_measure_together,
    what_cannot_be_stored_takes_no_other_with_it,
    a_wrong_count_is_found_by_the_integrity_check,
    a_registry_without_listings_gets_them,
    a_copy_forgets_what_the_original_forgot,
    a_copy_keeps_what_it_has_when_it_is_ahead,
);

/// Every place of the log is taken by one listing, once. So whoever has seen a place has seen all before it, at every moment.
async fn who_follows_several_processes_misses_nothing(place: Place) {
    const PROCESSES: usize = 4;
    const LISTINGS: usize = 60;
    let reader = place.open().await;
    let mut writers = JoinSet::new();
    for process in 0..PROCESSES {
        let store = Arc::new(place.open().await);
        for writer in 0..3 {
            let store = Arc::clone(&store);
            writers.spawn(async move {
                let agent = format!("agent-{process}-{writer}");
                for n in 0..LISTINGS / 3 {
                    let new = [
                        version(&agent, &format!("{n}"), 1, "x"),
                        version(&agent, &format!("{n}+"), 1, "x"),
                    ];
                    let puts = store
                        .put_many(&new[..=(n % 2)], MANY, at(0))
                        .await
                        .expect("stored");
                    assert!(puts.iter().all(|put| matches!(put, Put::Stored { .. })));
                }
            });
        }
    }
    let expected = (PROCESSES * LISTINGS * 3 / 2) as u64;
    let mut after = 0;
    while after < expected {
        let is_over = writers.is_empty();
        let page = reader.changes(after, 50).await.expect("read");
        assert!(!is_over || !page.is_empty(), "the log ends at {after}");
        for row in &page {
            assert_eq!(row.change_seq, after + 1, "a place was passed over");
            after = row.change_seq;
        }
        while let Some(ended) = writers.try_join_next() {
            ended.expect("written");
        }
        tokio::task::yield_now().await;
    }
    writers.join_all().await;
    assert_eq!(reader.latest_change().await.expect("read"), expected);
    let problems = reader.check_integrity().await.expect("checked");
    assert_eq!(problems, Vec::<String>::new());
}

async fn several_processes_do_not_pass_the_measure_together(place: Place) {
    let mut writers = JoinSet::new();
    for n in 0..12 {
        let store = place.open().await;
        writers.spawn(async move {
            store
                .put(&version("shop", &n.to_string(), 1, "x"), 5, at(0))
                .await
        });
    }
    let puts = writers.join_all().await;
    let is_stored = |put: &&Result<Put, _>| matches!(put, Ok(Put::Stored { .. }));
    assert_eq!(puts.iter().filter(is_stored).count(), 5, "{puts:?}");
    let store = place.open().await;
    assert_eq!(
        store.of_agent(&did("shop"), None, 100).await.expect("read").len(),
        5
    );
}

/// Calls that wait together share their statements and their commit, not their fate.
async fn what_cannot_be_stored_takes_no_other_with_it(place: Place) {
    let store = place.open().await;
    let puts = (0..20).map(|n| {
        let mut new = version("shop", &n.to_string(), 1, "x");
        if n == 7 {
            new.json = vec![0xff];
        }
        let store = &store;
        async move { store.put(&new, MANY, at(0)).await }
    });
    let puts = futures_util::future::join_all(puts).await;
    let failed: Vec<_> = (0..)
        .zip(&puts)
        .filter(|(_, put)| put.is_err())
        .map(|(n, _)| n)
        .collect();
    assert_eq!(failed, [7]);
    assert_eq!(
        store.of_agent(&did("shop"), None, 100).await.expect("read").len(),
        19
    );
    assert_eq!(store.latest_change().await.expect("read"), 19);
    assert!(store.commits() < 19, "they share commits");
}

async fn a_wrong_count_is_found_by_the_integrity_check(place: Place) {
    let store = place.open().await;
    stored(store.put(&version("shop", "a", 1, "x"), MANY, at(0)).await);
    stored(store.put(&version("shop", "b", 1, "x"), MANY, at(0)).await);
    let check = async || store.check_integrity().await.expect("checked");
    assert_eq!(check().await, Vec::<String>::new());
    place.damage("UPDATE listing_owners SET live = 7").await;
    assert_eq!(
        check().await,
        ["the listings of did:aip:hub.example:shop are not as many as were counted"]
    );
    place
        .damage("UPDATE listing_owners SET live = 2; UPDATE listing_log SET change_seq = 1")
        .await;
    let found = check().await;
    assert!(
        found.len() == 1 && found[0].ends_with("is ahead of the log of changes"),
        "{found:?}"
    );
    place.damage("DELETE FROM listings").await;
    assert_eq!(
        check().await,
        ["did:aip:hub.example:shop has none of the listings that were counted"]
    );
}

/// A database of the release before has agents, and no tables of listings.
async fn a_registry_without_listings_gets_them(place: Place) {
    let store = place.open().await;
    store.create(newcomer("alice")).await.expect("created");
    store.close().await;
    place
        .damage(
            "DROP TABLE listings; DROP TABLE listing_owners; DROP TABLE listing_log; DROP TABLE providers; \
             DROP TABLE peers; DROP TABLE peer_leases; DROP TABLE peer_windows; DROP TABLE peer_refusals; \
             DROP TABLE peer_nonces; DROP TABLE remote_histories; DROP TABLE peer_log; DROP TABLE peer_evidence; \
             DROP TABLE peer_audit; DROP TABLE market_money; DROP TABLE market_accounts; DROP TABLE market_lines; \
             DROP TABLE market_keys; DROP TABLE market_references; DROP TABLE market_channels; \
             DROP TABLE market_invocations; DROP TABLE market_repeats; DROP TABLE market_trials; \
             DROP TABLE market_receipts; DROP TABLE market_earnings; DROP TABLE market_peers; \
             DROP TABLE market_peer_lines; DROP TABLE market_payments; DELETE FROM _sqlx_migrations WHERE version > 1",
        )
        .await;
    let store = place.open().await;
    assert_eq!(store.counts().await.expect("read").agents, 1);
    assert_eq!(
        stored(store.put(&version("shop", "a", 1, "x"), MANY, at(0)).await).change_seq,
        1
    );
    assert_eq!(
        store.check_integrity().await.expect("checked"),
        Vec::<String>::new()
    );
}

async fn a_copy_forgets_what_the_original_forgot(place: Place) {
    let from = Place::sqlite();
    let (original, copy) = (from.open().await, place.open().await);
    for listing in ["a", "b", "c"] {
        stored(original.put(&version("shop", listing, 1, "x"), MANY, at(0)).await);
    }
    stored(original.put(&version("other", "a", 1, "x"), MANY, at(0)).await);
    stored(original.put(&deletion("other", "a", 2), MANY, at(0)).await);
    stored(original.put(&deletion("shop", "a", 2), MANY, at(1)).await);
    original.copy_to(&copy).await.expect("copied");
    let equal = async || original.digest().await.expect("a digest") == copy.digest().await.expect("a digest");
    assert!(equal().await);
    assert_eq!(
        copy.count_listings().await.expect("read"),
        original.count_listings().await.expect("read")
    );

    assert_eq!(original.forget_deleted(at(9), 10).await.expect("forgotten"), 2);
    stored(original.put(&version("shop", "a", 1, "x"), MANY, at(2)).await);
    stored(original.put(&deletion("shop", "b", 2), MANY, at(2)).await);
    assert!(!equal().await);
    original.copy_to(&copy).await.expect("copied");
    assert!(equal().await);
    assert_eq!(
        copy.count_listings().await.expect("read"),
        original.count_listings().await.expect("read")
    );
    assert_eq!(copy.complete_from().await.expect("read"), 6);
    assert_eq!(
        copy.check_integrity().await.expect("checked"),
        Vec::<String>::new()
    );
    // What goes on at the new place goes on where the old one stopped.
    let next = stored(copy.put(&version("shop", "d", 1, "x"), MANY, at(3)).await);
    assert_eq!((next.number, next.change_seq), (6, 9));
}

/// Somebody published at the new place already: a late copy does not undo it.
async fn a_copy_keeps_what_it_has_when_it_is_ahead(place: Place) {
    let from = Place::sqlite();
    let (original, copy) = (from.open().await, place.open().await);
    stored(original.put(&version("shop", "a", 1, "x"), MANY, at(0)).await);
    original.copy_to(&copy).await.expect("copied");
    stored(copy.put(&version("shop", "a", 2, "y"), MANY, at(1)).await);
    stored(copy.put(&version("shop", "b", 1, "y"), MANY, at(1)).await);
    let before = copy.changes(0, 10).await.expect("read");
    original.copy_to(&copy).await.expect("copied");
    assert_eq!(copy.changes(0, 10).await.expect("read"), before);
    assert_eq!(
        copy.check_integrity().await.expect("checked"),
        Vec::<String>::new()
    );
    let next = stored(copy.put(&version("shop", "c", 1, "y"), MANY, at(2)).await);
    assert_eq!((next.number, next.change_seq), (3, 4));
}
