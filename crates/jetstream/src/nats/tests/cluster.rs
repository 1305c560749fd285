//! Three servers, of which one dies while messages are stored.

use std::collections::BTreeSet;
use std::time::Duration;

use aip_engines::NatsCluster;
use aip_relay::mailbox::StoreError;

use super::{put, subject};
use crate::config::Options;
use crate::doctor;
use crate::nats::{Published, expecting, named};
use crate::start::{Started, start};
use crate::testing::{fresh, options};

/// Messages stored in one run.
const MESSAGES: usize = 300;

fn three(cluster: &NatsCluster) -> Options {
    Options {
        urls: cluster.urls(),
        replicas: 3,
        streams: 1,
        publish_try: Duration::from_millis(500),
        publish_deadline: Duration::from_secs(20),
        ..options("", "cluster")
    }
}

/// Stores message `n` after `last`, as an append does: whatever happens, the same id again.
async fn store(opened: &Started, subject: &str, last: u64, n: usize) -> u64 {
    let id = format!("c{n}");
    for _ in 0..200 {
        let outcome = opened
            .nats
            .publish(subject, named(expecting(last), &id), n.to_string().into())
            .await;
        match outcome {
            Ok(Published::Stored { stream_seq } | Published::Duplicate { stream_seq }) => return stream_seq,
            // Nothing was stored: there is no leader just now.
            Err(StoreError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
            other => panic!("message {n}: {other:?}"),
        }
    }
    panic!("message {n} is never stored");
}

#[tokio::test]
async fn a_leader_that_dies_costs_no_message_and_doubles_none() {
    let mut cluster = NatsCluster::start(3, false);
    let opened = start(three(&cluster), &fresh(1)).await.expect("opens");
    let (stream, ours) = subject(&opened, 1);
    let well = doctor::examine(three(&cluster)).await.expect("looked at");
    assert!(
        well.streams
            .iter()
            .all(|stream| stream.copies == 3 && stream.leader.is_some())
    );
    let mut last = 0;
    for n in 0..MESSAGES {
        if n == MESSAGES / 3 {
            let leader = cluster.await_stream_leader(&stream);
            cluster.kill(leader);
            cluster.restart(leader);
        }
        last = store(&opened, &ours, last, n).await;
    }
    // From the leader, message by message: in order, each once.
    let (mut from, mut found) = (1, Vec::new());
    while let Some(next) = opened.nats.next_of(&stream, &ours, from).await.expect("read") {
        from = next.stream_seq + 1;
        found.push(String::from_utf8_lossy(&next.payload).into_owned());
    }
    let wanted: Vec<String> = (0..MESSAGES).map(|n| n.to_string()).collect();
    assert_eq!(found, wanted);
    let unique: BTreeSet<_> = found.iter().collect();
    assert_eq!(unique.len(), MESSAGES);
    // And the ids are known: the same message again is found, not stored.
    let twin = put(&opened.nats, &ours, last, "c5", "5").await;
    assert!(matches!(twin, Published::Duplicate { .. }), "{twin:?}");
}
