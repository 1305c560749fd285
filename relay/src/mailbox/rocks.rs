//! The embedded mailbox store, on RocksDB.
//!
//! Writes go through one thread that commits in groups (`rocks/writer.rs`); reads run on blocking threads, a
//! bounded number at a time. Nothing of RocksDB runs on an async worker.

use std::path::Path;
use std::sync::Arc;

use aip_federation::outbox::Fate;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use tokio::sync::{Mutex, Semaphore};
use uuid::Uuid;

pub use self::closed::{ClosedStore, Retimed};
pub use self::disk::{Disk, DiskGuard, Space, SystemDisk};
pub use self::export::KeptStatus;
use self::folder::{FolderLock, Opened};
pub use self::open_error::OpenError;
use self::watermark::Watermark;
use self::writer::{Kind, Shared, Writer};
use super::attempts::AttemptBook;
use super::counters::Counters;
use super::error::StoreError;
use super::keys::{self, meta};
use super::outcomes::{
    AckOutcome, AppendOutcome, Attempt, DeadLetter, Health, MailboxState, RedriveOutcome, Settled, Status,
    StatusRecord, StoreStats, StoredMessage, Swept,
};
use super::records;
use super::rules::{self, Parties};
use super::types::{Append, Epoch, Fetch, MailboxId, Redrive};
use super::view::{Family, Txn, View};
use super::{DeadLetters, Live, Mailboxes, Outboxes, Statuses, Upkeep};
use crate::dedup::{DedupWindow, Remember, Seen, book};
use crate::limits;
use crate::rocks::Engine;

mod cached;
mod closed;
mod disk;
mod export;
mod folder;
mod open_error;
mod watermark;
mod writer;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct RocksOptions {
    /// When the disk counts as full.
    pub guard: DiskGuard,
    /// The disk; another than [`SystemDisk`] is for tests.
    pub disk: Arc<dyn Disk>,
}

impl Default for RocksOptions {
    fn default() -> Self {
        Self {
            guard: DiskGuard::default(),
            disk: Arc::new(SystemDisk),
        }
    }
}

/// See the module. Dropping it lets the writer finish and closes the files.
#[derive(Debug)]
pub struct RocksMailboxes {
    // In the order of closing: first the writer, last the lock.
    writer: Arc<Writer>,
    engine: Arc<Engine>,
    attempts: Arc<AttemptBook>,
    shared: Arc<Shared>,
    readers: Arc<Semaphore>,
    /// Held while space is given back; how many batches there were the last time.
    compaction: Arc<Mutex<u64>>,
    epoch: Epoch,
    watermark: Arc<Watermark>,
    lock: Arc<FolderLock>,
}

impl RocksMailboxes {
    /// Opens the store in the folder `dir`, or makes one there with `fresh` as its epoch. Blocks on the disk.
    pub fn open(dir: &Path, options: RocksOptions, fresh: &Epoch) -> Result<Self, OpenError> {
        let opened = folder::open(dir, fresh)?;
        let clock = opened
            .engine
            .get(Family::Meta, &meta::clock())
            .and_then(records::meta_number);
        let clock = clock.map_err(|error| OpenError::Damaged {
            dir: dir.to_owned(),
            reason: error.to_string(),
        })?;
        let shared = Arc::new(Shared::new(dir, options, &opened, clock));
        let Opened {
            engine,
            epoch,
            lock,
            watermark,
            ..
        } = opened;
        let engine = Arc::new(engine);
        let writer =
            Writer::start(Arc::clone(&engine), Arc::clone(&shared)).map_err(|source| OpenError::Io {
                action: "start the writer for",
                path: dir.to_owned(),
                source,
            })?;
        Ok(Self {
            writer: Arc::new(writer),
            engine,
            attempts: Arc::new(AttemptBook::new()),
            shared,
            readers: Arc::new(Semaphore::new(limits::READERS_MAX)),
            compaction: Arc::default(),
            epoch,
            watermark: Arc::new(watermark),
            lock: Arc::new(lock),
        })
    }

    /// Makes a store in the folder `dir` from the checkpoint in `from`, with a new epoch. All or nothing.
    /// Blocks.
    pub fn restore(from: &Path, dir: &Path, epoch: &Epoch) -> Result<(), OpenError> {
        folder::restore(from, dir, epoch)
    }

    /// Takes no more, and waits until what was taken is on the disk and the writer has ended. Reads go on. To be called
    /// before the process ends where others may still hold this.
    pub async fn close(&self) {
        self.leave_attempts();
        let writer = Arc::clone(&self.writer);
        // A writer that panicked has said so.
        drop(tokio::task::spawn_blocking(move || writer.close()).await);
    }

