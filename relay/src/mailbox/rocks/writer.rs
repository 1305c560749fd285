//! The one thread that writes: it takes what is waiting, makes one batch of it, syncs once, then answers.
//!
//! There is no delay to gather more: while one batch is being synced the next one gathers by itself. After a
//! failed write nothing is written any more, since nobody can tell what the log holds; the store has to be
//! opened again.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};

use super::super::counters::Counters;
use super::super::error::StoreError;
use super::super::keys::{Expiry, meta};
use super::super::records;
use super::super::view::{Family, Key, Txn, Writes};
use super::RocksOptions;
use super::cached::CachedEngine;
use super::disk::{Disk, DiskGuard, Space};
use super::folder::Opened;
use crate::limits;
use crate::rocks::{self, Engine};

/// What the writer and its callers share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) counters: Counters,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) guard: DiskGuard,
    pub(super) dir: PathBuf,
    pub(super) lost_batches: u64,
    poisoned: OnceLock<String>,
    /// Nanoseconds; 0 before the first.
    clock: AtomicU64,
    /// Nothing ends before it, in nanoseconds: known since the start, and not written down.
    looked: AtomicU64,
    /// Batches written.
    commits: AtomicU64,
    /// Of them, those known to be on the disk.
    synced: AtomicU64,
}

impl Shared {
    pub(super) fn new(dir: &Path, options: RocksOptions, opened: &Opened, clock: u64) -> Self {
        Self {
            counters: Counters::default(),
            disk: options.disk,
            guard: options.guard,
            dir: dir.to_owned(),
            lost_batches: opened.lost,
            poisoned: OnceLock::new(),
            clock: AtomicU64::new(clock),
            looked: AtomicU64::new(0),
            commits: AtomicU64::new(opened.commits),
            synced: AtomicU64::new(opened.commits),
        }
    }

    /// Batches that are on the disk.
    pub(super) fn synced(&self) -> u64 {
        self.synced.load(Relaxed)
    }

    /// What the failed write said.
    pub(super) fn poisoned(&self) -> Option<&str> {
        self.poisoned.get().map(String::as_str)
    }

    /// Where the last sweep has looked to. Asked and told on the writer's thread, so that nothing is written meanwhile.
    pub(super) fn looked(&self) -> u64 {
        self.looked.load(Relaxed)
    }

    /// A sweep has looked so far.
    pub(super) fn look_to(&self, nanos: u64) {
        self.looked.store(nanos, Relaxed);
    }

    /// What was written may end before that.
    fn look_again(&self, writes: &Writes) {
        let mut ends = writes.range((Family::Expiry, Key::from_parts(&[]))..);
        if let Some(((Family::Expiry, first), _)) = ends.next()
            && let Some(first) = Expiry::parse(first.as_slice())
        {
            self.looked.fetch_min(first.at, Relaxed);
        }
    }

    pub(super) fn clock(&self) -> u64 {
        self.clock.load(Relaxed)
    }

    /// The space, when it counts as full. A disk that does not tell counts as full.
    pub(super) fn full(&self) -> Option<Space> {
        let none = Space {
            total_bytes: 0,
            free_bytes: 0,
        };
        match self.disk.space(&self.dir) {
            Ok(space) => self.guard.is_full(space).then_some(space),
            Err(_) => (self.guard != DiskGuard::OFF).then_some(none),
        }
    }

    fn poison(&self, reason: String) -> StoreError {
        tracing::error!(
            reason,
            "a write of the mailbox store failed; it takes nothing until it is opened again"
        );
        let error = StoreError::OutcomeUnknown(
            "a write failed; the store takes no more until it is opened again".into(),
        );
        // The first reason is the one that counts.
        self.poisoned.get_or_init(|| reason);
        error
    }
}

/// How a job is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Refused when the disk is full.
    Append,
    /// Written on a full disk too: acks give space back.
    Synced,
    /// Needs no sync of its own.
    Unsynced,
}

type Reply = Box<dyn FnOnce(&Result<(), StoreError>, &Counters) + Send>;
type Run = Box<dyn for<'a, 'b> FnOnce(Result<&'a mut Txn<'b>, StoreError>) -> Reply + Send>;

struct Job {
    kind: Kind,
    bytes: usize,
    run: Run,
}

