//! How often each message was offered: counted in memory at once, written down without waiting.
//!
//! An offer must not wait for the disk: a drain of a mailbox would crawl at the pace of the syncs of others.
//! A crash may therefore lower a count, which costs one attempt more.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::error::StoreError;
use super::generations::Generations;
use super::keys;
use super::outcomes::Attempt;
use super::records::AttemptRecord;
use super::types::MailboxId;
use super::view::{Family, Key, View};
use crate::limits;

/// Counts after an offer.
#[derive(Debug)]
pub(crate) struct Raised {
    /// For the caller.
    pub(crate) attempts: Vec<Attempt>,
    /// To be written down.
    pub(crate) records: Vec<(u64, AttemptRecord)>,
}

/// The counts of messages offered lately; those of others are read from the store.
#[derive(Debug)]
pub(crate) struct AttemptBook(Mutex<Generations<Key, AttemptRecord>>);

impl AttemptBook {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Generations::new(limits::ATTEMPTS_CACHED_MAX)))
    }

    /// So far.
    pub(crate) fn get(
        &self,
        view: &dyn View,
        mailbox: &MailboxId,
        seq: u64,
    ) -> Result<AttemptRecord, StoreError> {
        let key = keys::message(mailbox, seq);
        let known = self.lock().get(&key);
        known.map_or_else(|| stored(view, &key), Ok)
    }

    /// One more for each.
    pub(crate) fn raise(
        &self,
        view: &dyn View,
        mailbox: &MailboxId,
        seqs: &[u64],
        session: u64,
    ) -> Result<Raised, StoreError> {
        let mut raised = Vec::with_capacity(seqs.len());
        for seq in seqs {
            let key = keys::message(mailbox, *seq);
            // Held over one read, so that two sessions offering the same message both count.
            let mut counts = self.lock();
            let mut record = counts.get(&key).map_or_else(|| stored(view, &key), Ok)?;
            record.raise(session);
            counts.insert(key, record);
            raised.push((*seq, record));
        }
        let attempts = raised.iter().map(|(seq, record)| Attempt {
            seq: *seq,
            attempt: record.attempts,
            sessions: record.sessions(),
        });
        Ok(Raised {
            attempts: attempts.collect(),
            records: raised,
        })
    }

    /// The message is settled.
    pub(crate) fn forget(&self, mailbox: &MailboxId, seqs: impl IntoIterator<Item = u64>) {
        let mut counts = self.lock();
        for seq in seqs {
            counts.remove(&keys::message(mailbox, seq));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Generations<Key, AttemptRecord>> {
        // A count is at worst stale after a panic elsewhere.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stored(view: &dyn View, key: &Key) -> Result<AttemptRecord, StoreError> {
    let value = view.get(Family::Attempt, key)?;
    value.map_or_else(
        || Ok(AttemptRecord::default()),
        |bytes| AttemptRecord::decode(&bytes),
    )
}
