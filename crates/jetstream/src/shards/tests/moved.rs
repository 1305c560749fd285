//! A shard that moves while it is in use.

use std::sync::Mutex;

use aip_engines::NatsCluster;
use aip_relay::mailbox::suite::{duplicate, envelope, stored};
use aip_relay::mailbox::{Live, Mailboxes};

use super::load::{Load, all_after};
use super::*;
use crate::testing::eventually;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_and_nothing_is_counted_twice_under_load() {
    let ground = Ground::new("move-load").await;
    let load = Load::start(&ground).await;
    load.goes_on(30).await;
    let steps = Mutex::new(Vec::new());
    let told = |_, step| steps.lock().unwrap().push(step);
    for to in [OTHER, NEW] {
        assert_eq!(ground.move_to(to, &told).await.unwrap(), 1);
        load.goes_on(30).await;
        assert_eq!(ground.at().await, (to, false));
    }
    load.check().await;
    assert_eq!((ground.messages(OLD).await, ground.messages(OTHER).await), (0, 0));
    let told = steps.into_inner().unwrap();
    let in_order = [
        Step::Begun,
        Step::Closed,
        Step::Switched,
        Step::Opened,
        Step::Done,
    ];
    let told: Vec<Step> = told
        .into_iter()
        .filter(|step| !matches!(step, Step::Copied(_)))
        .collect();
    assert_eq!(told, [in_order, in_order].concat());
    // The settings name two streams; the store has three now, and opens.
    start(ground.options.clone(), &fresh(1)).await.unwrap();
    let found = crate::doctor::examine(ground.options.clone()).await.unwrap();
    assert_eq!(found.complaints, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_has_not_heard_is_corrected_at_once() {
    let ground = Ground::new("move-late").await;
    let (name, now) = (&ground.agents(SHARD, 1)[0], ground.now());
    let mailbox = MailboxId::of(&did(name));
    let (one, other) = (ground.process().await, ground.process().await);
    other.watch(&mailbox).await;
    let send = async |store: &JetStreamMailboxes, n| store.append(envelope(now, "sender", name, n)).await;
    assert_eq!(send(&one, 1).await.unwrap(), stored(1));
    assert_eq!(send(&other, 2).await.unwrap(), stored(2));
    ground.move_to(OTHER, &|_, _| {}).await.unwrap();
    // Its own next append goes to the new stream, without an error in between.
    assert_eq!(send(&one, 3).await.unwrap(), stored(3));
    assert_eq!(send(&one, 1).await.unwrap(), duplicate(1));
    // What the first has stored is seen by the one that watches, from wherever it reads.
    let mut seen = 0;
    for _ in 0..2_000 {
        seen = other
            .fetch(&mailbox, all_after(0, now))
            .await
            .map_or(0, |page| page.len());
        if seen == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(seen, 3);
    assert_eq!(other.state(&mailbox).await.unwrap().next_seq, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_end_in_time_in_the_new_stream_too() {
    let ground = Ground::new("move-end").await;
    let store = ground.process().await;
    let (ours, theirs) = (&ground.agents(SHARD, 1)[0], &ground.agents(SHARD + 1, 1)[0]);
    let accepted = ground.now();
    store.append(envelope(accepted, "sender", ours, 1)).await.unwrap();
    // Two days later: in the new stream it lies before the other one, and ends after it.
    ground.pass(2 * 86_400);
    store
        .append(envelope(ground.now(), "sender", theirs, 2))
        .await
        .unwrap();
    ground.move_to(OTHER, &|_, _| {}).await.unwrap();
    let retention = i64::try_from(aip_relay::limits::RETENTION_SECS).unwrap();
    ground.pass(retention - 2 * 86_400 + 60);
    let mut expired = Vec::new();
    for _ in 0..3 {
        expired.extend(store.sweep(ground.now()).await.unwrap().expired);
    }
    let recipients: Vec<&str> = expired.iter().map(|settled| settled.recipient.as_str()).collect();
    assert_eq!(recipients, [did(ours).as_str()]);
    let state = store.state(&MailboxId::of(&did(ours))).await.unwrap();
    assert_eq!((state.floor, state.pending, state.next_seq), (1, 0, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_purged_before_is_not_missed() {
    let ground = Ground::new("move-purged").await;
    let (name, store) = (&ground.agents(SHARD, 1)[0], ground.process().await);
    let mailbox = MailboxId::of(&did(name));
    for n in 1..=5 {
        store
            .append(envelope(ground.now(), "sender", name, n))
            .await
            .unwrap();
    }
    store.ack(&mailbox, 5, &[], ground.now()).await.unwrap();
    ground.pass(3_600);
    store.sweep(ground.now()).await.unwrap();
    for _ in 0..1_000 {
        if ground.messages(OLD).await == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    ground.move_to(NEW, &|_, _| {}).await.unwrap();
    assert_eq!((ground.messages(OLD).await, ground.messages(NEW).await), (0, 1));
    // It goes on where it was.
    let next = store
        .append(envelope(ground.now(), "sender", name, 6))
        .await
        .unwrap();
    assert_eq!(next, stored(6));
    let page = store.fetch(&mailbox, all_after(0, ground.now())).await.unwrap();
    assert_eq!(page.iter().map(|message| message.seq).collect::<Vec<_>>(), [6]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_was_used_twice_is_known_by_its_second_use() {
    let ground = Ground::new("move-twice").await;
    let (name, store) = (&ground.agents(SHARD, 1)[0], ground.process().await);
    // Others in the same stream: the places in it are far from those in the new one.
    let neighbour = &ground.agents(SHARD + 2, 1)[0];
    for n in 100..120 {
        store
            .append(envelope(ground.now(), "sender", neighbour, n))
            .await
            .unwrap();
    }
    let first = store.append(envelope(ground.now(), "sender", name, 1)).await;
    assert_eq!(first.unwrap(), stored(1));
    ground.pass(3_600);
    let again = envelope(ground.now(), "sender", name, 1);
    assert_eq!(store.append(again.clone()).await.unwrap(), stored(2));
    ground.move_to(NEW, &|_, _| {}).await.unwrap();
    for process in [&ground.process().await, &store] {
        assert_eq!(process.append(again.clone()).await.unwrap(), duplicate(2));
    }
    let next = store
        .append(envelope(ground.now(), "sender", name, 2))
        .await
        .unwrap();
    assert_eq!(next, stored(3));
    assert_eq!(store.append(again).await.unwrap(), duplicate(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_moves_on_three_servers_while_a_leader_dies() {
    let cluster = Mutex::new(NatsCluster::start(3, false));
    let options = Options {
        urls: cluster.lock().unwrap().urls(),
        replicas: 3,
        publish_try: Duration::from_millis(500),
        ..options("", "move-three")
    };
    let ground = Ground::with(options).await;
    let load = Load::start(&ground).await;
    load.goes_on(20).await;
    let old = ground.started.layout.names.mailboxes(OLD);
    let dies = |_, step| {
        if step == Step::Begun {
            let mut cluster = cluster.lock().unwrap();
            let leader = cluster.await_stream_leader(&old);
            cluster.kill(leader);
            cluster.restart(leader);
        }
    };
    for attempt in 1.. {
        match ground.move_to(NEW, &dies).await {
            Ok(_) => break,
            // Without a leader nothing is done just now: the same again.
            Err(error) => assert!(attempt < 50, "{error}"),
        }
        ground.pass(61);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    load.goes_on(20).await;
    assert_eq!(ground.at().await, (NEW, false));
    load.check().await;
    eventually("connected", || ground.started.nats.connected()).await;
}
