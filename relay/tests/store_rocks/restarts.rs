//! What a restart, a crash and a damaged log leave.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use aip_relay::dedup::{DedupWindow, Seen};
use aip_relay::mailbox::rocks::{DiskGuard, RocksMailboxes, RocksOptions};
use aip_relay::mailbox::suite::{bob, did, duplicate, stored};
use aip_relay::mailbox::{AppendOutcome, DeadLetters, Epoch, Mailboxes, Route, Status, Statuses, Upkeep};
use uuid::Uuid;

use crate::ground::{Ground, copy, mail, open, pending, start, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_keeps_everything() {
    let ground = Ground::new();
    let store = ground.open();
    let epoch = store.epoch();
    for n in 1..=5 {
        assert_eq!(store.append(mail(n)).await.unwrap(), stored(n));
    }
    store.offer(&bob(), &[4], 1).await.unwrap();
    store.offer(&bob(), &[4], 2).await.unwrap();
    store.ack(&bob(), 1, &[3], start()).await.unwrap();
    store.bury(&bob(), 2, "poison", start()).await.unwrap().unwrap();
    let before = store.state(&bob()).await.unwrap();
    drop(store);

    let store = ground.open();
    assert_eq!(store.epoch(), epoch);
    assert_eq!(store.state(&bob()).await.unwrap(), before);
    assert_eq!((before.floor, before.next_seq, before.dead), (3, 6, 1));
    assert_eq!(pending(&store).await, [4, 5]);
    assert_eq!(store.clock_high_water(), Some(start()));
    assert_eq!(store.dead(&bob(), 0, 10).await.unwrap().len(), 1);
    let status = store
        .status(&did("alice"), Uuid::from_u64_pair(4, 3), None)
        .await
        .unwrap();
    assert_eq!(status[0].status, Status::Acked);
    let attempts = store.offer(&bob(), &[4], 3).await.unwrap();
    assert_eq!((attempts[0].attempt, attempts[0].sessions), (3, 3));
    for n in 1..=5 {
        assert_eq!(
            store.append(mail(n)).await.unwrap(),
            duplicate(n),
            "whatever became of it"
        );
    }
    assert_eq!(store.append(mail(6)).await.unwrap(), stored(6));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_window_is_exact_after_a_restart() {
    let ground = Ground::new();
    let first = mail(1);
    ground.open().append(first.clone()).await.unwrap();
    let store = ground.open();
    let (key, digest, end) = (first.dedup_key, first.digest, first.remember_until);
    let known = Seen::Duplicate {
        seq: Some(1),
        route: Route::Mailbox,
    };
    assert_eq!(store.seen(key, digest, end).await.unwrap(), Some(known));
    assert_eq!(
        store
            .seen(key, digest, end + Duration::from_nanos(1))
            .await
            .unwrap(),
        None
    );
}

/// What was answered is on the disk: the files as they lie there at that moment, without a proper end, hold
/// it all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_44_what_was_answered_is_in_the_files() {
    let ground = Ground::new();
    let store = ground.open();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 1..=60 {
        let store = Arc::clone(&store);
        tasks.spawn(async move { store.append(mail(n)).await.unwrap() });
    }
    tasks.join_all().await;
    let crashed = ground.dir.path().join("crashed");
    copy(&ground.path(), &crashed);
    let copy = open(&crashed, &ground.disk).unwrap();
    assert_eq!(pending(&copy).await, (1..=60).collect::<Vec<_>>());
    assert!(matches!(
        copy.append(mail(17)).await.unwrap(),
        AppendOutcome::Duplicate { seq: Some(_), .. }
    ));
}

/// The newest log file.
/// A sweep writes down how often a message was offered, and a crash loses only what was offered since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_forgets_offers_since_the_last_sweep_and_no_others() {
    let ground = Ground::new();
    let store = ground.open();
    for n in 1..=3 {
        store.append(mail(n)).await.unwrap();
    }
    store.offer(&bob(), &[1, 2, 3], 1).await.unwrap();
    store.ack(&bob(), 1, &[], start()).await.unwrap();
    store.sweep(start()).await.unwrap();
    store.offer(&bob(), &[3], 2).await.unwrap();
    let crashed = ground.dir.path().join("crashed");
    copy(&ground.path(), &crashed);

    let store = open(&crashed, &ground.disk).unwrap();
    let attempts = store.offer(&bob(), &[2, 3], 3).await.unwrap();
    let counts: Vec<_> = attempts
        .iter()
        .map(|attempt| (attempt.seq, attempt.attempt, attempt.sessions))
        .collect();
    assert_eq!(counts, [(2, 2, 2), (3, 2, 2)]);
}

fn newest_log(db: &Path) -> PathBuf {
    let logs = fs::read_dir(db).unwrap().map(|entry| entry.unwrap().path());
    logs.filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .max()
        .unwrap()
}

