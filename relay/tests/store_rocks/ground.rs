//! A store on a disk that does as it is told.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use aip_protocol::time::Timestamp;
use aip_relay::mailbox::rocks::{Disk, DiskGuard, OpenError, RocksMailboxes, RocksOptions, Space};
use aip_relay::mailbox::suite::{bob, envelope};
use aip_relay::mailbox::{Append, Epoch, Fetch, Mailboxes, Select};
use tempfile::TempDir;

/// A disk that does as it is told.
#[derive(Debug, Default)]
pub(crate) struct TestDisk {
    pub(crate) full: AtomicBool,
    pub(crate) fail_before: AtomicBool,
    pub(crate) fail_after: AtomicBool,
    pub(crate) panics: AtomicBool,
    pub(crate) commits: AtomicU64,
    closed: Mutex<bool>,
    opened: Condvar,
}

impl TestDisk {
    /// Commits wait until the gate is dropped.
    pub(crate) fn close(&self) -> Gate<'_> {
        *self.closed.lock().unwrap() = true;
        Gate(self)
    }
}

pub(crate) struct Gate<'a>(&'a TestDisk);

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        *self.0.closed.lock().unwrap() = false;
        self.0.opened.notify_all();
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
        assert!(!self.panics.load(SeqCst), "told to panic");
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

pub(crate) struct Ground {
    pub(crate) dir: TempDir,
    pub(crate) disk: Arc<TestDisk>,
}

impl Ground {
    pub(crate) fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            disk: Arc::default(),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("mail")
    }

    pub(crate) fn open(&self) -> Arc<RocksMailboxes> {
        Arc::new(open(&self.path(), &self.disk).unwrap())
    }
}

pub(crate) fn open(dir: &Path, disk: &Arc<TestDisk>) -> Result<RocksMailboxes, OpenError> {
    let guard = DiskGuard {
        used_percent_max: 90,
        free_bytes_min: 10,
    };
    let disk: Arc<dyn Disk> = Arc::<TestDisk>::clone(disk);
    RocksMailboxes::open(dir, RocksOptions { guard, disk }, &Epoch::from_random(1))
}

pub(crate) fn start() -> Timestamp {
    Timestamp::parse("2026-11-29T20:15:30Z").unwrap()
}

pub(crate) fn mail(n: u64) -> Append {
    envelope(start(), "alice", "bob", n)
}

pub(crate) async fn pending(store: &RocksMailboxes) -> Vec<u64> {
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
pub(crate) async fn until(reached: impl Fn() -> bool) {
    let wait = async {
        while !reached() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap();
}

pub(crate) fn copy(from: &Path, to: &Path) {
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
