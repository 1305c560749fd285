//! How often each message was offered: counted in memory at once, written down later.
//!
//! An offer must not wait for the disk: a drain of a mailbox would crawl at the pace of the syncs of others. And most
//! messages are answered soon, after which nobody asks: only the counts of those that are still there when the store
//! is swept are written down. A crash may therefore lower a count, which costs one attempt more.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::error::StoreError;
use super::generations::Generations;
use super::keys;
use super::outcomes::Attempt;
use super::records::AttemptRecord;
use super::types::MailboxId;
use super::view::{Family, View};
use crate::limits;

/// A message, by its mailbox and its place there.
type Place = (MailboxId, u64);

/// A count that is to be written down.
pub(crate) type Count = (Place, AttemptRecord);

/// The counts of messages offered lately; those of others are read from the store.
#[derive(Debug)]
pub(crate) struct AttemptBook(Mutex<Counts>);

#[derive(Debug)]
struct Counts {
    known: Generations<Place, AttemptRecord>,
    /// Raised since they were written down.
    unwritten: HashMap<Place, AttemptRecord>,
}

impl Counts {
    fn raise(&mut self, place: Place, mut record: AttemptRecord, session: u64) -> Attempt {
        record.raise(session);
        self.known.insert(place, record);
        self.unwritten.insert(place, record);
        Attempt {
            seq: place.1,
            attempt: record.attempts,
            sessions: record.sessions(),
        }
    }
}

impl AttemptBook {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Counts {
            known: Generations::new(limits::ATTEMPTS_CACHED_MAX),
            unwritten: HashMap::new(),
        }))
    }

    /// So far. Remembered, since what is asked for is about to be offered.
    pub(crate) fn get(
        &self,
        view: &dyn View,
        mailbox: &MailboxId,
        seq: u64,
    ) -> Result<AttemptRecord, StoreError> {
        let place = (*mailbox, seq);
        if let Some(known) = self.lock().known.get(&place) {
            return Ok(known);
        }
        let stored = stored(view, mailbox, seq)?;
        let mut counts = self.lock();
        // Somebody may have raised it while it was read.
        let record = counts.known.get(&place).unwrap_or(stored);
        counts.known.insert(place, record);
        Ok(record)
    }

    /// One more for each.
    pub(crate) fn raise(
        &self,
        view: &dyn View,
        mailbox: &MailboxId,
        seqs: &[u64],
        session: u64,
    ) -> Result<Vec<Attempt>, StoreError> {
        let raise = |seq: &u64| {
            let before = self.get(view, mailbox, *seq)?;
            let mut counts = self.lock();
            let place = (*mailbox, *seq);
            // Of two sessions that offer the same message, both count.
            let before = counts.known.get(&place).unwrap_or(before);
            Ok(counts.raise(place, before, session))
        };
        seqs.iter().map(raise).collect()
    }

    /// The same, if all of them are known; nothing happens otherwise.
    pub(crate) fn raise_known(
        &self,
        mailbox: &MailboxId,
        seqs: &[u64],
        session: u64,
    ) -> Option<Vec<Attempt>> {
        let mut counts = self.lock();
        let known = seqs.iter().map(|seq| counts.known.get(&(*mailbox, *seq)));
        let known: Vec<AttemptRecord> = known.collect::<Option<_>>()?;
        let raise = |(seq, before): (&u64, AttemptRecord)| counts.raise((*mailbox, *seq), before, session);
        Some(seqs.iter().zip(known).map(raise).collect())
    }

    /// The message is settled.
    pub(crate) fn forget(&self, mailbox: &MailboxId, seqs: impl IntoIterator<Item = u64>) {
        let mut counts = self.lock();
        for seq in seqs {
            let place = (*mailbox, seq);
            counts.known.remove(&place);
            counts.unwritten.remove(&place);
        }
    }

    /// Whether so many counts are to be written down that it should not wait.
    pub(crate) fn is_full(&self) -> bool {
        self.lock().unwritten.len() >= limits::ATTEMPTS_UNWRITTEN_MAX
    }

    /// What is to be written down, in pieces of a bounded size.
    pub(crate) fn take_unwritten(&self) -> Vec<Vec<Count>> {
        let counts: Vec<Count> = std::mem::take(&mut self.lock().unwritten).into_iter().collect();
        let pieces = counts.chunks(limits::ATTEMPTS_WRITTEN_AT_ONCE);
        pieces.map(<[Count]>::to_vec).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        // A count is at worst stale after a panic elsewhere.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stored(view: &dyn View, mailbox: &MailboxId, seq: u64) -> Result<AttemptRecord, StoreError> {
    let value = view.get(Family::Attempt, &keys::message(mailbox, seq))?;
    value.map_or_else(
        || Ok(AttemptRecord::default()),
        |bytes| AttemptRecord::decode(&bytes),
    )
}
