//! What is asked of the servers for each call. More than this, and the store does not carry what it is built for.

use std::sync::Arc;

use aip_jetstream::JetStreamMailboxes;
use aip_jetstream::stats::Counts;
use aip_relay::mailbox::suite::bob;
use aip_relay::mailbox::{Mailboxes, Select, Upkeep};
use tokio::task::JoinSet;

use crate::kit::{acked, fetch, mail, shared};
use crate::stores::open_forgetful;

/// Reads from leaders, reads of single messages, and batches.
fn reads(counts: Counts) -> [u64; 3] {
    [counts.leader_gets, counts.direct_gets, counts.batch_gets]
}

/// What `call` costs: reads, and publishes with those behind its back.
async fn cost(store: &JetStreamMailboxes, call: impl Future<Output = ()>) -> ([u64; 3], u64) {
    let before = store.counts();
    call.await;
    store.close().await;
    let after = store.counts();
    let [a, b] = [before, after].map(reads);
    let more = [b[0] - a[0], b[1] - a[1], b[2] - a[2]];
    (more, after.publishes - before.publishes)
}

#[tokio::test]
async fn a_call_costs_what_it_must() {
    let store = open_forgetful(shared("cost")).await;
    store.close().await;
    let append = async |n: u64| assert!(store.append(mail(n)).await.is_ok());
    // A cold mailbox: its end and its cursor. The entry, its status, and the latest time.
    let (reads, publishes) = cost(&store, append(1)).await;
    assert_eq!((reads, publishes), ([2, 0, 0], 3));
    // A warm one: the entry and its status.
    let (reads, publishes) = cost(&store, async {
        for n in 2..=11 {
            append(n).await;
        }
    })
    .await;
    assert_eq!((reads, publishes), ([0, 0, 0], 20));
    // The cursor and the messages.
    let (reads, publishes) = cost(&store, async {
        assert_eq!(fetch(&store, Select::After(0)).await.len(), 11);
    })
    .await;
    assert_eq!((reads, publishes), ([0, 1, 1], 0));
    // The cursor.
    let (reads, publishes) = cost(&store, async {
        store.offer(&bob(), &[1, 2, 3, 4, 5], 7).await.unwrap();
    })
    .await;
    assert_eq!((reads, publishes), ([0, 0, 0], 1));
    // The cursor, and five statuses.
    let (reads, publishes) = cost(&store, async {
        assert_eq!(acked(&store, 5, &[]).await.1.len(), 5);
    })
    .await;
    assert_eq!((reads, publishes), ([0, 0, 0], 6));
}

/// Acks that come while one is being written share the next write.
#[tokio::test]
async fn acks_are_merged_under_load() {
    let store = Arc::new(open_forgetful(shared("merge")).await);
    for n in 1..=200 {
        store.append(mail(n)).await.unwrap();
    }
    let before = store.stats();
    let mut tasks = JoinSet::new();
    for seq in 1..=200 {
        let store = Arc::clone(&store);
        tasks.spawn(async move { acked(&store, 0, &[seq]).await.1 });
    }
    let told = tasks.join_all().await;
    assert!(told.iter().all(|settled| settled.len() == 1));
    let after = store.stats();
    assert_eq!(after.batch_ops - before.batch_ops, 200);
    let writes = after.batches - before.batches;
    assert!(writes <= 20, "{writes} writes for 200 acks");
}
