//! The messages of one pair that were looked at and have not left.

use std::collections::VecDeque;

use aip_protocol::error::ErrorCode;
use aip_protocol::time::Timestamp;

use super::{Due, Pair, Rank};

/// A message that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) seq: u64,
    /// Of its item in a body.
    pub(super) bytes: u32,
}

impl Place {
    pub(super) fn due(self, pair: Pair) -> Due {
        let Self { seq, bytes } = self;
        Due { seq, pair, bytes }
    }
}

/// One pair of sender and recipient.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    /// In order.
    pub(super) waiting: VecDeque<Place>,
    /// Messages on their way: nothing else of the pair goes meanwhile.
    pub(super) away: usize,
    /// Not before then.
    pub(super) due: Timestamp,
    /// How often in a row the peer asked for it again.
    pub(super) tries: u32,
    /// What the peer said when it did.
    pub(super) code: Option<ErrorCode>,
    /// The peer held it up, and it has not caught up since.
    pub(super) is_slow: bool,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            away: 0,
            due: Timestamp::UNIX_EPOCH,
            tries: 0,
            code: None,
            is_slow: false,
        }
    }
}

impl Lane {
    /// Whether nothing waits and nothing is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.away == 0
    }

    pub(super) fn first(&self) -> Option<u64> {
        self.waiting.front().map(|place| place.seq)
    }

    pub(super) fn holds(&self, seq: u64) -> bool {
        self.waiting.binary_search_by_key(&seq, |place| place.seq).is_ok()
    }

    /// Whether what waits may go.
    pub(super) fn may_go(&self, now: Timestamp) -> bool {
        self.away == 0 && self.due <= now
    }

    /// Those that go next, `most` in a batch. The more often the peer asked for them again, the fewer: in the end one
    /// alone tries whether there is room again.
    pub(super) fn next(&self, most: usize) -> impl Iterator<Item = Place> {
        let most = most.checked_shr(self.tries).unwrap_or(0).max(1);
        self.waiting.iter().take(most).copied()
    }

    /// Where it stands among the lanes; `None` when nothing of it can go.
    pub(super) fn rank(&self, pair: Pair) -> Option<Rank> {
        let first = self.first().filter(|_| self.away == 0)?;
        Some(Rank {
            is_slow: self.is_slow,
            due: self.due,
            first,
            pair,
        })
    }

    /// A message waits; it may do so already.
    pub(super) fn put(&mut self, place: Place) {
        if let Err(index) = self.waiting.binary_search_by_key(&place.seq, |other| other.seq) {
            self.waiting.insert(index, place);
        }
    }

    /// A message waits no more.
    pub(super) fn remove(&mut self, seq: u64) -> Option<Place> {
        let found = self.waiting.binary_search_by_key(&seq, |place| place.seq);
        let removed = self.waiting.remove(found.ok()?);
        // What a thousand messages needed is not kept for the last one.
        if self.waiting.len() * 4 < self.waiting.capacity() {
            self.waiting.shrink_to(self.waiting.len() * 2);
        }
        removed
    }

    /// The peer asked for it again.
    pub(super) fn is_held_up(&mut self, due: Timestamp, code: Option<ErrorCode>) {
        self.due = due;
        self.tries = self.tries.saturating_add(1);
        self.code = code.or(self.code);
        self.is_slow = true;
    }

    /// The peer settled one of it. A slow one has had its turn: those that wait longer are before it.
    pub(super) fn is_free(&mut self, now: Timestamp) {
        self.tries = 0;
        if self.is_slow {
            self.due = now;
        }
    }
}

impl Rank {
    /// Not after any lane that is slow.
    pub(super) fn first_slow() -> Self {
        Self {
            is_slow: true,
            due: Timestamp::UNIX_EPOCH,
            first: 0,
            pair: Pair(0),
        }
    }
}
