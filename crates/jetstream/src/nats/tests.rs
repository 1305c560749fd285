//! The handle against a real server, on good and on bad days.

use std::time::Duration;

use aip_engines::{NatsOptions, Proxy};
use aip_relay::mailbox::StoreError;

use super::*;
use crate::start::Started;
use crate::testing::{self, eventually, options};

mod cluster;

/// Any subject of a mailbox, and its stream.
fn subject(store: &Started, n: u8) -> (String, String) {
    let place = store
        .layout
        .mailbox_place(&aip_relay::mailbox::MailboxId::from_bytes([n; 16]));
    (place.stream.to_string(), place.entry_subject.to_string())
}

async fn put(nats: &Nats, subject: &str, last: u64, id: &str, payload: &str) -> Published {
    nats.publish(subject, named(expecting(last), id), payload.to_owned().into())
        .await
        .expect("an answer")
}

fn place(published: Published) -> u64 {
    match published {
        Published::Stored { stream_seq } => stream_seq,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_publish_is_a_compare_and_set_with_an_id() {
    let store = testing::started("handle-cas").await;
    let (stream, subject) = subject(&store, 1);
    let nats = &store.nats;
    let before = nats.stats().counts();
    let first = place(put(nats, &subject, 0, "a", "1").await);
    let wrong = put(nats, &subject, 0, "b", "2").await;
    assert_eq!(wrong, Published::WrongLast { last: Some(first) });
    let twin = put(nats, &subject, first, "a", "1").await;
    assert_eq!(twin, Published::Duplicate { stream_seq: first });
    let second = place(put(nats, &subject, first, "b", "2").await);
    let last = nats
        .last_of(&stream, &subject)
        .await
        .expect("read")
        .expect("there");
    assert_eq!((last.stream_seq, &last.payload[..]), (second, &b"2"[..]));
    let id = last
        .headers
        .get(async_nats::header::NATS_MESSAGE_ID)
        .expect("an id");
    assert_eq!(id.as_str(), "b");
    let after = nats.stats().counts();
    assert_eq!(after.publishes - before.publishes, 2);
    assert_eq!(after.cas_conflicts - before.cas_conflicts, 1);
    assert_eq!(after.duplicates - before.duplicates, 1);
}

#[tokio::test]
async fn messages_are_read_one_by_one_and_in_batches() {
    let store = testing::started("handle-read").await;
    let (stream, ours) = subject(&store, 1);
    let nats = &store.nats;
    let (mut last, mut places) = (0, Vec::new());
    for n in 0..5 {
        last = place(put(nats, &ours, last, &format!("r{n}"), &n.to_string().repeat(100)).await);
        places.push(last);
    }
    let at = nats.at(&stream, places[1]).await.expect("read").expect("there");
    assert_eq!((at.stream_seq, at.payload[0]), (places[1], b'1'));
    assert!(nats.at(&stream, 1_000_000).await.expect("read").is_none());
    let direct = nats
        .last_direct(&stream, &ours)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(direct.stream_seq, last);
    let (_, nobody) = subject(&store, 9);
    assert!(nats.last_direct(&stream, &nobody).await.expect("read").is_none());
    assert!(nats.last_of(&stream, &nobody).await.expect("read").is_none());

    let seqs = |batch: &Batch| batch.messages.iter().map(|m| m.stream_seq).collect::<Vec<_>>();
    let all = nats.batch(&stream, &ours, 1, 100, 1_000_000).await.expect("read");
    assert_eq!((seqs(&all), all.more), (places.clone(), false));
    let some = nats
        .batch(&stream, &ours, places[1], 2, 1_000_000)
        .await
        .expect("read");
    assert_eq!((seqs(&some), some.more), (places[1..3].to_vec(), true));
    let few = nats.batch(&stream, &ours, 1, 100, 1).await.expect("read");
    assert_eq!((seqs(&few), few.more), (places[..1].to_vec(), true));
    for (filter, from) in [(&nobody, 1), (&ours, last + 1)] {
        let none = nats.batch(&stream, filter, from, 10, 1_000).await.expect("read");
        assert!(none.messages.is_empty() && !none.more);
    }
}

#[tokio::test]
async fn many_batches_at_once_do_not_mix() {
    let store = testing::started("handle-mix").await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..200_u8 {
        let (stream, ours) = subject(&store, n);
        let nats = store.nats.clone();
        tasks.spawn(async move {
            let mut last = 0;
            for m in 0..3 {
                last = place(put(&nats, &ours, last, &format!("m{n}-{m}"), &n.to_string()).await);
            }
            let batch = nats.batch(&stream, &ours, 1, 10, 100_000).await.expect("read");
            assert_eq!(batch.messages.len(), 3);
            for message in batch.messages {
                assert_eq!(message.payload, n.to_string());
            }
        });
    }
    tasks.join_all().await;
}

#[tokio::test]
async fn a_purge_keeps_what_it_is_told_to_keep() {
    let store = testing::started("handle-purge").await;
    let (stream, ours) = subject(&store, 1);
    let (_, other) = subject(&store, 2);
    let nats = &store.nats;
    let mut last = 0;
    for n in 0..4 {
        last = place(put(nats, &ours, last, &format!("p{n}"), "x").await);
    }
    place(put(nats, &other, 0, "other", "x").await);
    assert_eq!(nats.purge(&stream, &ours, last).await.expect("purged"), 3);
    let left = nats.batch(&stream, &ours, 1, 10, 1_000).await.expect("read");
    assert_eq!(left.messages.len(), 1);
    // The expected last sequence is that of the message left.
    place(put(nats, &ours, last, "p9", "x").await);
    assert_eq!(nats.stats().counts().purged, 3);
}

#[tokio::test]
async fn subjects_are_listed() {
    let store = testing::started("handle-list").await;
    let nats = &store.nats;
    for minute in [5, 7] {
        nats.publish(&format!("handle-list.ex.{minute}"), HeaderMap::new(), "x".into())
            .await
            .expect("stored");
    }
    let mut found = nats
        .subjects(&store.layout.expiries, "handle-list.ex.*")
        .await
        .expect("listed");
    found.sort_unstable();
    assert_eq!(found, ["handle-list.ex.5", "handle-list.ex.7"]);
}

#[tokio::test]
async fn a_stream_that_is_not_there_is_unavailable() {
    let store = testing::started("handle-none").await;
    let nats = &store.nats;
    let unavailable = |error| matches!(error, StoreError::Unavailable(_));
    let publish = nats
        .publish("handle-none.nowhere.x", expecting(0), "x".into())
        .await;
    assert!(publish.is_err_and(unavailable));
    assert!(nats.batch("NOPE", "x", 1, 1, 1).await.is_err_and(unavailable));
    assert!(nats.last_of("NOPE", "x").await.is_err_and(unavailable));
    assert!(nats.last_direct("NOPE", "x").await.is_err_and(unavailable));
    assert!(nats.purge("NOPE", "x", 1).await.is_err_and(unavailable));
}

/// A store behind a proxy, with little patience.
async fn behind(proxy: &Proxy, server: &aip_engines::Nats, prefix: &str) -> Started {
    testing::started_at(&server.url(), prefix).await;
    let options = Options {
        publish_try: Duration::from_millis(200),
        publish_deadline: Duration::from_secs(2),
        read_timeout: Duration::from_millis(300),
        ..options(&proxy.url(&server.url()), prefix)
    };
    crate::start::start(options, &testing::fresh(2))
        .await
        .expect("opens")
}

#[tokio::test]
async fn without_a_connection_everything_fails_at_once() {
    let server = aip_engines::Nats::start(NatsOptions::default());
    let proxy = Proxy::to(server.address());
    let store = behind(&proxy, &server, "handle-cut").await;
    let (stream, subject) = subject(&store, 1);
    proxy.cut();
    eventually("the loss is noticed", || !store.nats.connected()).await;
    let unavailable = |error| matches!(error, StoreError::Unavailable(_));
    let publish = store
        .nats
        .publish(&subject, named(expecting(0), "a"), "x".into())
        .await;
    assert!(publish.is_err_and(unavailable));
    assert!(
        store
            .nats
            .last_of(&stream, &subject)
            .await
            .is_err_and(unavailable)
    );
    assert!(
        store
            .nats
            .batch(&stream, &subject, 1, 1, 1)
            .await
            .is_err_and(unavailable)
    );
    assert_eq!(store.nats.stats().counts().timeouts, 0, "nothing was waited for");
    proxy.heal();
    eventually("connected", || store.nats.connected()).await;
    place(put(&store.nats, &subject, 0, "a", "x").await);
}

/// The server takes the message, its confirmation gets lost: the repetition finds it, though a compare-and-set that
/// was overtaken by itself looks like a lost race.
#[tokio::test]
async fn a_lost_confirmation_is_made_good_by_the_same_id() {
    let server = aip_engines::Nats::start(NatsOptions::default());
    let proxy = Proxy::to(server.address());
    let store = behind(&proxy, &server, "handle-mute").await;
    let (stream, subject) = subject(&store, 1);
    let seen = testing::started_at(&server.url(), "handle-mute").await.nats;
    proxy.mute();
    let publish = tokio::spawn({
        let (nats, subject) = (store.nats.clone(), subject.clone());
        async move { nats.publish(&subject, named(expecting(0), "a"), "x".into()).await }
    });
    while seen.last_of(&stream, &subject).await.expect("read").is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    proxy.heal();
    let published = publish.await.expect("no panic").expect("known in the end");
    let stored = seen
        .last_of(&stream, &subject)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(
        published,
        Published::Stored {
            stream_seq: stored.stream_seq
        }
    );
    let all = seen.batch(&stream, &subject, 1, 10, 1_000).await.expect("read");
    assert_eq!(all.messages.len(), 1, "stored once");
}

#[tokio::test]
async fn what_is_never_confirmed_is_unknown() {
    let server = aip_engines::Nats::start(NatsOptions::default());
    let proxy = Proxy::to(server.address());
    let store = behind(&proxy, &server, "handle-never").await;
    let (stream, subject) = subject(&store, 1);
    proxy.mute();
    let named = store
        .nats
        .publish(&subject, named(expecting(0), "a"), "x".into())
        .await;
    assert!(named.is_err_and(|error| matches!(error, StoreError::OutcomeUnknown(_))));
    let retries = store.nats.stats().counts().publish_retries;
    assert!(retries > 0);
    let nameless = store.nats.publish(&subject, expecting(0), "x".into()).await;
    assert!(nameless.is_err_and(|error| matches!(error, StoreError::OutcomeUnknown(_))));
    assert_eq!(
        store.nats.stats().counts().publish_retries,
        retries,
        "one try only"
    );
    let read = store.nats.batch(&stream, &subject, 1, 1, 1).await;
    assert!(read.is_err_and(|error| matches!(error, StoreError::Unavailable(_))));
    assert_eq!(store.nats.stats().counts().unknown_outcomes, 2);
}
