//! A mailbox store in memory: the same rules over an ordered map. For tests and trying out; a restart forgets
//! it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aip_federation::outbox::Fate;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use uuid::Uuid;

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
use super::view::{Family, Key, Span, Txn, View, Visit};
use super::{DeadLetters, Live, Mailboxes, Outboxes, Statuses, Upkeep};
use crate::dedup::{DedupWindow, Remember, Seen, book};
use crate::limits::OUTBOX_SETTLED_AT_ONCE;

/// The records, in order.
#[derive(Debug, Default)]
struct Records(BTreeMap<(Family, Key), Bytes>);

impl View for Records {
    fn get(&self, family: Family, key: &Key) -> Result<Option<Bytes>, StoreError> {
        Ok(self.0.get(&(family, *key)).cloned())
    }

    fn scan(&self, family: Family, span: &Span, visit: Visit<'_>) -> Result<(), StoreError> {
        if span.from < span.until {
            let mut range = self.0.range((family, span.from)..(family, span.until));
            // The end of the span ends the walk as well as a break does.
            let _ended: ControlFlow<()> =
                range.try_for_each(|((_, key), value)| visit(key.as_slice(), value));
        }
        Ok(())
    }
}

/// See the module.
#[derive(Debug)]
pub struct MemoryMailboxes {
    epoch: Epoch,
    records: Mutex<Records>,
    attempts: AttemptBook,
    counters: Counters,
}

impl MemoryMailboxes {
    /// An empty store.
    pub fn new(epoch: Epoch) -> Self {
        Self {
            epoch,
            records: Mutex::default(),
            attempts: AttemptBook::new(),
            counters: Counters::default(),
        }
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        // A batch is applied only when it is complete, so a panic elsewhere leaves the records whole.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write<T>(&self, run: impl FnOnce(&mut Txn<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut records = self.records();
        let mut txn = Txn::new(&*records);
        let answer = run(&mut txn)?;
        let (writes, drops) = txn.into_parts();
        for (place, value) in writes {
            match value {
                Some(value) => records.0.insert(place, value),
                None => records.0.remove(&place),
            };
        }
        for (family, span) in drops {
            records
                .0
                .retain(|(of, key), _| *of != family || *key < span.from || *key >= span.until);
        }
        self.counters.batch(1);
        Ok(answer)
    }
}

#[async_trait]
impl Mailboxes for MemoryMailboxes {
    async fn append(&self, append: Append) -> Result<AppendOutcome, StoreError> {
        let outcome = self.write(|txn| rules::append(txn, Parties::of(&append), &append))?;
        Counters::appending(append.route)(&self.counters, &outcome);
        Ok(outcome)
    }

    async fn state(&self, mailbox: &MailboxId) -> Result<MailboxState, StoreError> {
        rules::read::state(&*self.records(), mailbox, self.epoch.clone())
    }

    async fn fetch(&self, mailbox: &MailboxId, fetch: Fetch) -> Result<Vec<StoredMessage>, StoreError> {
        rules::read::fetch(&*self.records(), &self.attempts, mailbox, &fetch)
    }

    async fn offer(
        &self,
        mailbox: &MailboxId,
        seqs: &[u64],
        session: u64,
    ) -> Result<Vec<Attempt>, StoreError> {
        let attempts = self.attempts.raise(&*self.records(), mailbox, seqs, session)?;
        for counts in self.attempts.take_unwritten() {
            self.write(|txn| rules::note_attempts(txn, &counts))?;
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
        let outcome = self.write(|txn| rules::ack(txn, mailbox, upto, also, now))?;
        if let AckOutcome::Acked(acked) = &outcome {
            self.attempts
                .forget(mailbox, acked.messages.iter().map(|message| message.seq));
        }
        self.counters.acked(&outcome);
        Ok(outcome)
    }
}

#[async_trait]
impl DeadLetters for MemoryMailboxes {
    async fn bury(
        &self,
        mailbox: &MailboxId,
        seq: u64,
        code: &str,
        now: Timestamp,
    ) -> Result<Option<Settled>, StoreError> {
        let settled = self.write(|txn| rules::dead::bury(txn, mailbox, seq, code, now))?;
        self.attempts
            .forget(mailbox, settled.iter().map(|settled| settled.seq));
        self.counters.buried(settled.as_ref());
        Ok(settled)
    }

    async fn dead(
        &self,
        mailbox: &MailboxId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        rules::read::dead(&*self.records(), mailbox, after_seq, limit)
    }

    async fn redrive(&self, mailbox: &MailboxId, redrive: Redrive) -> Result<RedriveOutcome, StoreError> {
        let outcome = self.write(|txn| rules::dead::redrive(txn, mailbox, &redrive))?;
        self.counters.redriven(&outcome);
        Ok(outcome)
    }
}

#[async_trait]
impl Outboxes for MemoryMailboxes {
    async fn settle_outbox(
        &self,
        outbox: &MailboxId,
        fates: &[(u64, Fate)],
        now: Timestamp,
    ) -> Result<Vec<Settled>, StoreError> {
        let mut all = Vec::new();
        for fates in fates.chunks(OUTBOX_SETTLED_AT_ONCE) {
            let left = self.write(|txn| rules::outbox::settle_all(txn, outbox, fates, now))?;
            self.counters.left(&left);
            all.extend(left.settled);
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
        self.write(|txn| rules::outbox::advance_status(txn, sender, id, to, status, at))
    }
}

#[async_trait]
impl Statuses for MemoryMailboxes {
    async fn status(
        &self,
        sender: &Did,
        id: Uuid,
        to: Option<&Did>,
    ) -> Result<Vec<StatusRecord>, StoreError> {
        rules::read::status(&*self.records(), sender, id, to)
    }
}

#[async_trait]
impl DedupWindow for MemoryMailboxes {
    async fn seen(
        &self,
        key: [u8; 16],
        digest: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<Seen>, StoreError> {
        book::seen(&*self.records(), &key, &digest, now)
    }

    async fn remember(&self, remember: Remember) -> Result<Option<Seen>, StoreError> {
        self.write(|txn| book::remember(txn, &remember))
    }
}

impl Live for MemoryMailboxes {}

#[async_trait]
impl Upkeep for MemoryMailboxes {
    async fn sweep(&self, now: Timestamp) -> Result<Swept, StoreError> {
        let swept = self.write(|txn| rules::sweep::sweep(txn, now))?;
        self.counters.swept(&swept);
        Ok(swept)
    }

    async fn checkpoint(&self, _dir: &Path) -> Result<(), StoreError> {
        Err(StoreError::Unavailable(
            "a store in memory has no files to copy".into(),
        ))
    }

    fn epoch(&self) -> Epoch {
        self.epoch.clone()
    }

    fn clock_high_water(&self) -> Option<Timestamp> {
        let clock = self.records().get(Family::Meta, &meta::clock()).ok()??;
        records::meta_number(Some(clock)).ok().map(keys::moment)
    }

    fn health(&self) -> Health {
        Health::Ready
    }

    fn stats(&self) -> StoreStats {
        self.counters.read()
    }
}
