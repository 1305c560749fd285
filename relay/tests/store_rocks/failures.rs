//! Failed writes and a full disk.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;

use aip_relay::mailbox::suite::{bob, duplicate, stored};
use aip_relay::mailbox::{AckOutcome, Health, Mailboxes, StoreError, Upkeep};

use crate::ground::{Ground, mail, pending, start, until};

/// Never 202 for what is not on the disk. After a failed write nothing is taken until the store is opened
/// again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_27_a_failed_write_closes_the_store() {
    let ground = Ground::new();
    let store = ground.open();
    store.append(mail(1)).await.unwrap();
    ground.disk.fail_before.store(true, SeqCst);
    assert!(matches!(
        store.append(mail(2)).await,
        Err(StoreError::OutcomeUnknown(_))
    ));
    ground.disk.fail_before.store(false, SeqCst);
    assert!(
        matches!(store.append(mail(3)).await, Err(StoreError::Unavailable(_))),
        "even if the disk is well again"
    );
    assert!(matches!(
        store.ack(&bob(), 1, &[], start()).await,
        Err(StoreError::Unavailable(_))
    ));
    assert!(matches!(
        store.sweep(start()).await,
        Err(StoreError::Unavailable(_))
    ));
    assert_eq!(
        store.health(),
        Health::Poisoned {
            reason: "no space left on device".into()
        }
    );
    let stats = store.stats();
    assert_eq!((stats.poisoned, stats.stored), (true, 1));
    assert_eq!(pending(&store).await, [1], "reads go on");
    drop(store);

    let store = ground.open();
    assert_eq!(store.health(), Health::Ready);
    assert_eq!(store.append(mail(2)).await.unwrap(), stored(2));
}

/// The write went through but its answer was an error: nobody is told `stored`, and the retry learns the
/// truth.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_after_an_unknown_outcome_tells_the_truth() {
    let ground = Ground::new();
    let store = ground.open();
    ground.disk.fail_after.store(true, SeqCst);
    assert!(matches!(
        store.append(mail(1)).await,
        Err(StoreError::OutcomeUnknown(_))
    ));
    ground.disk.fail_after.store(false, SeqCst);
    drop(store);
    let store = ground.open();
    assert_eq!(store.append(mail(1)).await.unwrap(), duplicate(1));
    assert_eq!(pending(&store).await, [1]);
}

/// A full disk: appends are refused, reads and acks go on, and with space it goes on by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_27_a_full_disk_refuses_appends_only() {
    let ground = Ground::new();
    let store = ground.open();
    store.append(mail(1)).await.unwrap();
    ground.disk.full.store(true, SeqCst);
    assert_eq!(store.health(), Health::DiskFull { free_bytes: 9 });
    assert!(matches!(
        store.append(mail(2)).await,
        Err(StoreError::Unavailable(_))
    ));
    assert_eq!(pending(&store).await, [1]);
    assert!(matches!(
        store.ack(&bob(), 1, &[], start()).await.unwrap(),
        AckOutcome::Acked(_)
    ));
    store.sweep(start()).await.unwrap();
    assert_eq!(store.stats().disk_free_bytes, Some(9));
    ground.disk.full.store(false, SeqCst);
    assert_eq!(store.health(), Health::Ready);
    assert_eq!(store.append(mail(2)).await.unwrap(), stored(2));
}

/// Bytes of all files in a folder.
fn bytes_in(dir: &Path) -> u64 {
    let sizes = fs::read_dir(dir)
        .unwrap()
        .filter_map(|entry| entry.unwrap().metadata().ok());
    sizes.map(|file| file.len()).sum()
}

/// What was acked gives its space back although the full disk lets nothing in that would push it out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_84_a_full_disk_becomes_free_again() {
    let ground = Ground::new();
    let store = ground.open();
    let db = ground.path().join("db");
    for n in 1..=90 {
        let mut large = mail(n);
        large.wire = vec![b'x'; 128 * 1024].into();
        store.append(large).await.unwrap();
    }
    let filled = bytes_in(&db);
    assert!(filled > 90 * 128 * 1024);
    ground.disk.full.store(true, SeqCst);
    store.ack(&bob(), 90, &[], start()).await.unwrap();
    store.sweep(start()).await.unwrap();
    until(|| bytes_in(&db) < filled / 10).await;
    assert_eq!(store.state(&bob()).await.unwrap().pending, 0);
}

/// A panic of the writer closes the store like a failed write: nobody waits for ever, nobody is told
/// `stored`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_of_the_writer_closes_the_store() {
    let ground = Ground::new();
    let store = ground.open();
    store.append(mail(1)).await.unwrap();
    ground.disk.panics.store(true, SeqCst);
    assert!(matches!(
        store.append(mail(2)).await,
        Err(StoreError::OutcomeUnknown(_))
    ));
    until(|| matches!(store.health(), Health::Poisoned { .. })).await;
    assert!(store.append(mail(3)).await.is_err());
    assert_eq!(pending(&store).await, [1]);
}
