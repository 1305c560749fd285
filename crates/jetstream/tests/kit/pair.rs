//! Two processes as one store: every call goes to the other one than the call before.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use aip_jetstream::JetStreamMailboxes;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_relay::dedup::{DedupWindow, Remember, Seen};
use aip_relay::mailbox::{
    AckOutcome, Append, AppendOutcome, Attempt, DeadLetter, DeadLetters, Epoch, Fate, Fetch, Health, Live,
    MailboxId, MailboxState, Mailboxes, Outboxes, Redrive, RedriveOutcome, Settled, Status, StatusRecord,
    Statuses, StoreError, StoreStats, StoredMessage, Swept, Upkeep,
};
use async_trait::async_trait;
use uuid::Uuid;

/// See the module.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) stores: [JetStreamMailboxes; 2],
    calls: AtomicUsize,
}

impl Pair {
    pub(crate) fn new(one: JetStreamMailboxes, other: JetStreamMailboxes) -> Self {
        Self {
            stores: [one, other],
            calls: AtomicUsize::new(0),
        }
    }

    fn next(&self) -> &JetStreamMailboxes {
        let [one, other] = &self.stores;
        if self.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            one
        } else {
            other
        }
    }
}

#[async_trait]
impl Mailboxes for Pair {
    async fn append(&self, append: Append) -> Result<AppendOutcome, StoreError> {
        self.next().append(append).await
    }

    async fn state(&self, mailbox: &MailboxId) -> Result<MailboxState, StoreError> {
        self.next().state(mailbox).await
    }

    async fn fetch(&self, mailbox: &MailboxId, fetch: Fetch) -> Result<Vec<StoredMessage>, StoreError> {
        self.next().fetch(mailbox, fetch).await
    }

    async fn offer(
        &self,
        mailbox: &MailboxId,
        seqs: &[u64],
        session: u64,
    ) -> Result<Vec<Attempt>, StoreError> {
        self.next().offer(mailbox, seqs, session).await
    }

    async fn ack(
        &self,
        mailbox: &MailboxId,
        upto: u64,
        also: &[u64],
        now: Timestamp,
    ) -> Result<AckOutcome, StoreError> {
        self.next().ack(mailbox, upto, also, now).await
    }
}

#[async_trait]
impl DeadLetters for Pair {
    async fn bury(
        &self,
        mailbox: &MailboxId,
        seq: u64,
        code: &str,
        now: Timestamp,
    ) -> Result<Option<Settled>, StoreError> {
        self.next().bury(mailbox, seq, code, now).await
    }

    async fn dead(
        &self,
        mailbox: &MailboxId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        self.next().dead(mailbox, after_seq, limit).await
    }

    async fn redrive(&self, mailbox: &MailboxId, redrive: Redrive) -> Result<RedriveOutcome, StoreError> {
        self.next().redrive(mailbox, redrive).await
    }
}

#[async_trait]
impl Outboxes for Pair {
    async fn settle_outbox(
        &self,
        outbox: &MailboxId,
        fates: &[(u64, Fate)],
        now: Timestamp,
    ) -> Result<Vec<Settled>, StoreError> {
        self.next().settle_outbox(outbox, fates, now).await
    }

    async fn advance_status(
        &self,
        sender: &Did,
        id: Uuid,
        to: &Did,
        status: (Status, Option<&str>),
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.next().advance_status(sender, id, to, status, at).await
    }
}

#[async_trait]
impl Statuses for Pair {
    /// Statuses are written behind the back of a call; a look-up waits for those of its own process, so both are
    /// asked.
    async fn status(
        &self,
        sender: &Did,
        id: Uuid,
        to: Option<&Did>,
    ) -> Result<Vec<StatusRecord>, StoreError> {
        let [one, other] = &self.stores;
        one.status(sender, id, to).await?;
        let told = other.status(sender, id, to).await?;
        if other.clock_high_water() >= one.clock_high_water() {
            return Ok(told);
        }
        one.status(sender, id, to).await
    }
}

#[async_trait]
impl DedupWindow for Pair {
    async fn seen(
        &self,
        key: [u8; 16],
        digest: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<Seen>, StoreError> {
        self.next().seen(key, digest, now).await
    }

    async fn remember(&self, remember: Remember) -> Result<Option<Seen>, StoreError> {
        self.next().remember(remember).await
    }
}

impl Live for Pair {}

#[async_trait]
impl Upkeep for Pair {
    /// By one process at a time, and not before the other has written what it knows about ends.
    async fn sweep(&self, now: Timestamp) -> Result<Swept, StoreError> {
        let [one, other] = &self.stores;
        other.close().await;
        one.sweep(now).await
    }

    async fn checkpoint(&self, dir: &Path) -> Result<(), StoreError> {
        self.next().checkpoint(dir).await
    }

    fn epoch(&self) -> Epoch {
        self.next().epoch()
    }

    fn clock_high_water(&self) -> Option<Timestamp> {
        let clocks = self.stores.iter().map(JetStreamMailboxes::clock_high_water);
        clocks.max().flatten()
    }

    fn health(&self) -> Health {
        self.next().health()
    }

    fn stats(&self) -> StoreStats {
        let [one, other] = self.stores.each_ref().map(Upkeep::stats);
        StoreStats {
            stored: one.stored + other.stored,
            queued: one.queued + other.queued,
            handed_over: one.handed_over + other.handed_over,
            refused: one.refused + other.refused,
            direct: one.direct + other.direct,
            duplicates: one.duplicates + other.duplicates,
            reused: one.reused + other.reused,
            full: one.full + other.full,
            acked: one.acked + other.acked,
            expired: one.expired + other.expired,
            dead: one.dead + other.dead,
            redriven: one.redriven + other.redriven,
            ..one
        }
    }
}
