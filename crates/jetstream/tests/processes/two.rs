//! Two processes, one mailbox.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aip_relay::mailbox::suite::{bob, forged};
use aip_relay::mailbox::{
    AppendOutcome, DeadLetters, Full, Mailboxes, RedriveOutcome, Route, Select, Status, Statuses,
};
use tokio::task::JoinSet;

use crate::kit::{
    acked, all_there, eventually, fetch, mail, now, pending_seqs, pour, redrive, roomy, seq_of, shared,
    state, two,
};

/// Whoever appends: numbers are dense, each is given once, and nothing is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_append_at_once() {
    let [one, other] = two(shared("append")).await;
    let (mut answers, more) = tokio::join!(pour(one.clone(), 1, 100), pour(other.clone(), 101, 100));
    answers.extend(more);
    assert!(
        answers
            .values()
            .all(|outcome| matches!(outcome, AppendOutcome::Stored { .. }))
    );
    all_there(&one, &answers).await;
    all_there(&other, &answers).await;
}

/// The same envelopes through both, each several times: each is accepted once, and all others are told where it lies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_envelope_through_both_is_accepted_once() {
    let stores = two(shared("dedup")).await;
    let mut tasks = JoinSet::new();
    for n in 1..=30 {
        for store in stores.iter().chain(&stores) {
            let store = Arc::clone(store);
            tasks.spawn(async move { (n, store.append(mail(n)).await.unwrap()) });
        }
    }
    let answers = tasks.join_all().await;
    for n in 1..=30 {
        let own: Vec<AppendOutcome> = answers
            .iter()
            .filter(|(of, _)| *of == n)
            .map(|(_, outcome)| *outcome)
            .collect();
        let stored = own
            .iter()
            .filter(|outcome| matches!(outcome, AppendOutcome::Stored { .. }));
        assert_eq!((own.len(), stored.count()), (4, 1), "envelope {n}");
        let places: BTreeSet<u64> = own.iter().map(|outcome| seq_of(*outcome)).collect();
        assert_eq!(places.len(), 1, "envelope {n}");
    }
    assert_eq!(pending_seqs(&stores[0]).await, (1..=30).collect::<Vec<_>>());
    for store in &stores {
        let again = store.append(forged(mail(7))).await.unwrap();
        assert_eq!(again, AppendOutcome::Reused);
    }
}

/// A process that has never seen an envelope knows it, by whatever route it came, and also when the mailbox is full.
#[tokio::test]
async fn a_fresh_process_knows_what_was_accepted() {
    let [one, other] = two(shared("fresh")).await;
    let mut direct = mail(2);
    direct.route = Route::Direct;
    assert_eq!(seq_of(one.append(mail(1)).await.unwrap()), 1);
    one.append(direct).await.unwrap();
    let mut full = [mail(1), mail(2), mail(3)];
    for append in &mut full {
        append.quota.mailbox_messages = 1;
    }
    let [first, second, third] = full;
    let seen = |seq, route| AppendOutcome::Duplicate { seq, route };
    assert_eq!(
        other.append(first.clone()).await.unwrap(),
        seen(Some(1), Route::Mailbox)
    );
    assert_eq!(other.append(second).await.unwrap(), seen(None, Route::Direct));
    assert_eq!(
        other.append(forged(first)).await.unwrap(),
        AppendOutcome::Reused,
        "full or not"
    );
    let refused = AppendOutcome::Full(Full::MailboxMessages);
    assert_eq!(other.append(third.clone()).await.unwrap(), refused);
    // The question left nothing behind.
    assert_eq!(other.append(third).await.unwrap(), refused);
    assert_eq!(other.append(mail(3)).await.unwrap(), crate::kit::stored(2));
}

