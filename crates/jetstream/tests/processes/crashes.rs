//! A server that dies and comes back.

use std::collections::BTreeMap;
use std::sync::Arc;

use aip_engines::{Nats, NatsOptions};
use aip_relay::mailbox::{AppendOutcome, Mailboxes, Select};

use crate::kit::{
    PATIENCE, acked, all_there, append_until_known, eventually, fetch, impatient, mail, pending_seqs, pour,
    seq_of, state, two,
};
use crate::stores::{open_forgetful, options};

/// Killed three times under the load of two processes: what was answered is there, once, in its place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_outlives_a_killed_server() {
    let mut server = Nats::start(NatsOptions::default());
    let options = impatient(options(&server.url(), "crash"));
    let [one, other] = two(options.clone()).await;
    let load = tokio::spawn(async move {
        let (mut answers, more) = tokio::join!(pour(one, 1, 400), pour(other, 401, 400));
        answers.extend(more);
        answers
    });
    let watcher = open_forgetful(options.clone()).await;
    for killed in 1..=3 {
        let reached = killed * 150;
        eventually("the load gets on", async || {
            use aip_relay::mailbox::suite::bob;
            let state = watcher.state(&bob()).await;
            state.is_ok_and(|state| state.next_seq > reached)
        })
        .await;
        server.kill();
        server.restart();
    }
    let answers = load.await.unwrap();
    assert_eq!(answers.len(), 800);
    let fresh = open_forgetful(options).await;
    all_there(&fresh, &answers).await;
    // A retry of anything is a duplicate with the same number.
    for n in [1, 250, 400, 401, 777] {
        let again = fresh.append(mail(n)).await.unwrap();
        assert!(matches!(again, AppendOutcome::Duplicate { .. }), "{again:?}");
        assert_eq!(seq_of(again), seq_of(answers[&n]));
    }
}

/// Acks that were confirmed are not undone by a killed server; those that were not may be repeated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acked_stays_acked() {
    let mut server = Nats::start(NatsOptions::default());
    let options = impatient(options(&server.url(), "crash-ack"));
    let [one, other] = two(options.clone()).await;
    let answers: BTreeMap<u64, AppendOutcome> = pour(Arc::clone(&one), 1, 60).await;
    assert_eq!(answers.len(), 60);
    assert_eq!(acked(&other, 20, &[30, 40]).await.0, 20);
    one.offer(&aip_relay::mailbox::suite::bob(), &[21, 22], 5)
        .await
        .unwrap();
    server.kill();
    let failed = other
        .ack(&aip_relay::mailbox::suite::bob(), 25, &[], crate::kit::now())
        .await;
    assert!(failed.is_err(), "{failed:?}");
    server.restart();
    let next = append_until_known(&other, &mail(61)).await;
    assert_eq!(seq_of(next), 61);
    let floor = acked(&one, 0, &[]).await.0;
    assert!(floor == 20 || floor == 25, "{floor}");
    assert_eq!(acked(&other, 25, &[]).await.0, 25);
    let expected: Vec<u64> = (26..=61).filter(|seq| ![30, 40].contains(seq)).collect();
    let fresh = open_forgetful(options).await;
    assert_eq!(pending_seqs(&fresh).await, expected);
    assert_eq!(state(&fresh).await.pending, expected.len() as u64);
    assert!(fetch(&fresh, Select::Seqs(vec![21, 30])).await.is_empty());
}

/// While there is no server every call ends soon, with an error that says whether anything may have happened.
#[tokio::test]
async fn without_a_server_nothing_hangs() {
    let mut server = Nats::start(NatsOptions::default());
    let options = impatient(options(&server.url(), "gone"));
    let [one, other] = two(options).await;
    one.append(mail(1)).await.unwrap();
    server.kill();
    let soon = async {
        for n in 2..=4 {
            assert!(one.append(mail(n)).await.is_err());
        }
        assert!(other.append(mail(5)).await.is_err());
        let bob = aip_relay::mailbox::suite::bob();
        assert!(other.state(&bob).await.is_err());
        assert!(one.ack(&bob, 1, &[], crate::kit::now()).await.is_err());
    };
    tokio::time::timeout(PATIENCE, soon).await.unwrap();
    server.restart();
    let seq = seq_of(append_until_known(&one, &mail(2)).await);
    assert_eq!(seq_of(append_until_known(&other, &mail(2)).await), seq);
}