/// The door to the writer's thread, which ends when this is closed or dropped.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(super) fn start(engine: Arc<Engine>, shared: Arc<Shared>) -> std::io::Result<Self> {
        let (jobs, waiting) = mpsc::channel(limits::WRITER_QUEUE_MAX);
        let run = move || {
            WriterLoop {
                engine,
                shared,
                waiting,
            }
            .run();
        };
        let thread = std::thread::Builder::new()
            .name("aip-store-writer".into())
            .spawn(run)?;
        Ok(Self {
            jobs: Mutex::new(Some(jobs)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Runs `run` in a batch and returns when the batch is committed. `count` sees what was.
    pub(super) async fn submit<T: Send + 'static>(
        &self,
        kind: Kind,
        bytes: usize,
        run: impl FnOnce(&mut Txn<'_>) -> Result<T, StoreError> + Send + 'static,
        count: fn(&Counters, &T),
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let job = Job {
            kind,
            bytes,
            run: job(run, count, answer),
        };
        let jobs = self.jobs().ok_or_else(stopped)?;
        jobs.send(job).await.map_err(|_closed| stopped())?;
        let lost = |_closed| StoreError::OutcomeUnknown("the writer ended before it answered".into());
        answered.await.map_err(lost)?
    }

    /// Leaves work that may be lost; it is, when too much is waiting.
    pub(super) fn leave(&self, run: impl FnOnce(&mut Txn<'_>) -> Result<(), StoreError> + Send + 'static) {
        let (answer, _nobody) = oneshot::channel();
        let job = Job {
            kind: Kind::Unsynced,
            bytes: 0,
            run: job(run, |_, ()| {}, answer),
        };
        if let Some(jobs) = self.jobs() {
            drop(jobs.try_send(job));
        }
    }

    /// Jobs that wait.
    pub(super) fn depth(&self) -> usize {
        self.jobs()
            .map_or(0, |jobs| jobs.max_capacity().saturating_sub(jobs.capacity()))
    }

    /// `None` once it is closed.
    fn jobs(&self) -> Option<mpsc::Sender<Job>> {
        lock(&self.jobs).clone()
    }

    /// Takes no more, lets the thread finish what is waiting, and waits for its end: it must not outlive the process's own
    /// end, which takes the engine's library from under it. Blocks.
    pub(super) fn close(&self) {
        drop(lock(&self.jobs).take());
        let thread = lock(&self.thread).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the writer of the mailbox store had panicked");
        }
    }
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is left half done in what these hold.
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable("its writer has ended".into())
}

fn job<T: Send + 'static>(
    run: impl FnOnce(&mut Txn<'_>) -> Result<T, StoreError> + Send + 'static,
    count: fn(&Counters, &T),
    answer: oneshot::Sender<Result<T, StoreError>>,
) -> Run {
    Box::new(move |turn| {
        let result = turn.and_then(|txn| {
            txn.mark();
            let result = run(txn);
            if result.is_err() {
                txn.rollback();
            }
            result
        });
        Box::new(move |committed, counters| {
            let result = result.and_then(|value| committed.clone().map(|()| value));
            if let Ok(value) = &result {
                count(counters, value);
            }
            // The caller may have gone; what was committed stays.
            drop(answer.send(result));
        })
    })
}

struct WriterLoop {
    engine: Arc<Engine>,
    shared: Arc<Shared>,
    waiting: mpsc::Receiver<Job>,
}

impl Drop for WriterLoop {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.poison("the writer panicked".into());
        }
    }
}

impl WriterLoop {
    fn run(mut self) {
        rocks::count_nothing();
        let view = CachedEngine::new(Arc::clone(&self.engine));
        while let Some(first) = self.waiting.blocking_recv() {
            let batch = self.gather(first);
            self.commit(&view, batch);
        }
        if self.shared.poisoned().is_none()
            && let Err(error) = self.engine.flush()
        {
            tracing::warn!(%error, "the next start replays the log");
        }
    }

    /// What is waiting, up to the bounds of a batch.
    fn gather(&mut self, first: Job) -> VecDeque<Job> {
        let mut bytes = first.bytes;
        let mut batch = VecDeque::from([first]);
        while batch.len() < limits::BATCH_OPS_MAX && bytes < limits::BATCH_BYTES_MAX {
            let Ok(job) = self.waiting.try_recv() else { break };
            bytes = bytes.saturating_add(job.bytes);
            batch.push_back(job);
        }
        batch
    }

    fn commit(&self, view: &CachedEngine, batch: VecDeque<Job>) {
        let ops = batch.len();
        let sync = batch.iter().any(|job| job.kind != Kind::Unsynced);
        let full = batch.iter().any(|job| job.kind == Kind::Append) && self.shared.full().is_some();
        let mut txn = Txn::new(view);
        let mut replies = Vec::with_capacity(ops);
        for job in batch {
            let turn = if self.shared.poisoned().is_some() {
                Err(StoreError::Unavailable("an earlier write failed".into()))
            } else if full && job.kind == Kind::Append {
                Err(StoreError::Unavailable("its disk is full".into()))
            } else {
                Ok(&mut txn)
            };
            replies.push((job.run)(turn));
        }
        let committed = self.write(view, txn, sync, ops);
        for reply in replies {
            reply(&committed, &self.shared.counters);
        }
    }

    fn write(&self, view: &CachedEngine, mut txn: Txn<'_>, sync: bool, ops: usize) -> Result<(), StoreError> {
        if txn.is_empty() {
            return Ok(());
        }
        let shared = &self.shared;
        let commits = shared.commits.load(Relaxed) + 1;
        txn.put(Family::Meta, meta::commits(), commits.to_be_bytes().to_vec());
        let (writes, drops) = txn.into_parts();
        let mut write = || {
            self.engine
                .write(&writes, &drops, sync)
                .map_err(|error| error.to_string())
        };
        shared
            .disk
            .commit(&mut write)
            .map_err(|reason| shared.poison(reason))?;
        shared.counters.batch(ops);
        shared.commits.store(commits, Relaxed);
        if sync {
            shared.synced.store(commits, Relaxed);
        }
        if let Some(Some(clock)) = writes.get(&(Family::Meta, meta::clock())) {
            let clock = records::meta_number(Some(clock.clone())).unwrap_or_default();
            shared.clock.fetch_max(clock, Relaxed);
        }
        shared.look_again(&writes);
        view.absorb(writes);
        for (family, span) in drops {
            if let Err(error) = self.engine.reclaim(family, &span) {
                tracing::warn!(%error, "space of dropped records is given back later");
            }
        }
        Ok(())
    }
}