    /// Runs a read on a blocking thread.
    async fn read<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Engine, &AttemptBook) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let unavailable = |_closed| StoreError::Unavailable("it is being closed".into());
        let permit = Arc::clone(&self.readers)
            .acquire_owned()
            .await
            .map_err(unavailable)?;
        let (engine, attempts) = (Arc::clone(&self.engine), Arc::clone(&self.attempts));
        // The lock outlives the read, should the store be dropped meanwhile.
        let lock = Arc::clone(&self.lock);
        let read = tokio::task::spawn_blocking(move || {
            let result = run(&engine, &attempts);
            drop((engine, lock, permit));
            result
        });
        read.await
            .map_err(|error| StoreError::Unavailable(format!("a read did not end: {error}").into()))?
    }

    /// Writes down how often messages were offered, a little at a time: others have their turn in between.
    async fn note_attempts(&self) -> Result<(), StoreError> {
        for counts in self.attempts.take_unwritten() {
            let run = move |txn: &mut Txn<'_>| rules::note_attempts(txn, &counts);
            self.writer.submit(Kind::Unsynced, 0, run, |_, ()| {}).await?;
        }
        Ok(())
    }

    /// The same without waiting.
    fn leave_attempts(&self) {
        for counts in self.attempts.take_unwritten() {
            self.writer.leave(move |txn| rules::note_attempts(txn, &counts));
        }
    }

    /// Lets what was deleted go, in the background: without new mail the store has no occasion of its own,
    /// and a full disk lets no new mail in.
    fn make_room(&self) {
        let Ok(turn) = Arc::clone(&self.compaction).try_lock_owned() else {
            return;
        };
        let (engine, shared, lock) = (
            Arc::clone(&self.engine),
            Arc::clone(&self.shared),
            Arc::clone(&self.lock),
        );
        drop(tokio::task::spawn_blocking(move || {
            let mut done_at = turn;
            if *done_at != shared.synced() {
                *done_at = shared.synced();
                tracing::warn!("the disk is full: the mailbox store gives back what was deleted");
                if let Err(error) = engine.compact() {
                    tracing::warn!(%error, "the mailbox store cannot give space back");
                }
            }
            drop((engine, lock));
        }));
    }

    async fn write<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Txn<'_>) -> Result<T, StoreError> + Send + 'static,
        count: fn(&Counters, &T),
    ) -> Result<T, StoreError> {
        self.writer.submit(Kind::Synced, 0, run, count).await
    }
}

impl Drop for RocksMailboxes {
    fn drop(&mut self) {
        self.leave_attempts();
    }
}

#[async_trait]
impl Mailboxes for RocksMailboxes {
    async fn append(&self, append: Append) -> Result<AppendOutcome, StoreError> {
        let (parties, bytes) = (Parties::of(&append), append.wire.len());
        let count = Counters::appending(append.route);
        let run = move |txn: &mut Txn<'_>| rules::append(txn, parties, &append);
        self.writer.submit(Kind::Append, bytes, run, count).await
    }

    async fn state(&self, mailbox: &MailboxId) -> Result<MailboxState, StoreError> {
        let (mailbox, epoch) = (*mailbox, self.epoch.clone());
        self.read(move |engine, _| rules::read::state(engine, &mailbox, epoch))
            .await
    }

    async fn fetch(&self, mailbox: &MailboxId, fetch: Fetch) -> Result<Vec<StoredMessage>, StoreError> {
        let mailbox = *mailbox;
        self.read(move |engine, attempts| rules::read::fetch(engine, attempts, &mailbox, &fetch))
            .await
    }

    async fn offer(
        &self,
        mailbox: &MailboxId,
        seqs: &[u64],
        session: u64,
    ) -> Result<Vec<Attempt>, StoreError> {
        let attempts = if let Some(attempts) = self.attempts.raise_known(mailbox, seqs, session) {
            attempts
        } else {
            let (mailbox, seqs) = (*mailbox, seqs.to_vec());
            self.read(move |engine, attempts| attempts.raise(engine, &mailbox, &seqs, session))
                .await?
        };
        if self.attempts.is_full() {
            self.leave_attempts();
        }
        Ok(attempts)
    }

    async fn ack(
        &self,
        mailbox: &MailboxId,
        upto: u64,
        also: &[u64],
        now: Timestamp,
    ) -> Result<AckOutcome, StoreError> {
        let (mailbox, also) = (*mailbox, also.to_vec());
        let outcome = self
            .write(
                move |txn| rules::ack(txn, &mailbox, upto, &also, now),
                Counters::acked,
            )
            .await?;
        if let AckOutcome::Acked(acked) = &outcome {
            self.attempts
                .forget(&mailbox, acked.messages.iter().map(|message| message.seq));
        }
        Ok(outcome)
    }
}

#[async_trait]
impl DeadLetters for RocksMailboxes {
    async fn bury(
        &self,
        mailbox: &MailboxId,
        seq: u64,
        code: &str,
        now: Timestamp,
    ) -> Result<Option<Settled>, StoreError> {
        let (mailbox, code) = (*mailbox, code.to_owned());
        let run = move |txn: &mut Txn<'_>| rules::dead::bury(txn, &mailbox, seq, &code, now);
        let settled = self
            .write(run, |counters, settled| counters.buried(settled.as_ref()))
            .await?;
        self.attempts
            .forget(&mailbox, settled.iter().map(|settled| settled.seq));
        Ok(settled)
    }

