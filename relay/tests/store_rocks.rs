//! The embedded store under a restart, a torn log, a failed write, a full disk, a second process, and a restore.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test is to panic")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use aip_protocol::time::Timestamp;
use aip_relay::dedup::{DedupWindow, Seen};
use aip_relay::mailbox::rocks::{Disk, DiskGuard, OpenError, RocksMailboxes, RocksOptions, Space};
use aip_relay::mailbox::suite::{bob, did, duplicate, envelope, stored};
use aip_relay::mailbox::{
    AckOutcome, Acked, Append, AppendOutcome, DeadLetters, Epoch, Fetch, Full, Health, Mailboxes, Route,
    Select, Status, Statuses, StoreError, Upkeep,
};
use tempfile::TempDir;
use uuid::Uuid;

/// A disk that does as it is told.
#[derive(Debug, Default)]
struct TestDisk {
    full: AtomicBool,
    fail_before: AtomicBool,
    fail_after: AtomicBool,
    commits: AtomicU64,
    closed: Mutex<bool>,
    opened: Condvar,
}

impl TestDisk {
    /// Commits wait from now on.
    fn close(&self) {
        *self.closed.lock().unwrap() = true;
    }

    fn open(&self) {
        *self.closed.lock().unwrap() = false;
        self.opened.notify_all();
    }
}

impl Disk for TestDisk {
    fn space(&self, _dir: &Path) -> io::Result<Space> {
        let free_bytes = if self.full.load(SeqCst) { 9 } else { 11 };
        Ok(Space {
            total_bytes: 100,
            free_bytes,
        })
    }

    fn commit(&self, write: &mut dyn FnMut() -> Result<(), String>) -> Result<(), String> {
        self.commits.fetch_add(1, SeqCst);
        drop(
            self.opened
                .wait_while(self.closed.lock().unwrap(), |closed| *closed)
                .unwrap(),
        );
        if self.fail_before.load(SeqCst) {
            return Err("no space left on device".into());
        }
        write()?;
        if self.fail_after.load(SeqCst) {
            Err("fdatasync: input/output error".into())
        } else {
            Ok(())
        }
    }
}

struct Ground {
    dir: TempDir,
    disk: Arc<TestDisk>,
}

impl Ground {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            disk: Arc::default(),
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("mail")
    }

    fn open(&self) -> Arc<RocksMailboxes> {
        Arc::new(open(&self.path(), &self.disk).unwrap())
    }
}

fn open(dir: &Path, disk: &Arc<TestDisk>) -> Result<RocksMailboxes, OpenError> {
    let guard = DiskGuard {
        used_percent_max: 90,
        free_bytes_min: 10,
    };
    let disk: Arc<dyn Disk> = Arc::<TestDisk>::clone(disk);
    RocksMailboxes::open(dir, RocksOptions { guard, disk }, &Epoch::from_random(1))
}

fn start() -> Timestamp {
    Timestamp::parse("2026-11-29T20:15:30Z").unwrap()
}

fn mail(n: u64) -> Append {
    envelope(start(), "alice", "bob", n)
}

async fn pending(store: &RocksMailboxes) -> Vec<u64> {
    let fetch = Fetch {
        select: Select::After(0),
        max_messages: 1_000,
        max_bytes: usize::MAX,
        now: start(),
    };
    store
        .fetch(&bob(), fetch)
        .await
        .unwrap()
        .iter()
        .map(|message| message.seq)
        .collect()
}

