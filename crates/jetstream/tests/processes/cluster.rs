//! A cluster of three, of which one may die.

use std::collections::BTreeMap;
use std::sync::Arc;

use aip_engines::NatsCluster;
use aip_jetstream::{JetStreamMailboxes, Options};
use aip_relay::mailbox::suite::bob;
use aip_relay::mailbox::{AppendOutcome, Full, Mailboxes, Select};

use crate::kit::{
    acked, all_there, append_until_known, eventually, fetch, impatient, mail, pending_seqs, pour, seq_of,
};
use crate::stores::{open_forgetful, options};

fn at(cluster: &NatsCluster, prefix: &str) -> Options {
    let all = cluster.urls();
    impatient(Options {
        urls: all.clone(),
        replicas: 3,
        ..options(&all[0], prefix)
    })
}

/// Two processes, each with another server first.
async fn two(cluster: &NatsCluster, prefix: &str) -> [Arc<JetStreamMailboxes>; 2] {
    let mut options = at(cluster, prefix);
    let one = open_forgetful(options.clone()).await;
    options.urls.rotate_left(1);
    let other = open_forgetful(options).await;
    [Arc::new(one), Arc::new(other)]
}

async fn reached(store: &JetStreamMailboxes, seq: u64) {
    eventually("the load gets on", async || {
        store.state(&bob()).await.is_ok_and(|state| state.next_seq > seq)
    })
    .await;
}

/// The leader of the mailbox's stream is killed, then paused, under load: what was answered is there, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_outlives_its_leader() {
    let mut cluster = NatsCluster::start(3, false);
    let [one, other] = two(&cluster, "leader").await;
    let load = {
        let (one, other) = (Arc::clone(&one), Arc::clone(&other));
        tokio::spawn(async move {
            let (mut answers, more) = tokio::join!(pour(one, 1, 200), pour(other, 201, 200));
            answers.extend(more);
            answers
        })
    };
    let watcher = open_forgetful(at(&cluster, "leader")).await;
    reached(&watcher, 60).await;
    let leader = cluster.await_stream_leader("LEADER_MB_0");
    cluster.kill(leader);
    reached(&watcher, 160).await;
    cluster.restart(leader);
    let leader = cluster.await_stream_leader("LEADER_MB_0");
    cluster.pause(leader);
    reached(&watcher, 260).await;
    cluster.resume(leader);
    let answers: BTreeMap<u64, AppendOutcome> = load.await.unwrap();
    assert_eq!(answers.len(), 400);
    all_there(&one, &answers).await;
    all_there(&open_forgetful(at(&cluster, "leader")).await, &answers).await;
}

/// A copy that lags is no reason to show less than what was stored, offered or heard of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_sees_what_was_stored_before() {
    let cluster = NatsCluster::start(3, false);
    let [one, other] = two(&cluster, "reads").await;
    for n in 1..=100 {
        let seq = seq_of(append_until_known(&one, &mail(n)).await);
        let shown = fetch(&one, Select::After(seq - 1)).await;
        assert_eq!(shown.len(), 1, "its own append {n}");
        one.offer(&bob(), &[seq], 1).await.unwrap();
        let offered = fetch(&other, Select::Seqs(vec![seq])).await;
        assert_eq!(
            offered.first().map(|message| message.attempts),
            Some(1),
            "the other's offer {n}"
        );
        assert_eq!(acked(&other, seq, &[]).await, (seq, vec![seq]));
        assert!(
            fetch(&one, Select::Seqs(vec![seq])).await.is_empty(),
            "the other's ack {n}"
        );
    }
    assert!(pending_seqs(&other).await.is_empty());
}

/// Duplicates are known to a fresh process, and told before `full`; the question leaves no trace.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_mailbox_still_knows_its_duplicates() {
    let cluster = NatsCluster::start(3, false);
    let [one, other] = two(&cluster, "full").await;
    append_until_known(&one, &mail(1)).await;
    let small = |n| {
        let mut append = mail(n);
        append.quota.mailbox_messages = 1;
        append
    };
    let again = append_until_known(&other, &small(1)).await;
    assert!(
        matches!(again, AppendOutcome::Duplicate { seq: Some(1), .. }),
        "{again:?}"
    );
    for store in [&one, &other, &one] {
        let refused = append_until_known(store, &small(2)).await;
        assert_eq!(refused, AppendOutcome::Full(Full::MailboxMessages));
    }
    assert_eq!(append_until_known(&other, &mail(2)).await, crate::kit::stored(2));
}