/// Whatever a power loss leaves of the last log: the store opens, and holds all but the last few messages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_78_a_torn_log_loses_only_its_tail() {
    let ground = Ground::new();
    let store = ground.open();
    let (whole, last) = (ground.dir.path().join("whole"), 20);
    for n in 1..=last {
        assert_eq!(store.append(mail(n)).await.unwrap(), stored(n));
    }
    copy(&ground.path(), &whole);
    let log = newest_log(&whole.join("db"));
    let length = fs::metadata(&log).unwrap().len();
    let mut kept_before = 0;
    let offsets = (0..32)
        .map(|step| length * step / 32)
        .chain([1, length - 1, length]);
    let mut offsets: Vec<u64> = offsets.collect();
    offsets.sort_unstable();
    for offset in offsets {
        let torn = ground.dir.path().join("torn");
        copy(&whole, &torn);
        let file = fs::File::options()
            .write(true)
            .open(newest_log(&torn.join("db")))
            .unwrap();
        file.set_len(offset).unwrap();
        let store = open(&torn, &ground.disk).unwrap();
        let kept = pending(&store).await;
        let count = kept.len() as u64;
        assert_eq!(kept, (1..=count).collect::<Vec<_>>(), "a prefix, at {offset}");
        assert!(count >= kept_before, "a longer log keeps no less, at {offset}");
        kept_before = count;
        for n in 1..=last {
            let known = if n <= count { duplicate(n) } else { stored(n) };
            assert_eq!(
                store.append(mail(n)).await.unwrap(),
                known,
                "dedup and message are one, at {offset}"
            );
        }
        drop(store);
        fs::remove_dir_all(&torn).unwrap();
    }
    assert_eq!(kept_before, last);
}

/// Damage in the middle of a log ends its replay as a torn tail does. It does not go unseen: the store says
/// so, and has a new epoch, since numbers that were given out are given out again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loss_of_what_was_synced_is_told_and_gives_a_new_epoch() {
    let ground = Ground::new();
    let store = ground.open();
    for n in 1..=20 {
        store.append(mail(n)).await.unwrap();
    }
    store.sweep(start()).await.unwrap();
    let damaged = ground.dir.path().join("damaged");
    copy(&ground.path(), &damaged);
    let log = newest_log(&damaged.join("db"));
    let mut bytes = fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    fs::write(&log, bytes).unwrap();
    let fresh = Epoch::from_random(9);
    let options = || RocksOptions {
        guard: DiskGuard::OFF,
        ..RocksOptions::default()
    };
    let reopened = RocksMailboxes::open(&damaged, options(), &fresh).unwrap();
    let kept = pending(&reopened).await.len() as u64;
    assert!((1..20).contains(&kept));
    assert!(reopened.stats().lost_batches >= 20 - kept);
    assert_eq!(reopened.epoch(), fresh);
    drop(reopened);
    let again = RocksMailboxes::open(&damaged, options(), &Epoch::from_random(10)).unwrap();
    assert_eq!((again.stats().lost_batches, again.epoch()), (0, fresh), "once");
}

/// A caller that goes away changes nothing: its message is stored once, and the next in line gets its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_leaves_does_not_undo_its_append() {
    let ground = Ground::new();
    let store = ground.open();
    let gate = ground.disk.close();
    let gone = Arc::clone(&store);
    let gone = tokio::spawn(async move { gone.append(mail(1)).await });
    until(|| ground.disk.commits.load(SeqCst) == 1).await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    drop(gate);
    assert_eq!(store.append(mail(1)).await.unwrap(), duplicate(1));
}

/// Closing waits for what was handed in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_finishes_what_is_waiting() {
    let ground = Ground::new();
    let store = ground.open();
    let gate = ground.disk.close();
    let append = |n| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.append(mail(n)).await })
    };
    let mut waiting = vec![append(1)];
    until(|| ground.disk.commits.load(SeqCst) == 1).await;
    waiting.extend([append(2), append(3)]);
    until(|| store.stats().queue_depth == 2).await;
    drop(store);
    drop(gate);
    for task in waiting {
        assert!(matches!(
            task.await.unwrap().unwrap(),
            AppendOutcome::Stored { .. }
        ));
    }
    until(|| open(&ground.path(), &ground.disk).is_ok()).await;
    assert_eq!(pending(&ground.open()).await, [1, 2, 3]);
}

/// The hub closes its store while others still hold it: nothing is lost, and nothing is taken that would be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_closed_takes_no_more_and_is_read_still() {
    let ground = Ground::new();
    let store = Arc::new(ground.open());
    let appends: Vec<_> = (1..=50)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.append(mail(n)).await })
        })
        .collect();
    store.close().await;
    let mut taken = 0;
    for append in appends {
        taken += usize::from(append.await.unwrap().is_ok());
    }
    assert!(store.append(mail(51)).await.is_err(), "it is closed");
    assert_eq!(pending(&store).await.len(), taken);
    store.close().await;
    drop(store);
    assert_eq!(pending(&ground.open()).await.len(), taken);
}
