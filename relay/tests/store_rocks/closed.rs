//! What is set right in a store that nobody has open.

use std::time::Duration;

use aip_protocol::time::Timestamp;
use aip_relay::dedup::DedupWindow as _;
use aip_relay::limits::{DEAD_LETTER_SECS, RETENTION_SECS, STATUS_SECS};
use aip_relay::mailbox::rocks::{ClosedStore, OpenError, Retimed, RocksMailboxes};
use aip_relay::mailbox::suite::{bob, did, duplicate, envelope, letter, outbox, remote, stored};
use aip_relay::mailbox::{
    DeadLetters as _, Epoch, Fate, Fetch, Mailboxes as _, Outboxes as _, Select, Status, Statuses as _,
    StoredMessage, Upkeep as _,
};

use crate::ground::{Ground, mail, pending, start};

const RETENTION: Duration = Duration::from_secs(RETENTION_SECS);

fn closed(ground: &Ground) -> ClosedStore {
    ClosedStore::open(&ground.path()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_epoch_is_renewed_and_nothing_else() {
    let ground = Ground::new();
    ground.open().append(mail(1)).await.unwrap();
    let epoch = Epoch::from_random(9);
    closed(&ground).renew_epoch(&epoch).unwrap();
    let store = ground.open();
    assert_eq!((store.epoch(), store.stats().lost_batches), (epoch, 0));
    assert_eq!(pending(&store).await, [1]);
    assert_eq!(store.append(mail(1)).await.unwrap(), duplicate(1));
    assert_eq!(store.append(mail(2)).await.unwrap(), stored(2));
}

#[test]
fn a_store_in_use_is_left_alone_and_one_that_is_missing_is_not_made() {
    let ground = Ground::new();
    let missing = ClosedStore::open(&ground.path()).unwrap_err();
    assert!(missing.to_string().contains("there is none"), "{missing}");
    assert!(!ground.path().exists());
    let store = ground.open();
    let refused = ClosedStore::open(&ground.path());
    assert!(matches!(refused, Err(OpenError::Locked { .. })), "{refused:?}");
    drop(store);
    assert_eq!(closed(&ground).clock_high_water().unwrap(), None);
}

async fn fetched(store: &RocksMailboxes, now: Timestamp) -> Vec<StoredMessage> {
    let fetch = Fetch {
        select: Select::After(0),
        max_messages: 100,
        max_bytes: usize::MAX,
        now,
    };
    store.fetch(&bob(), fetch).await.unwrap()
}

async fn status(store: &RocksMailboxes, n: u64) -> Vec<Status> {
    let id = mail(n).id;
    let records = store.status(&did("alice"), id, None).await.unwrap();
    records.into_iter().map(|record| record.status).collect()
}

/// A store of which the clock was right, then ten years ahead, and is right again an hour later.
struct Ahead {
    ground: Ground,
    future: Timestamp,
    now: Timestamp,
}

impl Ahead {
    async fn new() -> Self {
        let (ground, now) = (Ground::new(), start() + Duration::from_hours(1));
        let future = start() + Duration::from_hours(24 * 365 * 10);
        let store = ground.open();
        store.append(mail(1)).await.unwrap();
        store.append(envelope(future, "alice", "bob", 2)).await.unwrap();
        store.append(envelope(future, "alice", "bob", 3)).await.unwrap();
        store.bury(&bob(), 3, "no_handler", future).await.unwrap();
        let swept = store.sweep(future).await.unwrap();
        assert_eq!(swept.expired.len(), 1, "the wrong time ends the first one");
        Self { ground, future, now }
    }

    fn reset(&self) -> Retimed {
        let store = closed(&self.ground);
        assert_eq!(store.clock_high_water().unwrap(), Some(self.future));
        store
            .reset_clock(self.now, RETENTION, &Epoch::from_random(9))
            .unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_was_far_ahead_is_set_back() {
    let ahead = Ahead::new().await;
    let one_each = Retimed {
        messages: 1,
        dead_letters: 1,
    };
    assert_eq!(ahead.reset(), one_each);
    let again = closed(&ahead.ground).reset_clock(ahead.now, RETENTION, &Epoch::from_random(9));
    assert_eq!(again.unwrap(), Retimed::default());
    let (store, now) = (ahead.ground.open(), ahead.now);
    assert_eq!(store.epoch(), Epoch::from_random(9));
    assert_eq!(store.clock_high_water(), Some(now));
    let seen = fetched(&store, now).await;
    let seen: Vec<_> = seen
        .iter()
        .map(|message| (message.seq, message.accepted_at))
        .collect();
    assert_eq!(seen, [(2, now)], "it begins its time now");
    assert_eq!(status(&store, 2).await, [Status::Stored]);
    assert_eq!(
        store.append(envelope(now, "alice", "bob", 4)).await.unwrap(),
        stored(4)
    );
}

/// What waits for a peer begins its time anew like other mail, and is still told to be queued.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_letter_that_was_queued_in_the_future_is_queued_now() {
    let (ground, now) = (Ground::new(), start() + Duration::from_hours(1));
    let future = start() + Duration::from_hours(24 * 365 * 10);
    let sent = letter(future, "alice", remote("erin"), 1);
    ground.open().append(sent.clone()).await.unwrap();
    let reset = closed(&ground).reset_clock(now, RETENTION, &Epoch::from_random(9));
    assert_eq!(reset.unwrap().messages, 1);
    let store = ground.open();
    let told = store
        .status(&sent.sender, sent.id, Some(&sent.recipient))
        .await
        .unwrap();
    let told: Vec<_> = told.iter().map(|record| (record.status, record.at)).collect();
    assert_eq!(told, [(Status::Queued, now)]);
    let fates = [(1, Fate::Delivered)];
    assert_eq!(
        store.settle_outbox(&outbox(), &fates, now).await.unwrap().len(),
        1
    );
    let told = store
        .status(&sent.sender, sent.id, Some(&sent.recipient))
        .await
        .unwrap();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].status, Status::Delivered);
}

/// The hub of that future would recognise a retry, so the hub that has come there in the right time does, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_accepted_in_the_future_is_remembered_for_then() {
    let ahead = Ahead::new().await;
    ahead.reset();
    let (store, retry) = (ahead.ground.open(), envelope(ahead.future, "alice", "bob", 2));
    store.sweep(ahead.now).await.unwrap();
    let seen = store
        .seen(retry.dedup_key, retry.digest, ahead.now)
        .await
        .unwrap();
    assert_eq!(seen, None, "no retry of it is legal now");
    assert_eq!(store.append(retry).await.unwrap(), duplicate(2));
}

