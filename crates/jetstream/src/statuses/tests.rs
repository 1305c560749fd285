//! Statuses, written and looked up.

use std::time::Duration;

use aip_engines::{NatsOptions, Proxy};

use super::*;
use crate::testing::{self, eventually};

fn did(name: &str) -> Did {
    testing::did(name)
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_unix_secs(1_800_000_000 + secs)
}

fn record(to: &str, status: Status, secs: i64, seq: Option<u64>) -> StatusRecord {
    StatusRecord {
        to: did(to),
        status,
        code: (status == Status::Expired).then(|| "expired".to_owned()),
        accepted_at: at(0),
        at: at(secs),
        seq,
    }
}

fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

fn statuses(store: &crate::start::Started) -> Statuses {
    let background = Arc::new(Background::start(store.nats.clone()));
    Statuses::new(store.nats.clone(), Arc::clone(&store.layout), background)
}

#[test]
fn what_was_written_reads_back() {
    for (status, seq) in [
        (Status::Stored, Some(7)),
        (Status::Expired, None),
        (Status::Dead, Some(1)),
    ] {
        let written = Written {
            sender: MailboxId::of(&did("alice")),
            id: id(5),
            record: record("bob", status, 9, seq),
        };
        assert_eq!(unpack(&pack(&written)), Ok(written));
    }
    assert!(unpack(b"").is_err());
    assert!(unpack(&[VERSION; 60]).is_err());
}

#[tokio::test]
async fn the_newest_record_counts_in_whatever_order_they_arrive() {
    let store = testing::started("status-order").await;
    let (here, alice) = (statuses(&store), did("alice"));
    // The late one was queued behind a slow server.
    here.note(&alice, id(1), record("bob", Status::Acked, 5, Some(1)));
    assert!(here.background.flush(Duration::from_secs(20)).await);
    here.note(&alice, id(1), record("bob", Status::Stored, 0, Some(1)));
    // All at the same moment: final after not final; a redriven message has a place of its own.
    here.note(&alice, id(2), record("bob", Status::Dead, 0, Some(2)));
    here.note(&alice, id(2), record("bob", Status::Stored, 0, Some(2)));
    here.note(&alice, id(3), record("bob", Status::Stored, 0, Some(9)));
    here.note(&alice, id(3), record("bob", Status::Dead, 0, Some(3)));
    let newest = async |n| {
        let found = here.look_up(&alice, id(n), None, at(0)).await.expect("read");
        found.iter().map(|record| record.status).collect::<Vec<_>>()
    };
    assert_eq!(newest(1).await, [Status::Acked]);
    assert_eq!(newest(2).await, [Status::Dead]);
    assert_eq!(newest(3).await, [Status::Stored]);
    assert_eq!(newest(4).await, []);
}

#[tokio::test]
async fn a_look_up_tells_each_recipient_and_only_what_the_sender_sent() {
    let store = testing::started("status-keys").await;
    let (here, alice, mallory) = (statuses(&store), did("alice"), did("mallory"));
    here.note(&alice, id(1), record("bob", Status::Stored, 0, Some(1)));
    let mut later = record("carol", Status::Delivered, 0, None);
    later.accepted_at = at(60);
    here.note(&alice, id(1), later.clone());
    here.note(&mallory, id(1), record("bob", Status::Refused, 0, None));
    let all = here.look_up(&alice, id(1), None, at(0)).await.expect("read");
    assert_eq!(all, [record("bob", Status::Stored, 0, Some(1)), later.clone()]);
    let one = here
        .look_up(&alice, id(1), Some(&did("carol")), at(0))
        .await
        .expect("read");
    assert_eq!(one, std::slice::from_ref(&later));
    let forgotten = here.look_up(&alice, id(1), None, at(1)).await.expect("read");
    assert_eq!(forgotten, [later]);
}

/// Another process sees what this one has flushed; the servers may be away in between.
#[tokio::test]
async fn records_wait_for_the_servers() {
    let server = aip_engines::Nats::start(NatsOptions::default());
    let proxy = Proxy::to(server.address());
    let there = testing::started_at(&server.url(), "status-wait").await;
    let here = testing::started_at(&proxy.url(&server.url()), "status-wait").await;
    let (ours, theirs, alice) = (statuses(&here), statuses(&there), did("alice"));
    proxy.cut();
    eventually("the loss is noticed", || !here.nats.connected()).await;
    ours.note(&alice, id(1), record("bob", Status::Stored, 0, Some(1)));
    assert!(!ours.background.flush(Duration::from_millis(50)).await);
    proxy.heal();
    assert!(ours.background.flush(Duration::from_secs(20)).await);
    let found = theirs.look_up(&alice, id(1), None, at(0)).await.expect("read");
    assert_eq!(found, [record("bob", Status::Stored, 0, Some(1))]);
    assert_eq!(here.nats.stats().counts().records_dropped, 0);
}
