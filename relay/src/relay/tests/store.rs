//! The store in memory, with failures on demand.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use uuid::Uuid;

use crate::dedup::{DedupWindow, Remember, Seen};
use crate::mailbox::memory::MemoryMailboxes;
use crate::mailbox::{
    AckOutcome, Append, AppendOutcome, Attempt, DeadLetter, DeadLetters, Epoch, Fate, Fetch, Health, Live,
    MailboxId, MailboxState, Mailboxes, Outboxes, Redrive, RedriveOutcome, Settled, Status, StatusRecord,
    Statuses, StoreError, StoreStats, StoredMessage, Swept, Upkeep,
};

/// How the next append fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// Nothing is written.
    Before(StoreError),
    /// It is written, and the answer is lost.
    After(StoreError),
}

/// See the module.
#[derive(Debug)]
pub(super) struct TestStore {
    inner: MemoryMailboxes,
    failure: Mutex<Option<Failure>>,
    appends: AtomicUsize,
    health: Mutex<Health>,
}

impl TestStore {
    pub(super) fn new() -> Self {
        let inner = MemoryMailboxes::new(Epoch::from_random(1));
        Self {
            inner,
            failure: Mutex::default(),
            appends: AtomicUsize::new(0),
            health: Mutex::new(Health::Ready),
        }
    }

    /// Makes the next append fail.
    pub(super) fn fail_next(&self, failure: Failure) {
        *self.failure.lock().unwrap() = Some(failure);
    }

    /// What the store says of itself from now on.
    pub(super) fn set_health(&self, health: Health) {
        *self.health.lock().unwrap() = health;
    }

    /// Appends so far.
    pub(super) fn appends(&self) -> usize {
        self.appends.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Mailboxes for TestStore {
    async fn append(&self, append: Append) -> Result<AppendOutcome, StoreError> {
        self.appends.fetch_add(1, Ordering::SeqCst);
        // A store that syncs never answers at once.
        tokio::task::yield_now().await;
        let failure = self.failure.lock().unwrap().take();
        match failure {
            Some(Failure::Before(error)) => Err(error),
            Some(Failure::After(error)) => self.inner.append(append).await.and(Err(error)),
            None => self.inner.append(append).await,
        }
    }

    async fn state(&self, mailbox: &MailboxId) -> Result<MailboxState, StoreError> {
        self.inner.state(mailbox).await
    }

    async fn fetch(&self, mailbox: &MailboxId, fetch: Fetch) -> Result<Vec<StoredMessage>, StoreError> {
        self.inner.fetch(mailbox, fetch).await
    }

    async fn offer(
        &self,
        mailbox: &MailboxId,
        seqs: &[u64],
        session: u64,
    ) -> Result<Vec<Attempt>, StoreError> {
        self.inner.offer(mailbox, seqs, session).await
    }

    async fn ack(
        &self,
        mailbox: &MailboxId,
        upto: u64,
        also: &[u64],
        now: Timestamp,
    ) -> Result<AckOutcome, StoreError> {
        self.inner.ack(mailbox, upto, also, now).await
    }
}

#[async_trait]
impl DeadLetters for TestStore {
    async fn bury(
        &self,
        mailbox: &MailboxId,
        seq: u64,
        code: &str,
        now: Timestamp,
    ) -> Result<Option<Settled>, StoreError> {
        self.inner.bury(mailbox, seq, code, now).await
    }

    async fn dead(
        &self,
        mailbox: &MailboxId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        self.inner.dead(mailbox, after_seq, limit).await
    }

    async fn redrive(&self, mailbox: &MailboxId, redrive: Redrive) -> Result<RedriveOutcome, StoreError> {
        self.inner.redrive(mailbox, redrive).await
    }
}

#[async_trait]
impl Outboxes for TestStore {
    async fn settle_outbox(
        &self,
        outbox: &MailboxId,
        fates: &[(u64, Fate)],
        now: Timestamp,
    ) -> Result<Vec<Settled>, StoreError> {
        self.inner.settle_outbox(outbox, fates, now).await
    }

    async fn advance_status(
        &self,
        sender: &Did,
        id: Uuid,
        to: &Did,
        status: (Status, Option<&str>),
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.inner.advance_status(sender, id, to, status, at).await
    }
}

#[async_trait]
impl Statuses for TestStore {
    async fn status(
        &self,
        sender: &Did,
        id: Uuid,
        to: Option<&Did>,
    ) -> Result<Vec<StatusRecord>, StoreError> {
        self.inner.status(sender, id, to).await
    }
}

impl Live for TestStore {}

#[async_trait]
impl Upkeep for TestStore {
    async fn sweep(&self, now: Timestamp) -> Result<Swept, StoreError> {
        self.inner.sweep(now).await
    }

    async fn checkpoint(&self, dir: &Path) -> Result<(), StoreError> {
        self.inner.checkpoint(dir).await
    }

    fn epoch(&self) -> Epoch {
        self.inner.epoch()
    }

    fn clock_high_water(&self) -> Option<Timestamp> {
        self.inner.clock_high_water()
    }

    fn health(&self) -> Health {
        self.health.lock().unwrap().clone()
    }

    fn stats(&self) -> StoreStats {
        self.inner.stats()
    }
}

#[async_trait]
impl DedupWindow for TestStore {
    async fn seen(
        &self,
        key: [u8; 16],
        digest: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<Seen>, StoreError> {
        self.inner.seen(key, digest, now).await
    }

    async fn remember(&self, remember: Remember) -> Result<Option<Seen>, StoreError> {
        self.inner.remember(remember).await
    }
}