    async fn dead(
        &self,
        mailbox: &MailboxId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        let mailbox = *mailbox;
        self.read(move |engine, _| rules::read::dead(engine, &mailbox, after_seq, limit))
            .await
    }

    async fn redrive(&self, mailbox: &MailboxId, redrive: Redrive) -> Result<RedriveOutcome, StoreError> {
        let mailbox = *mailbox;
        self.write(
            move |txn| rules::dead::redrive(txn, &mailbox, &redrive),
            Counters::redriven,
        )
        .await
    }
}

#[async_trait]
impl Outboxes for RocksMailboxes {
    async fn settle_outbox(
        &self,
        outbox: &MailboxId,
        fates: &[(u64, Fate)],
        now: Timestamp,
    ) -> Result<Vec<Settled>, StoreError> {
        let mut all = Vec::new();
        for fates in fates.chunks(limits::OUTBOX_SETTLED_AT_ONCE) {
            let (outbox, fates) = (*outbox, fates.to_vec());
            let run = move |txn: &mut Txn<'_>| rules::outbox::settle_all(txn, &outbox, &fates, now);
            all.extend(self.write(run, Counters::left).await?.settled);
        }
        Ok(all)
    }

    async fn advance_status(
        &self,
        sender: &Did,
        id: Uuid,
        to: &Did,
        status: (Status, Option<&str>),
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let (sender, to) = (sender.clone(), to.clone());
        let (status, code) = (status.0, status.1.map(ToOwned::to_owned));
        let run = move |txn: &mut Txn<'_>| {
            rules::outbox::advance_status(txn, &sender, id, &to, (status, code.as_deref()), at)
        };
        self.write(run, |_, _| {}).await
    }
}

#[async_trait]
impl Statuses for RocksMailboxes {
    async fn status(
        &self,
        sender: &Did,
        id: Uuid,
        to: Option<&Did>,
    ) -> Result<Vec<StatusRecord>, StoreError> {
        let (sender, to) = (sender.clone(), to.cloned());
        self.read(move |engine, _| rules::read::status(engine, &sender, id, to.as_ref()))
            .await
    }
}

#[async_trait]
impl DedupWindow for RocksMailboxes {
    async fn seen(
        &self,
        key: [u8; 16],
        digest: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<Seen>, StoreError> {
        self.read(move |engine, _| book::seen(engine, &key, &digest, now))
            .await
    }

    async fn remember(&self, remember: Remember) -> Result<Option<Seen>, StoreError> {
        let run = move |txn: &mut Txn<'_>| book::remember(txn, &remember);
        self.writer.submit(Kind::Append, 0, run, |_, _| {}).await
    }
}

impl Live for RocksMailboxes {}

#[async_trait]
impl Upkeep for RocksMailboxes {
    async fn sweep(&self, now: Timestamp) -> Result<Swept, StoreError> {
        self.note_attempts().await?;
        let shared = Arc::clone(&self.shared);
        let run = move |txn: &mut Txn<'_>| {
            let (swept, reached) = rules::sweep::sweep_from(txn, now, shared.looked())?;
            shared.look_to(reached);
            Ok(swept)
        };
        let swept = self.write(run, Counters::swept).await?;
        let (shared, watermark) = (Arc::clone(&self.shared), Arc::clone(&self.watermark));
        let note = move |_: &Engine, _: &AttemptBook| {
            // It only makes a later loss harder to see, so the sweep stands.
            if let Err(error) = watermark.note(shared.synced()) {
                tracing::warn!(%error, "cannot note how many batches are on the disk");
            }
            Ok(shared.full().is_some())
        };
        if self.read(note).await? {
            self.make_room();
        }
        Ok(swept)
    }

    async fn checkpoint(&self, dir: &Path) -> Result<(), StoreError> {
        let dir = dir.to_owned();
        self.read(move |engine, _| Ok(engine.checkpoint(&dir)?)).await
    }

    fn epoch(&self) -> Epoch {
        self.epoch.clone()
    }

    fn clock_high_water(&self) -> Option<Timestamp> {
        Some(self.shared.clock())
            .filter(|clock| *clock > 0)
            .map(keys::moment)
    }

    fn health(&self) -> Health {
        if let Some(reason) = self.shared.poisoned() {
            return Health::Poisoned {
                reason: reason.to_owned(),
            };
        }
        self.shared
            .full()
            .map_or(Health::Ready, |space| Health::DiskFull {
                free_bytes: space.free_bytes,
            })
    }

    fn stats(&self) -> StoreStats {
        let space = self.shared.disk.space(&self.shared.dir).ok();
        StoreStats {
            queue_depth: self.writer.depth() as u64,
            disk_free_bytes: space.map(|space| space.free_bytes),
            poisoned: self.shared.poisoned().is_some(),
            lost_batches: self.shared.lost_batches,
            ..self.shared.counters.read()
        }
    }
}
