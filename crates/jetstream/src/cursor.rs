//! The cursor record of a mailbox: what became of its messages, in one small record.
//!
//! Entries are never changed; the cursor says which of them are settled, how often the others were offered, and
//! which dead letters there are. It is written by compare-and-set, so several processes may write it. This module
//! is its pure algebra. What is settled stays settled: a reader with an older record takes too much for pending,
//! never too little.

use std::collections::BTreeMap;

use aip_protocol::time::Timestamp;
use aip_relay::limits::DEAD_LETTERS_MAX;

pub(crate) use self::attempts::Attempts;
use self::ranges::Ranges;
use crate::entry::Head;
use crate::limits;

mod attempts;
mod ranges;
mod record;

/// Where a dead letter lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeadPlace {
    /// Its place in the stream of dead letters.
    pub(crate) stream_seq: u64,
    /// When it is dropped.
    pub(crate) until: Timestamp,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    floor: u64,
    /// What is settled above the floor, never directly above it.
    above: Ranges,
    settled_bytes: u64,
    next_seq: u64,
    /// In which era, and from where on.
    read_from: (u64, u64),
    attempts: BTreeMap<u64, Attempts>,
    dead: BTreeMap<u64, DeadPlace>,
    /// Random: tells whoever wrote the record that it was this write.
    pub(crate) stamp: u64,
}

impl Cursor {
    /// Of a mailbox that nobody has read from.
    pub(crate) const EMPTY: Self = Self {
        floor: 0,
        above: Ranges::EMPTY,
        settled_bytes: 0,
        next_seq: 1,
        read_from: (0, 0),
        attempts: BTreeMap::new(),
        dead: BTreeMap::new(),
        stamp: 0,
    };

    /// Everything up to here is settled.
    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    /// A sequence number above all that were given out when the record was written.
    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Bytes of all envelopes that were ever settled.
    pub(crate) fn settled_bytes(&self) -> u64 {
        self.settled_bytes
    }

    /// Every pending entry has this stream sequence or a higher one, in the stream that holds the mailbox in `era`.
    pub(crate) fn read_from(&self, era: u64) -> u64 {
        let (noted_in, read_from) = self.read_from;
        if noted_in == era { read_from } else { 0 }
    }

    /// Dead letters by sequence number.
    pub(crate) fn dead(&self) -> &BTreeMap<u64, DeadPlace> {
        &self.dead
    }

    /// Whether the message `seq` is settled, or (0) cannot be a message.
    pub(crate) fn is_settled(&self, seq: u64) -> bool {
        seq <= self.floor || self.above.contains(seq)
    }

    /// Messages that are not settled, when `next_seq` is the next to be given out.
    pub(crate) fn pending(&self, next_seq: u64) -> u64 {
        next_seq
            .saturating_sub(1)
            .saturating_sub(self.floor)
            .saturating_sub(self.above.len())
    }

    /// The sequence numbers up to and including `upto` that are not settled, in order.
    pub(crate) fn unsettled(&self, upto: u64) -> impl Iterator<Item = u64> + '_ {
        self.above.gaps(self.floor.saturating_add(1), upto)
    }

    /// Notes that all sequence numbers below `next_seq` were given out.
    pub(crate) fn given_out(&mut self, next_seq: u64) {
        self.next_seq = self.next_seq.max(next_seq);
    }

    /// Settles a message whose entry was met in `era`; `false`: it was settled before.
    pub(crate) fn settle(&mut self, head: &Head, era: u64) -> bool {
        if !self.settle_unseen(head.seq) {
            return false;
        }
        self.settled_bytes = self.settled_bytes.saturating_add(head.wire_bytes);
        if head.seq <= self.floor {
            let after = head.stream_seq.saturating_add(1);
            self.read_from = (era, self.read_from(era).max(after));
        }
        true
    }

    /// Settles a sequence number whose entry is gone; its bytes stay counted until [`Cursor::all_settled`].
    pub(crate) fn settle_unseen(&mut self, seq: u64) -> bool {
        if self.is_settled(seq) {
            return false;
        }
        self.given_out(seq.saturating_add(1));
        self.attempts.remove(&seq);
        if seq == self.floor.saturating_add(1) {
            self.floor = self.above.take_adjoining(seq).unwrap_or(seq);
        } else {
            self.above.insert(seq);
        }
        true
    }

    /// When nothing is pending, all `total_bytes` that came before `next_seq` are settled: mends the count where
    /// entries were lost. Nothing is mended by who does not know the last sequence number.
    pub(crate) fn all_settled(&mut self, next_seq: u64, total_bytes: u64) {
        if self.next_seq == next_seq && self.pending(next_seq) == 0 {
            self.settled_bytes = total_bytes;
        }
    }

    /// How often `seq` was offered.
    pub(crate) fn attempts(&self, seq: u64) -> Attempts {
        self.attempts.get(&seq).copied().unwrap_or_default()
    }

    /// One offer more. What is settled is not counted any more.
    pub(crate) fn raise(&mut self, seq: u64, session: u64) -> Attempts {
        let mut attempts = self.attempts(seq);
        attempts.raise(session);
        if !self.is_settled(seq) {
            self.attempts.insert(seq, attempts);
            while self.attempts.len() > limits::ATTEMPTS_KEPT_MAX {
                self.attempts.pop_last();
            }
        }
        attempts
    }

    /// Notes a dead letter. Beyond the bound the one with the lowest sequence number goes.
    pub(crate) fn bury(&mut self, seq: u64, place: DeadPlace) {
        self.dead.insert(seq, place);
        while self.dead.len() as u64 > DEAD_LETTERS_MAX {
            self.dead.pop_first();
        }
    }

    /// Forgets a dead letter, if `place` is where it lies.
    pub(crate) fn unbury(&mut self, seq: u64, place: DeadPlace) -> bool {
        let here = self.dead.get(&seq) == Some(&place);
        if here {
            self.dead.remove(&seq);
        }
        here
    }

    /// Forgets those of `seqs` that are dead letters whose time has come; tells how many.
    pub(crate) fn drop_dead(&mut self, seqs: &[u64], now: Timestamp) -> u64 {
        let before = self.dead.len();
        for seq in seqs {
            if self.dead.get(seq).is_some_and(|place| place.until <= now) {
                self.dead.remove(seq);
            }
        }
        (before - self.dead.len()) as u64
    }
}

#[cfg(test)]
mod tests;
