//! What every inbox must do, whatever it is made of.

use aip_protocol::time::Timestamp;

use super::{Cursor, Inbox, MessageKey};

pub(super) fn key(epoch: &str, seq: u64, id: u8) -> MessageKey {
    MessageKey {
        cursor: Cursor {
            epoch: epoch.into(),
            seq,
        },
        id: [id; 16],
    }
}

pub(super) fn now() -> Timestamp {
    Timestamp::from_unix_millis(1_795_983_330_123)
}

/// Every rule, on a fresh inbox each.
pub(super) async fn run<I: Inbox>(make: impl Fn() -> I) {
    starts_without_a_cursor(&make()).await;
    what_was_recorded_is_seen(&make()).await;
    a_gap_holds_the_floor(&make()).await;
    the_hubs_floor_counts(&make()).await;
    a_new_epoch_dedups_by_id(&make()).await;
    a_late_record_of_an_old_epoch_keeps_the_id(&make()).await;
    recording_twice_is_once(&make()).await;
    a_record_below_the_floor_keeps_the_id(&make()).await;
    an_epoch_that_comes_back_starts_at_the_hubs_floor(&make()).await;
}

async fn starts_without_a_cursor(inbox: &dyn Inbox) {
    assert_eq!(inbox.cursor().await.unwrap(), None);
    assert!(!inbox.seen(&key("a", 1, 1)).await.unwrap());
}

async fn what_was_recorded_is_seen(inbox: &dyn Inbox) {
    inbox.enter("a", 0).await.unwrap();
    inbox
        .record(&[key("a", 1, 1), key("a", 2, 2)], now())
        .await
        .unwrap();
    assert!(inbox.seen(&key("a", 1, 1)).await.unwrap());
    assert!(inbox.seen(&key("a", 2, 2)).await.unwrap());
    assert!(!inbox.seen(&key("a", 3, 3)).await.unwrap());
    assert_eq!(
        inbox.cursor().await.unwrap(),
        Some(Cursor {
            epoch: "a".into(),
            seq: 2
        })
    );
}

async fn a_gap_holds_the_floor(inbox: &dyn Inbox) {
    inbox.enter("a", 0).await.unwrap();
    inbox.record(&[key("a", 3, 3)], now()).await.unwrap();
    assert_eq!(inbox.cursor().await.unwrap().unwrap().seq, 0);
    assert!(inbox.seen(&key("a", 3, 3)).await.unwrap());
    assert!(!inbox.seen(&key("a", 2, 2)).await.unwrap());
    inbox
        .record(&[key("a", 1, 1), key("a", 2, 2)], now())
        .await
        .unwrap();
    assert_eq!(inbox.cursor().await.unwrap().unwrap().seq, 3);
}

async fn the_hubs_floor_counts(inbox: &dyn Inbox) {
    inbox.enter("a", 5).await.unwrap();
    assert!(inbox.seen(&key("a", 5, 5)).await.unwrap());
    assert!(!inbox.seen(&key("a", 6, 6)).await.unwrap());
    inbox.enter("a", 2).await.unwrap();
    assert_eq!(
        inbox.cursor().await.unwrap().unwrap().seq,
        5,
        "a floor never goes back"
    );
}

async fn a_new_epoch_dedups_by_id(inbox: &dyn Inbox) {
    inbox.enter("a", 0).await.unwrap();
    inbox
        .record(&[key("a", 1, 1), key("a", 2, 2)], now())
        .await
        .unwrap();
    inbox.enter("b", 0).await.unwrap();
    assert!(
        inbox.seen(&key("b", 9, 1)).await.unwrap(),
        "the same message in a restored mailbox"
    );
    assert!(
        !inbox.seen(&key("b", 1, 3)).await.unwrap(),
        "another message under an old sequence number"
    );
    assert_eq!(
        inbox.cursor().await.unwrap(),
        Some(Cursor {
            epoch: "b".into(),
            seq: 0
        })
    );
}

async fn a_late_record_of_an_old_epoch_keeps_the_id(inbox: &dyn Inbox) {
    inbox.enter("a", 0).await.unwrap();
    inbox.enter("b", 0).await.unwrap();
    inbox.record(&[key("a", 1, 1)], now()).await.unwrap();
    assert!(inbox.seen(&key("b", 7, 1)).await.unwrap());
    assert!(!inbox.seen(&key("b", 1, 2)).await.unwrap());
    assert_eq!(
        inbox.cursor().await.unwrap(),
        Some(Cursor {
            epoch: "b".into(),
            seq: 0
        })
    );
}

async fn recording_twice_is_once(inbox: &dyn Inbox) {
    inbox.enter("a", 0).await.unwrap();
    for _ in 0..3 {
        inbox.record(&[key("a", 1, 1)], now()).await.unwrap();
    }
    assert_eq!(inbox.cursor().await.unwrap().unwrap().seq, 1);
}

/// The hub's floor passed the message while the application worked on it: it ran out, or went to the dead letters.
async fn a_record_below_the_floor_keeps_the_id(inbox: &dyn Inbox) {
    inbox.enter("a", 0).await.unwrap();
    inbox.enter("a", 3).await.unwrap();
    inbox.record(&[key("a", 2, 2)], now()).await.unwrap();
    inbox.enter("b", 0).await.unwrap();
    assert!(inbox.seen(&key("b", 1, 2)).await.unwrap());
}

/// A process that has not heard of the restore yet answers between two that have.
async fn an_epoch_that_comes_back_starts_at_the_hubs_floor(inbox: &dyn Inbox) {
    inbox.enter("a", 0).await.unwrap();
    inbox
        .record(&[key("a", 1, 1), key("a", 2, 2)], now())
        .await
        .unwrap();
    inbox.enter("b", 1).await.unwrap();
    inbox.enter("a", 0).await.unwrap();
    assert_eq!(inbox.cursor().await.unwrap().unwrap().seq, 0);
    assert!(inbox.seen(&key("a", 2, 2)).await.unwrap(), "by its id");
    assert!(!inbox.seen(&key("a", 3, 3)).await.unwrap());
}