/// What one process acks the other does not show, and a mailbox that one has emptied has room at the other.
#[tokio::test]
async fn one_acks_and_the_other_fetches() {
    let [one, other] = two(shared("ack")).await;
    for n in 1..=6 {
        one.append(mail(n)).await.unwrap();
    }
    assert_eq!(pending_seqs(&other).await, [1, 2, 3, 4, 5, 6]);
    assert_eq!(acked(&one, 2, &[5]).await, (2, vec![1, 2, 5]));
    assert_eq!(pending_seqs(&other).await, [3, 4, 6]);
    assert_eq!(acked(&other, 0, &[3, 5]).await, (3, vec![3]));
    assert_eq!(
        acked(&one, 0, &[3]).await,
        (3, vec![]),
        "it knows no better by itself"
    );
    assert_eq!(pending_seqs(&one).await, [4, 6]);
    let mut small = mail(7);
    small.quota.mailbox_messages = 3;
    assert_eq!(seq_of(other.append(small).await.unwrap()), 7);
    let mut refused = mail(8);
    refused.quota.mailbox_messages = 3;
    assert_eq!(
        one.append(refused.clone()).await.unwrap(),
        AppendOutcome::Full(Full::MailboxMessages)
    );
    assert_eq!(acked(&other, 7, &[]).await, (7, vec![4, 6, 7]));
    assert_eq!(seq_of(one.append(refused).await.unwrap()), 8);
    assert_eq!(state(&other).await.pending, 1);
}

/// An agent that is offered a message by one process may ack it at the other, at once.
#[tokio::test]
async fn an_offer_is_seen_by_the_other_process_when_it_returns() {
    let [one, other] = two(shared("offer")).await;
    for n in 1..=300 {
        one.append(mail(n)).await.unwrap();
    }
    let all: Vec<u64> = (1..=300).collect();
    one.offer(&bob(), &all, 7).await.unwrap();
    let shown = fetch(&other, Select::Seqs(all.clone())).await;
    assert!(shown.len() == 300 && shown.iter().all(|message| message.attempts == 1));
    let again = other.offer(&bob(), &[3], 8).await.unwrap();
    assert_eq!((again[0].attempt, again[0].sessions), (2, 2));
    let mailbox = bob();
    let (a, b) = tokio::join!(one.offer(&mailbox, &[3], 7), other.offer(&mailbox, &[3], 8));
    let counts = BTreeSet::from([a.unwrap()[0].attempt, b.unwrap()[0].attempt]);
    assert_eq!(counts, BTreeSet::from([3, 4]), "neither is lost");
}

/// Both settle at once: each message is told to be settled by one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_settle_at_once() {
    let stores = two(shared("settle")).await;
    pour(Arc::clone(&stores[0]), 1, 120).await;
    let mut tasks = JoinSet::new();
    for part in 0..12_u64 {
        for store in &stores {
            let store = Arc::clone(store);
            let also: Vec<u64> = (1..=120).filter(|seq| (seq + part) % 6 < 2).collect();
            tasks.spawn(async move { acked(&store, 0, &also).await.1 });
        }
    }
    let mut told: Vec<u64> = tasks.join_all().await.into_iter().flatten().collect();
    told.sort_unstable();
    assert_eq!(told, (1..=120).collect::<Vec<_>>());
    for store in &stores {
        let state = state(store).await;
        assert_eq!((state.floor, state.pending, state.bytes), (120, 0, 0));
    }
}

/// One buries while the other acks, and both bring back the same dead letter: one of them wins, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_dies_once_and_comes_back_once() {
    let [one, other] = two(shared("dead")).await;
    for n in 1..=20 {
        one.append(mail(n)).await.unwrap();
        let (mailbox, single) = (bob(), [n]);
        let (buried, settled) =
            tokio::join!(one.bury(&mailbox, n, "poison", now()), acked(&other, 0, &single));
        let (buried, settled) = (buried.unwrap().is_some(), settled.1 == [n]);
        assert!(buried != settled, "message {n}: {buried}, {settled}");
        let dead = other.dead(&mailbox, n - 1, 10).await.unwrap();
        assert_eq!(dead.len(), usize::from(buried));
    }
    // 21 is buried for certain.
    one.append(mail(21)).await.unwrap();
    assert!(one.bury(&bob(), 21, "poison", now()).await.unwrap().is_some());
    let back = tokio::join!(redrive(&one, 21), redrive(&other, 21));
    let told = [back.0, back.1]
        .iter()
        .filter(|outcome| **outcome == RedriveOutcome::Redriven { seq: 22 })
        .count();
    assert!(told >= 1, "{back:?}");
    assert_eq!(pending_seqs(&other).await, [22], "once");
    assert_eq!(redrive(&one, 21).await, RedriveOutcome::NotFound);
}

