//! What a move relies on: the servers do as it takes for granted.

use aip_engines::NatsOptions;
use async_nats::HeaderMap;
use async_nats::header::NATS_EXPECTED_STREAM;

use super::super::bindings::Bindings;
use super::super::moves::Moving;
use super::*;
use crate::nats::{Published, expecting_in, named};
use crate::testing::eventually;

const MOVING: Moving = Moving {
    shard: SHARD,
    from: OLD,
    to: OTHER,
    switched: None,
    undoing: false,
};

fn subject(ground: &Ground) -> String {
    ground.started.layout.names.shard_subject(SHARD).replace('*', "x")
}

/// Publishes right after `last`, for `stream`.
async fn put(ground: &Ground, stream: &str, last: u64, id: &str) -> Published {
    let headers = named(expecting_in(stream, last), id);
    let (nats, subject) = (&ground.started.nats, subject(ground));
    nats.publish(&subject, headers, id.to_owned().into())
        .await
        .unwrap()
}

fn place(published: Published) -> u64 {
    match published {
        Published::Stored { stream_seq } => stream_seq,
        other => panic!("{other:?}"),
    }
}

/// So many messages `m0`, `m1`, … in the old stream; tells the place of the last.
async fn filled(ground: &Ground, stream: &str, count: usize) -> u64 {
    let mut last = 0;
    for n in 0..count {
        last = place(put(ground, stream, last, &format!("m{n}")).await);
    }
    last
}

async fn copied(ground: &Ground, count: usize) {
    for _ in 0..1_000 {
        if ground.messages(OTHER).await == count {
            return;
        }
        tokio::time::sleep(limits::MOVE_POLL).await;
    }
    panic!("{} of {count} are copied", ground.messages(OTHER).await);
}

#[tokio::test]
async fn a_publish_for_another_stream_is_refused_before_anything_else() {
    refused_before_anything_else(&*Ground::new("fact-stream").await).await;
}

#[tokio::test]
async fn three_servers_refuse_a_publish_for_another_stream_as_one_does() {
    let cluster = aip_engines::NatsCluster::start(3, false);
    let options = Options {
        urls: cluster.urls(),
        replicas: 3,
        ..options("", "fact-three")
    };
    refused_before_anything_else(&*Ground::with(options).await).await;
}

async fn refused_before_anything_else(ground: &Ground) {
    let names = &ground.started.layout.names;
    let (old, other) = (names.mailboxes(OLD), names.mailboxes(OTHER));
    let last = filled(ground, &old, 2).await;
    // A new message, a known one, and one after another message than the last.
    assert_eq!(put(ground, &other, last, "new").await, Published::Elsewhere);
    assert_eq!(put(ground, &other, last, "m1").await, Published::Elsewhere);
    assert_eq!(put(ground, &other, 1_000, "new").await, Published::Elsewhere);
    let asked = ground.started.nats.known(&other, &subject(ground), "m1").await;
    assert!(matches!(asked, Err(StoreError::Unavailable(_))), "{asked:?}");
    assert_eq!(ground.messages(OLD).await, 2);
    place(put(ground, &old, last, "new").await);
}

#[tokio::test]
async fn a_copy_keeps_the_order_and_the_ids_also_over_a_restart() {
    let mut server = aip_engines::Nats::start(NatsOptions::default());
    let ground = Ground::with(options(&server.url(), "fact-copy")).await;
    let (nats, names) = (&ground.started.nats, &ground.started.layout.names);
    let (old, other) = (names.mailboxes(OLD), names.mailboxes(OTHER));
    filled(&ground, &old, 50).await;
    let bindings = Bindings::of(nats, names, &MOVING);
    bindings.attach().await.unwrap();
    copied(&ground, 50).await;
    let mut from = 1;
    for n in 0..50 {
        let original = nats
            .next_of(&old, &bindings.subject, from)
            .await
            .unwrap()
            .unwrap();
        let twin = nats
            .next_of(&other, &bindings.subject, from)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(twin.payload, format!("m{n}"));
        assert_eq!(twin.origin(), Some(original.stream_seq));
        // Both streams were empty.
        assert_eq!(twin.stream_seq, original.stream_seq);
        from = twin.stream_seq + 1;
    }
    bindings.close().await.unwrap();
    bindings.fence("f").await.unwrap();
    assert!(bindings.open().await.unwrap());
    let last = bindings.last_in(&other).await.unwrap();
    for round in ["before", "after"] {
        let twin = put(&ground, &other, last, "m7").await;
        assert_eq!(
            twin,
            Published::Duplicate { stream_seq: 8 },
            "{round} the restart"
        );
        server.kill();
        server.restart();
        eventually("connected", || nats.connected()).await;
    }
}

#[tokio::test]
async fn two_streams_never_have_one_subject() {
    let ground = Ground::new("fact-two").await;
    let (nats, names) = (&ground.started.nats, &ground.started.layout.names);
    let bindings = Bindings::of(nats, names, &MOVING);
    bindings.attach().await.unwrap();
    assert!(!bindings.open().await.unwrap());
    bindings.close().await.unwrap();
    // Nobody takes it now.
    let headers = named(expecting_in(&bindings.old, 0), "a");
    let refused = nats.publish(&subject(&ground), headers, "a".into()).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert!(bindings.open().await.unwrap());
    let back = bindings.reopen().await;
    assert!(back.is_ok(), "{back:?}");
    place(put(&ground, &bindings.new, 0, "a").await);
}

#[tokio::test]
async fn a_stream_does_not_take_again_what_it_remembers() {
    let ground = Ground::new("fact-again").await;
    let (nats, names) = (&ground.started.nats, &ground.started.layout.names);
    let bindings = Bindings::of(nats, names, &MOVING);
    let last = filled(&ground, &bindings.old, 3).await;
    bindings.attach().await.unwrap();
    copied(&ground, 3).await;
    bindings.detach().await.unwrap();
    nats.purge(&bindings.new, &bindings.subject, 1_000).await.unwrap();
    bindings.attach().await.unwrap();
    place(put(&ground, &bindings.old, last, "m3").await);
    // Only what it has never held.
    copied(&ground, 1).await;
}

#[tokio::test]
async fn a_fence_is_a_message_of_no_shard() {
    let ground = Ground::new("fact-fence").await;
    let (nats, names) = (&ground.started.nats, &ground.started.layout.names);
    let bindings = Bindings::of(nats, names, &MOVING);
    let mut headers = HeaderMap::new();
    headers.insert(NATS_EXPECTED_STREAM, bindings.old.as_str());
    bindings.close().await.unwrap();
    bindings.fence("one").await.unwrap();
    bindings.fence("two").await.unwrap();
    assert_eq!(ground.messages(OLD).await, 0);
    bindings.tidy().await.unwrap();
    let found = crate::streams::info(nats, &bindings.old).await.unwrap().unwrap();
    assert_eq!(found.state.messages, 0);
    assert_eq!(found.config.subjects.len(), 127);
    bindings.reopen().await.unwrap();
    // And now it is what it was.
    start(ground.options.clone(), &fresh(1)).await.unwrap();
}
