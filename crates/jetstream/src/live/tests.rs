//! Hints: what is missed, how looks are spread, and watching on a real server.

use async_nats::HeaderMap;

use super::*;
use crate::testing::{self, eventually};

fn hint(seq: u64, before: u64) -> Message {
    let mut headers = HeaderMap::new();
    headers.insert(NATS_SEQUENCE, seq.to_string());
    headers.insert(NATS_LAST_SEQUENCE, before.to_string());
    Message {
        subject: "aip.live.00.x".into(),
        reply: None,
        payload: bytes::Bytes::new(),
        headers: Some(headers),
        status: None,
        description: None,
        length: 0,
    }
}

#[test]
fn only_a_message_after_the_last_seen_one_was_missed() {
    let mut last = 0;
    // Whatever was there before the watch is not missed.
    assert!(!missed(&hint(10, 7), &mut last));
    assert!(!missed(&hint(12, 10), &mut last));
    assert!(missed(&hint(20, 15), &mut last));
    // After a purge the message before is gone, or an older one.
    assert!(!missed(&hint(21, 0), &mut last));
    assert!(!missed(&hint(22, 9), &mut last));
}

#[test]
fn looks_are_spread_over_their_interval() {
    let parts = limits::LOOK_EVERY.as_secs();
    let mut looked = vec![0; usize::try_from(parts).expect("few")];
    for n in 0..3_000 {
        let mailbox = MailboxId::of(&testing::did(&format!("agent{n}")));
        looked[usize::try_from(part_of(&mailbox, parts)).expect("few")] += 1;
    }
    assert!(looked.iter().all(|times| (50..200).contains(times)), "{looked:?}");
}

fn live(here: &crate::start::Started, woken: &Woken) -> Live {
    let (nats, layout) = (here.nats.clone(), Arc::clone(&here.layout));
    let follower = Follower::start(nats.clone(), Arc::clone(&layout));
    Live::start(nats, layout, follower, wake(woken))
}

type Woken = Arc<Mutex<Vec<(MailboxId, Option<u64>)>>>;

fn wake(woken: &Woken) -> Wake {
    let woken = Arc::clone(woken);
    Arc::new(move |mailbox, seq| woken.lock().expect("no panic").push((*mailbox, seq)))
}

async fn store(nats: &Nats, layout: &Layout, mailbox: &MailboxId, seq: u64) {
    let mut headers = HeaderMap::new();
    headers.insert(SEQ_HEADER, seq.to_string());
    let place = layout.mailbox_place(mailbox);
    nats.publish(&place.entry_subject, headers, "entry".into())
        .await
        .expect("stored");
}

#[tokio::test]
async fn a_watched_mailbox_is_woken_by_what_another_process_stores() {
    let here = testing::started("live-wake").await;
    let there = testing::started("live-wake").await;
    let woken = Woken::default();
    let live = live(&here, &woken);
    let (a, b) = (MailboxId::from_bytes([1; 16]), MailboxId::from_bytes([2; 16]));
    live.watch(&a).await;
    live.watch(&a).await;
    store(&there.nats, &there.layout, &b, 1).await;
    store(&there.nats, &there.layout, &a, 1).await;
    let hinted = |mailbox, seq| woken.lock().expect("no panic").contains(&(mailbox, Some(seq)));
    eventually("a hint", || hinted(a, 1)).await;
    assert!(!hinted(b, 1));
    live.unwatch(&a);
    live.watch(&b).await;
    store(&there.nats, &there.layout, &a, 2).await;
    store(&there.nats, &there.layout, &b, 2).await;
    eventually("a hint", || hinted(b, 2)).await;
    assert!(!hinted(a, 2), "not watched any more");
    assert_eq!(here.nats.stats().counts().missed_hints, 0);
}

#[tokio::test]
async fn a_reconnect_wakes_everything_and_keeps_the_subscriptions() {
    let server = aip_engines::Nats::start(aip_engines::NatsOptions::default());
    let proxy = aip_engines::Proxy::to(server.address());
    let there = testing::started_at(&server.url(), "live-cut").await;
    let here = testing::started_at(&proxy.url(&server.url()), "live-cut").await;
    let woken = Woken::default();
    let live = live(&here, &woken);
    let mailbox = MailboxId::from_bytes([3; 16]);
    live.watch(&mailbox).await;
    proxy.cut();
    eventually("the loss is noticed", || !here.nats.connected()).await;
    store(&there.nats, &there.layout, &mailbox, 1).await;
    woken.lock().expect("no panic").clear();
    proxy.heal();
    let said = |what| woken.lock().expect("no panic").contains(&(mailbox, what));
    eventually("the reconnect wakes", || said(None)).await;
    eventually("connected", || here.nats.connected()).await;
    here.nats
        .round_trip(limits::WATCH_TIMEOUT)
        .await
        .expect("the server answers");
    store(&there.nats, &there.layout, &mailbox, 2).await;
    eventually("hints go on", || said(Some(2))).await;
    assert_eq!(here.nats.stats().counts().reconnects, 1);
}
