//! The contract of [`crate::Listings`] about the log of changes: in order, without a gap, forgotten in time.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::fixtures::at;
use super::listings::{MANY, deletion, did, ids, put, stored, version};
use crate::Listings;
use crate::limits::{LISTINGS_PAGE_MAX, LISTINGS_PER_TRANSACTION_MAX};
use crate::listings::{Put, listing_id};

/// More than a transaction takes, and more than a page holds.
pub async fn a_great_many_are_stored_and_read_in_pages<S: Listings>(store: Arc<S>) {
    let count = LISTINGS_PAGE_MAX as usize + LISTINGS_PER_TRANSACTION_MAX / 2;
    let new: Vec<_> = (0..count)
        .map(|n| version("shop", &n.to_string(), 1, "red"))
        .collect();
    let puts = store.put_many(&new, MANY, at(0)).await.unwrap();
    assert!(
        puts.iter()
            .all(|put| matches!(put, Put::Stored { is_new: true, .. }))
    );
    let (mut seen, mut after) = (Vec::new(), 0);
    loop {
        let page = store.changes(after, u32::MAX).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() <= LISTINGS_PAGE_MAX as usize);
        after = last.change_seq;
        seen.extend(page.into_iter().map(|row| row.change_seq));
    }
    assert_eq!(seen, (1..=count as u64).collect::<Vec<_>>());
    let again = store.put_many(&new, MANY, at(9)).await.unwrap();
    assert!(again.iter().all(|put| matches!(put, Put::Unchanged(_))));
    assert_eq!(
        store.of_agent(&did("shop"), None, u32::MAX).await.unwrap().len(),
        LISTINGS_PAGE_MAX as usize
    );
    assert_eq!(store.remove_of(&did("shop"), at(10)).await.unwrap(), count as u64);
    assert_eq!(store.latest_change().await.unwrap(), 2 * count as u64);
    let counts = store.count_listings().await.unwrap();
    assert_eq!((counts.live, counts.deleted), (0, count as u64));
}

/// The oldest first, and it is told from where on the log is whole.
pub async fn tombstones_are_forgotten<S: Listings>(store: Arc<S>) {
    for (n, listing) in ["a", "b", "c", "d"].into_iter().enumerate() {
        put(&*store, &version("shop", listing, 1, "red")).await;
        if listing != "d" {
            let secs = 10 * i64::try_from(n).unwrap();
            stored(store.put(&deletion("shop", listing, 2), MANY, at(secs)).await);
        }
    }
    assert_eq!(
        store.forget_deleted(at(0), 10).await.unwrap(),
        0,
        "before, not at"
    );
    assert_eq!(
        store.forget_deleted(at(11), 1).await.unwrap(),
        1,
        "no more than asked for"
    );
    assert_eq!(store.complete_from().await.unwrap(), 2);
    assert_eq!(store.forget_deleted(at(11), 10).await.unwrap(), 1);
    assert_eq!(store.complete_from().await.unwrap(), 4);
    assert_eq!(store.forget_deleted(at(11), 10).await.unwrap(), 0);
    let changes = store.changes(0, 10).await.unwrap();
    assert_eq!(ids(&changes), ["c", "d"]);
    assert_eq!(store.get(&listing_id(&did("shop"), "a")).await.unwrap(), None);
    assert_eq!(store.latest_change().await.unwrap(), 7);

    let back = put(&*store, &version("shop", "a", 1, "red")).await;
    assert_eq!(
        (back.number, back.change_seq),
        (5, 8),
        "a number is never given twice"
    );
    assert_eq!(store.forget_deleted(at(1_000), 10).await.unwrap(), 1);
    assert_eq!(store.complete_from().await.unwrap(), 6);
    let counts = store.count_listings().await.unwrap();
    assert_eq!((counts.live, counts.deleted), (2, 0));
}