/// Waits until `reached`, which other threads bring about.
async fn until(reached: impl Fn() -> bool) {
    let wait = async {
        while !reached() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

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

/// What was answered is on the disk: the files as they lie there at that moment, without a proper end, hold it all.
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

/// Puts `appends` and then `run` into one batch, behind another that is held up.
async fn in_one_batch<T: Send + 'static>(
    ground: &Ground,
    store: &Arc<RocksMailboxes>,
    jobs: Vec<std::pin::Pin<Box<dyn Future<Output = T> + Send>>>,
) -> Vec<T> {
    let (before, count) = (ground.disk.commits.load(SeqCst), jobs.len() as u64);
    ground.disk.close();
    let plug = Arc::clone(store);
    let plug = tokio::spawn(async move { plug.append(envelope(start(), "plug", "plug", 1)).await });
    until(|| ground.disk.commits.load(SeqCst) == before + 1).await;
    let mut tasks = Vec::new();
    for (job, queued) in jobs.into_iter().zip(1..) {
        tasks.push(tokio::spawn(job));
        until(|| store.stats().queue_depth == queued).await;
    }
    let stats = store.stats();
    ground.disk.open();
    plug.await.unwrap().unwrap();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    let after = store.stats();
    assert_eq!(
        (after.batches - stats.batches, after.batch_ops - stats.batch_ops),
        (2, count + 1)
    );
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_in_one_batch_see_each_other() {
    let ground = Ground::new();
    let store = ground.open();
    store.append(mail(1)).await.unwrap();
    let append = |append: Append| {
        let store = Arc::clone(&store);
        Box::pin(async move { store.append(append).await.unwrap() })
            as std::pin::Pin<Box<dyn Future<Output = _> + Send>>
    };
    let mut other_bytes = mail(3);
    other_bytes.digest = [0; 32];
    let mut too_many = mail(4);
    too_many.quota.sender_messages = 3;
    let jobs = vec![
        append(mail(2)),
        append(mail(2)),
        append(mail(3)),
        append(other_bytes),
        append(too_many),
    ];
    let answers = in_one_batch(&ground, &store, jobs).await;
    let full = AppendOutcome::Full(Full::Sender);
    assert_eq!(
        answers,
        [stored(2), duplicate(2), stored(3), AppendOutcome::Reused, full]
    );
    assert_eq!(pending(&store).await, [1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ack_meets_an_append_of_its_batch() {
    let ground = Ground::new();
    let store = ground.open();
    store.append(mail(1)).await.unwrap();
    let (one, two) = (Arc::clone(&store), Arc::clone(&store));
    let jobs: Vec<std::pin::Pin<Box<dyn Future<Output = (u64, Vec<u64>)> + Send>>> = vec![
        Box::pin(async move {
            one.append(mail(2)).await.unwrap();
            (0, vec![])
        }),
        Box::pin(async move {
            match two.ack(&bob(), 2, &[], start()).await.unwrap() {
                AckOutcome::Acked(Acked { floor, messages }) => {
                    (floor, messages.iter().map(|m| m.seq).collect())
                }
                _ => (u64::MAX, vec![]),
            }
        }),
    ];
    assert_eq!(in_one_batch(&ground, &store, jobs).await[1], (2, vec![1, 2]));
    assert!(pending(&store).await.is_empty());
    drop(store);
    assert_eq!(ground.open().append(mail(3)).await.unwrap(), stored(3));
}

/// Never 202 for what is not on the disk. After a failed write nothing is taken until the store is opened again.
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

/// The write went through but its answer was an error: nobody is told `stored`, and the retry learns the truth.
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_47_a_second_store_on_the_folder_is_refused() {
    let ground = Ground::new();
    let first = ground.open();
    let refused = open(&ground.path(), &ground.disk).unwrap_err();
    assert!(matches!(&refused, OpenError::Locked { dir } if *dir == ground.path()));
    let sentence = refused.to_string();
    assert!(
        sentence.contains(&ground.path().display().to_string()) && sentence.contains("in use"),
        "{sentence}"
    );
    assert_eq!(
        first.append(mail(1)).await.unwrap(),
        stored(1),
        "the first is unharmed"
    );
    drop(first);
    assert_eq!(pending(&ground.open()).await, [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_77_remnants_are_not_opened_as_an_empty_store() {
    let ground = Ground::new();
    ground.open().append(mail(1)).await.unwrap();
    let current = ground.path().join("db/CURRENT");
    let kept = fs::read(&current).unwrap();
    fs::remove_file(&current).unwrap();
    let names = |dir: &Path| {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    let before = names(&ground.path().join("db"));
    let refused = open(&ground.path(), &ground.disk).unwrap_err();
    assert!(matches!(refused, OpenError::Remnants { .. }));
    assert!(refused.to_string().contains("CURRENT"), "{refused}");
    assert_eq!(names(&ground.path().join("db")), before, "nothing was purged");
    fs::write(&current, kept).unwrap();
    assert_eq!(pending(&ground.open()).await, [1]);
}

/// The newest log file.
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_is_restored_under_a_new_epoch() {
    let ground = Ground::new();
    let store = ground.open();
    for n in 1..=3 {
        store.append(mail(n)).await.unwrap();
    }
    store.ack(&bob(), 1, &[], start()).await.unwrap();
    let backup = ground.dir.path().join("backup");
    store.checkpoint(&backup).await.unwrap();
    assert!(store.checkpoint(&backup).await.is_err(), "not over another one");
    store.append(mail(4)).await.unwrap();

    let other = ground.dir.path().join("other");
    let epoch = Epoch::from_random(2);
    RocksMailboxes::restore(&backup, &other, &epoch).unwrap();
    let restored = open(&other, &ground.disk).unwrap();
    assert_eq!(restored.epoch(), epoch);
    assert_ne!(restored.epoch(), store.epoch());
    assert_eq!(pending(&restored).await, [2, 3]);
    assert_eq!(restored.append(mail(2)).await.unwrap(), duplicate(2));
    assert_eq!(
        restored.append(mail(4)).await.unwrap(),
        stored(4),
        "it came after the backup"
    );
    drop(restored);
    let again = RocksMailboxes::restore(&backup, &other, &epoch).unwrap_err();
    assert!(matches!(again, OpenError::Occupied { .. }));
    assert_eq!(
        pending(&store).await,
        [2, 3, 4],
        "the one that was copied goes on"
    );
}

/// Whatever interrupts a restore, there is a whole store or none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_78_an_interrupted_restore_is_no_empty_store() {
    let ground = Ground::new();
    let store = ground.open();
    store.append(mail(1)).await.unwrap();
    let backup = ground.dir.path().join("backup");
    store.checkpoint(&backup).await.unwrap();
    let other = ground.dir.path().join("other");
    // As a kill in the middle leaves it.
    copy(&backup, &other.join("db.restoring"));
    fs::remove_file(other.join("db.restoring/CURRENT")).unwrap();
    let refused = open(&other, &ground.disk).unwrap_err();
    assert!(matches!(refused, OpenError::RestoreInterrupted { .. }));
    RocksMailboxes::restore(&backup, &other, &Epoch::from_random(2)).unwrap();
    assert_eq!(pending(&open(&other, &ground.disk).unwrap()).await, [1]);
    let nothing = ground.dir.path().join("nothing");
    fs::create_dir(&nothing).unwrap();
    assert!(
        RocksMailboxes::restore(&nothing, &ground.dir.path().join("third"), &Epoch::from_random(3)).is_err()
    );
}

/// Killed while it made its first files: the next start makes them anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_78_an_interrupted_creation_is_repeated() {
    let ground = Ground::new();
    fs::create_dir_all(ground.path().join("db.creating")).unwrap();
    fs::write(ground.path().join("db.creating/MANIFEST-000001"), b"half").unwrap();
    fs::create_dir_all(ground.path().join("db")).unwrap();
    assert_eq!(ground.open().append(mail(1)).await.unwrap(), stored(1));
    assert!(!ground.path().join("db.creating").exists());
}

/// A caller that goes away changes nothing: its message is stored once, and the next in line gets its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_leaves_does_not_undo_its_append() {
    let ground = Ground::new();
    let store = ground.open();
    ground.disk.close();
    let gone = Arc::clone(&store);
    let gone = tokio::spawn(async move { gone.append(mail(1)).await });
    until(|| ground.disk.commits.load(SeqCst) == 1).await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    ground.disk.open();
    assert_eq!(store.append(mail(1)).await.unwrap(), duplicate(1));
}

/// Closing waits for what was handed in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_finishes_what_is_waiting() {
    let ground = Ground::new();
    let store = ground.open();
    ground.disk.close();
    let waiting: Vec<_> = (1..=3)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.append(mail(n)).await })
        })
        .collect();
    until(|| ground.disk.commits.load(SeqCst) == 1 && store.stats().queue_depth == 2).await;
    drop(store);
    ground.disk.open();
    for task in waiting {
        assert!(matches!(
            task.await.unwrap().unwrap(),
            AppendOutcome::Stored { .. }
        ));
    }
    until(|| open(&ground.path(), &ground.disk).is_ok()).await;
    assert_eq!(pending(&ground.open()).await, [1, 2, 3]);
}

/// A retry or a repeated ack finds its answer without another sync.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_nothing_writes_nothing() {
    let ground = Ground::new();
    let store = ground.open();
    store.append(mail(1)).await.unwrap();
    store.ack(&bob(), 1, &[], start()).await.unwrap();
    store.sweep(start()).await.unwrap();
    let commits = ground.disk.commits.load(SeqCst);
    store.append(mail(1)).await.unwrap();
    store.ack(&bob(), 1, &[], start()).await.unwrap();
    store.sweep(start()).await.unwrap();
    assert_eq!(ground.disk.commits.load(SeqCst), commits);
}