/// Otherwise the store would keep everything until the wrong time has come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ends_after_the_reset_ends_in_its_time() {
    let ahead = Ahead::new().await;
    ahead.reset();
    let (store, now) = (ahead.ground.open(), ahead.now);
    let late = envelope(now, "alice", "bob", 4);
    store.append(late.clone()).await.unwrap();
    store.sweep(now).await.unwrap();
    let end = now + RETENTION;
    let swept = store.sweep(end).await.unwrap();
    assert_eq!(
        swept
            .expired
            .iter()
            .map(|settled| settled.seq)
            .collect::<Vec<_>>(),
        [2, 4]
    );
    assert_eq!(status(&store, 4).await, [Status::Expired]);
    let end = now + Duration::from_secs(DEAD_LETTER_SECS);
    assert_eq!(store.sweep(end).await.unwrap().dead_letters, 1);
    let end = now + Duration::from_secs(STATUS_SECS + 2 * 86_400);
    store.append(envelope(end, "alice", "bob", 5)).await.unwrap();
    store.sweep(end).await.unwrap();
    assert_eq!(status(&store, 4).await, [], "its bucket is dropped");
    let statuses = store.statuses_after(None, 100).await.unwrap();
    assert_eq!(statuses.len(), 1, "{statuses:?}");
    assert_eq!(store.accepted(late.dedup_key, now).await.unwrap(), None);
}