/// Nothing of an agent that was sent away is found, and nothing comes back by itself.
pub async fn an_agents_listings_are_removed<S: Listings>(store: Arc<S>) {
    for listing in ["a", "b", "c"] {
        put(&*store, &version("shop", listing, 2, "red")).await;
        put(&*store, &version("other", listing, 2, "red")).await;
    }
    put(&*store, &deletion("shop", "c", 3)).await;
    let before = store.latest_change().await.unwrap();
    assert_eq!(store.remove_of(&did("shop"), at(5)).await.unwrap(), 2);
    assert_eq!(store.remove_of(&did("shop"), at(6)).await.unwrap(), 0);
    assert_eq!(store.of_agent(&did("shop"), None, 10).await.unwrap(), []);
    assert_eq!(store.of_agent(&did("other"), None, 10).await.unwrap().len(), 3);
    let changes = store.changes(before, 10).await.unwrap();
    assert!(changes.is_sorted_by(|a, b| a.id < b.id && a.change_seq + 1 == b.change_seq));
    assert_eq!(changes.len(), 2);
    for gone in &changes {
        assert!(gone.deleted && gone.json.is_empty());
        assert_eq!((gone.version, gone.stored_at), (2, at(5)));
        let same = version("shop", &gone.listing_id, 2, "red");
        assert_eq!(
            store.put(&same, MANY, at(9)).await.unwrap(),
            Put::Conflict { version: 2 }
        );
    }
    let counts = store.count_listings().await.unwrap();
    assert_eq!((counts.live, counts.deleted), (3, 3));
    assert!(!put(&*store, &version("shop", "a", 3, "red")).await.deleted);
}

/// Who follows the log looks at them again; they stay as they are.
pub async fn an_agents_listings_are_touched<S: Listings>(store: Arc<S>) {
    for listing in ["a", "b", "c"] {
        put(&*store, &version("shop", listing, 2, "red")).await;
    }
    put(&*store, &version("other", "a", 1, "red")).await;
    put(&*store, &deletion("shop", "c", 3)).await;
    let before = store.of_agent(&did("shop"), None, 10).await.unwrap();
    assert_eq!(store.touch_of(&did("shop")).await.unwrap(), 2);
    let mut after = store.changes(5, 10).await.unwrap();
    assert_eq!(after.iter().map(|row| row.change_seq).collect::<Vec<_>>(), [6, 7]);
    for (row, before) in after.iter_mut().zip(&before) {
        row.change_seq = before.change_seq;
    }
    assert_eq!(after, before);
    assert_eq!(store.latest_change().await.unwrap(), 7);
}

/// Ten write while one follows; he ends up with what is stored.
pub async fn who_follows_the_log_misses_nothing<S: Listings + 'static>(store: Arc<S>) {
    let mut writers = JoinSet::new();
    for writer in 0..10 {
        let store = Arc::clone(&store);
        writers.spawn(async move {
            for n in 1..=12_u64 {
                let listing = (n % 3).to_string();
                let agent = format!("agent-{writer}");
                let new = if n % 4 == 0 {
                    deletion(&agent, &listing, n)
                } else {
                    version(&agent, &listing, n, "x")
                };
                stored(store.put(&new, MANY, at(0)).await);
            }
        });
    }
    let (mut known, mut after, mut is_over) = (BTreeMap::new(), 0, false);
    loop {
        let page = store.changes(after, 7).await.unwrap();
        assert!(page.is_sorted_by(|a, b| a.change_seq < b.change_seq));
        assert!(page.iter().all(|row| row.change_seq > after));
        match page.last() {
            Some(last) => after = last.change_seq,
            None if is_over => break,
            None => {
                is_over = writers.is_empty();
                while writers
                    .try_join_next()
                    .is_some_and(|ended| ended.map(|()| true).unwrap())
                {}
                tokio::task::yield_now().await;
            }
        }
        known.extend(page.into_iter().map(|row| (row.id.clone(), row)));
    }
    assert_eq!(after, 120);
    assert_eq!(store.latest_change().await.unwrap(), 120);
    assert_eq!(known.len(), 30);
    for (id, row) in known {
        assert_eq!(store.get(&id).await.unwrap(), Some(row));
    }
}