/// Hints of one process's appends reach the other; a fetch after a hint shows the message.
#[tokio::test]
async fn news_reach_the_other_process() {
    use aip_relay::mailbox::Live;
    let options = shared("live");
    let one = crate::stores::open_forgetful(options.clone()).await;
    let (heard, mut news) = tokio::sync::mpsc::channel(100);
    let mut parts = crate::stores::parts(Arc::new(crate::stores::Forgetful));
    parts.wake = Arc::new(move |mailbox, seq| heard.try_send((*mailbox, seq)).unwrap());
    let other = aip_jetstream::JetStreamMailboxes::open(options, parts, now())
        .await
        .unwrap();
    other.watch(&bob()).await;
    for n in 1..=5 {
        one.append(mail(n)).await.unwrap();
        let told = async { while news.recv().await != Some((bob(), Some(n))) {} };
        tokio::time::timeout(crate::kit::PATIENCE, told).await.unwrap();
        let shown = fetch(&other, Select::After(n - 1)).await;
        assert_eq!(shown.len(), 1);
    }
}

/// A status that was lost on its way is made good for by the mailbox; a sender learns of an ack at any process.
#[tokio::test]
async fn a_status_is_told_by_any_process() {
    let [one, other] = two(shared("status")).await;
    let sent = mail(1);
    one.append(sent.clone()).await.unwrap();
    let told = async |store: &aip_jetstream::JetStreamMailboxes| {
        let found = store.status(&sent.sender, sent.id, None).await.unwrap();
        found.first().map(|record| (record.status, record.seq))
    };
    assert_eq!(told(&one).await, Some((Status::Stored, Some(1))));
    acked(&other, 1, &[]).await;
    eventually("the ack is told", async || {
        told(&one).await == Some((Status::Acked, Some(1)))
    })
    .await;
}

/// Settled messages are purged after their time, the last entry stays, and numbers go on, whoever asks.
#[tokio::test]
async fn a_purge_leaves_the_last_entry() {
    use aip_relay::mailbox::Upkeep;
    let options = shared("purge");
    let [one, other] = two(options.clone()).await;
    for n in 1..=10 {
        one.append(mail(n)).await.unwrap();
    }
    acked(&other, 9, &[]).await;
    let entries = async || crate::kit::stream_messages(&options).await;
    assert_eq!(entries().await, 10);
    other.sweep(now()).await.unwrap();
    assert_eq!(entries().await, 10, "the stream must know the ids for a while");
    let later = now() + Duration::from_mins(40);
    other.sweep(later).await.unwrap();
    eventually("purged", async || entries().await == 2).await;
    assert_eq!(pending_seqs(&one).await, [10]);
    acked(&other, 10, &[]).await;
    other.sweep(later).await.unwrap();
    other.sweep(later + Duration::from_mins(40)).await.unwrap();
    eventually("purged", async || entries().await == 1).await;
    let fresh = crate::stores::open_forgetful(options.clone()).await;
    assert_eq!(state(&fresh).await.next_seq, 11);
    let mut append = mail(11);
    append.quota = roomy();
    assert_eq!(seq_of(fresh.append(append).await.unwrap()), 11);
    assert_eq!(seq_of(one.append(mail(12)).await.unwrap()), 12);
    assert_eq!(pending_seqs(&other).await, [11, 12]);
    assert_eq!(state(&one).await.floor, 10);
}
