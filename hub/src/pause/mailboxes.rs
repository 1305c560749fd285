//! The mailboxes behind the gate: while the hub stands still nothing comes in, and nothing is handed out that could
//! not be acked.

use std::path::Path;
use std::sync::Arc;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_relay::dedup::{DedupWindow, Remember, Seen};
use aip_relay::mailbox::{
    AckOutcome, Append, AppendOutcome, Attempt, DeadLetter, DeadLetters, Epoch, Fate, Fetch, Health, Live,
    MailboxId, MailboxState, MailboxStore, Mailboxes, Outboxes, Redrive, RedriveOutcome, Settled, Status,
    StatusRecord, Statuses, StoreError, StoreStats, StoredMessage, Swept, Upkeep,
};
use async_trait::async_trait;
use uuid::Uuid;

use super::{Change, Pause, SENTENCE};

/// Mailboxes that do not change while the hub stands still.
#[derive(Debug)]
pub struct PausableMailboxes {
    store: Arc<dyn MailboxStore>,
    pause: Arc<Pause>,
}

impl PausableMailboxes {
    /// Wraps a store.
    pub fn new(store: Arc<dyn MailboxStore>, pause: Arc<Pause>) -> Self {
        Self { store, pause }
    }

    async fn begin(&self) -> Result<Change<'_>, StoreError> {
        self.pause
            .begin()
            .await
            .ok_or(StoreError::Unavailable(SENTENCE.into()))
    }
}

#[async_trait]
impl Mailboxes for PausableMailboxes {
    async fn append(&self, append: Append) -> Result<AppendOutcome, StoreError> {
        let _change = self.begin().await?;
        self.store.append(append).await
    }

    async fn state(&self, mailbox: &MailboxId) -> Result<MailboxState, StoreError> {
        self.store.state(mailbox).await
    }

    async fn fetch(&self, mailbox: &MailboxId, fetch: Fetch) -> Result<Vec<StoredMessage>, StoreError> {
        let _change = self.begin().await?;
        self.store.fetch(mailbox, fetch).await
    }

    async fn offer(
        &self,
        mailbox: &MailboxId,
        seqs: &[u64],
        session: u64,
    ) -> Result<Vec<Attempt>, StoreError> {
        let _change = self.begin().await?;
        self.store.offer(mailbox, seqs, session).await
    }

    async fn ack(
        &self,
        mailbox: &MailboxId,
        upto: u64,
        also: &[u64],
        now: Timestamp,
    ) -> Result<AckOutcome, StoreError> {
        let _change = self.begin().await?;
        self.store.ack(mailbox, upto, also, now).await
    }
}

#[async_trait]
impl DeadLetters for PausableMailboxes {
    async fn bury(
        &self,
        mailbox: &MailboxId,
        seq: u64,
        code: &str,
        now: Timestamp,
    ) -> Result<Option<Settled>, StoreError> {
        let _change = self.begin().await?;
        self.store.bury(mailbox, seq, code, now).await
    }

    async fn dead(
        &self,
        mailbox: &MailboxId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        self.store.dead(mailbox, after_seq, limit).await
    }

    async fn redrive(&self, mailbox: &MailboxId, redrive: Redrive) -> Result<RedriveOutcome, StoreError> {
        let _change = self.begin().await?;
        self.store.redrive(mailbox, redrive).await
    }
}

#[async_trait]
impl Outboxes for PausableMailboxes {
    async fn settle_outbox(
        &self,
        outbox: &MailboxId,
        fates: &[(u64, Fate)],
        now: Timestamp,
    ) -> Result<Vec<Settled>, StoreError> {
        let _change = self.begin().await?;
        self.store.settle_outbox(outbox, fates, now).await
    }

    async fn advance_status(
        &self,
        sender: &Did,
        id: Uuid,
        to: &Did,
        status: (Status, Option<&str>),
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let _change = self.begin().await?;
        self.store.advance_status(sender, id, to, status, at).await
    }
}

#[async_trait]
impl Statuses for PausableMailboxes {
    async fn status(
        &self,
        sender: &Did,
        id: Uuid,
        to: Option<&Did>,
    ) -> Result<Vec<StatusRecord>, StoreError> {
        self.store.status(sender, id, to).await
    }
}

#[async_trait]
impl DedupWindow for PausableMailboxes {
    /// Asked before an endpoint is called: what could not be recorded afterwards is not begun.
    async fn seen(
        &self,
        key: [u8; 16],
        digest: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<Seen>, StoreError> {
        let _change = self.begin().await?;
        self.store.seen(key, digest, now).await
    }

    async fn remember(&self, remember: Remember) -> Result<Option<Seen>, StoreError> {
        let _change = self.begin().await?;
        self.store.remember(remember).await
    }
}

#[async_trait]
impl Live for PausableMailboxes {
    async fn watch(&self, mailbox: &MailboxId) {
        self.store.watch(mailbox).await;
    }

    fn unwatch(&self, mailbox: &MailboxId) {
        self.store.unwatch(mailbox);
    }
}

#[async_trait]
impl Upkeep for PausableMailboxes {
    /// What is past its end waits: nothing was swept.
    async fn sweep(&self, now: Timestamp) -> Result<Swept, StoreError> {
        match self.pause.begin().await {
            Some(_change) => self.store.sweep(now).await,
            None => Ok(Swept::default()),
        }
    }

    async fn checkpoint(&self, dir: &Path) -> Result<(), StoreError> {
        self.store.checkpoint(dir).await
    }

    fn epoch(&self) -> Epoch {
        self.store.epoch()
    }

    fn clock_high_water(&self) -> Option<Timestamp> {
        self.store.clock_high_water()
    }

    fn health(&self) -> Health {
        self.store.health()
    }

    fn stats(&self) -> StoreStats {
        self.store.stats()
    }
}
