//! Which messages of a peer's outbox go next: each pair of sender and recipient in order, none twice at a time.
//!
//! Everything up to the *cursor* was looked at: it has left, is *away* (in a batch on its way), or *waits* (for a retry, or for
//! an earlier message of its pair). Of what waits only the place is held, not the message. All of it can be forgotten at any
//! time: the outbox is the truth, and looking begins at its lowest message again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use aip_protocol::error::ErrorCode;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;

use super::batch::ITEM_BYTES;
use crate::limits::WAITING_MAX;
use crate::outbox::OutboxItem;

/// From how many batches' worth of messages one batch is chosen.
pub(super) const AHEAD: usize = 4;

/// Sender and recipient, as a hash: two pairs that share one merely wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Pair(u64);

impl Pair {
    fn of(sender: &Did, recipient: &Did) -> Self {
        let mut hasher = DefaultHasher::new();
        (sender, recipient).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// A message that was looked at.
#[derive(Debug, Clone, Copy)]
struct Entry {
    pair: Pair,
    /// Not before then.
    due: Timestamp,
    /// Of its item in a body.
    bytes: u32,
    /// How often the peer asked for it again.
    tries: u32,
    /// What the peer said when it did.
    code: Option<ErrorCode>,
}

/// Most messages and bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) items: usize,
    pub(super) bytes: usize,
}

/// Where the messages of one outbox are.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    cursor: u64,
    waiting: BTreeMap<u64, Entry>,
    away: BTreeMap<u64, Entry>,
    /// When the first of those that wait may go; kept with every change.
    next_due: Option<Timestamp>,
}

impl Ledger {
    /// Everything up to here was looked at.
    pub(super) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// How many more can be looked at.
    pub(super) fn room(&self) -> usize {
        WAITING_MAX.saturating_sub(self.waiting.len())
    }

    /// Whether nothing waits and nothing is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.away.is_empty()
    }

    /// Whether this message was looked at and waits.
    pub(super) fn is_waiting(&self, seq: u64) -> bool {
        self.waiting.contains_key(&seq)
    }

    /// Messages on their way.
    pub(super) fn away(&self) -> usize {
        self.away.len()
    }

    #[cfg(test)]
    pub(super) fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// When the first of those that wait may go; `None` when all of them wait for one that is away.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.next_due
    }

    /// How often the peer asked for this message again, and the last code.
    pub(super) fn tried(&self, seq: u64) -> (u32, Option<ErrorCode>) {
        let entry = self.waiting.get(&seq).or_else(|| self.away.get(&seq));
        entry.map_or((0, None), |entry| (entry.tries, entry.code))
    }

    /// Of those that wait, some that may go now, in order. One that `has` denies stays, and holds its pair.
    ///
    /// Those of one pair go together, as many as there is room for: so few pairs are held up by a batch, and the next batch
    /// finds others. The pair that has waited longest is first.
    pub(super) fn ready(&self, now: Timestamp, room: Room, has: impl Fn(u64) -> bool) -> Vec<u64> {
        let mut ready = Vec::new();
        let mut bytes = 0;
        for (seq, entry) in self.by_pair(now, room.items.saturating_mul(AHEAD), has) {
            bytes += usize::try_from(entry.bytes).unwrap_or(usize::MAX);
            if ready.len() == room.items || (bytes > room.bytes && !ready.is_empty()) {
                break;
            }
            ready.push(seq);
        }
        ready.sort_unstable();
        ready
    }

    /// The first `most` that may go, pair by pair.
    fn by_pair(
        &self,
        now: Timestamp,
        most: usize,
        has: impl Fn(u64) -> bool,
    ) -> impl Iterator<Item = (u64, Entry)> {
        let mut held: HashSet<Pair> = self.away.values().map(|entry| entry.pair).collect();
        let mut places: HashMap<Pair, usize> = HashMap::new();
        let mut found = Vec::new();
        for (seq, entry) in &self.waiting {
            if held.contains(&entry.pair) {
                continue;
            }
            if entry.due > now || !has(*seq) {
                held.insert(entry.pair);
                continue;
            }
            if found.len() == most {
                break;
            }
            let next = places.len();
            let place = *places.entry(entry.pair).or_insert(next);
            found.push((place, *seq, *entry));
        }
        // Stable: within a pair the order stays.
        found.sort_by_key(|(place, ..)| *place);
        found.into_iter().map(|(_, seq, entry)| (seq, entry))
    }

    /// These were looked at, in order; they are beyond the cursor. They wait until they are taken.
    pub(super) fn look_at(&mut self, items: &[OutboxItem]) {
        for item in items {
            self.cursor = self.cursor.max(item.peer_seq);
            if !self.away.contains_key(&item.peer_seq) {
                let entry = Entry {
                    pair: Pair::of(&item.sender, &item.recipient),
                    due: Timestamp::UNIX_EPOCH,
                    bytes: u32::try_from(item.wire.len() + ITEM_BYTES).unwrap_or(u32::MAX),
                    tries: 0,
                    code: None,
                };
                self.waiting.entry(item.peer_seq).or_insert(entry);
            }
        }
        self.update();
    }

    /// They are on their way.
    pub(super) fn take(&mut self, seqs: &[u64]) {
        for seq in seqs {
            if let Some(entry) = self.waiting.remove(seq) {
                self.away.insert(*seq, entry);
            }
        }
        self.update();
    }

    /// They have left the outbox.
    pub(super) fn left(&mut self, seqs: impl IntoIterator<Item = u64>) {
        for seq in seqs {
            self.away.remove(&seq);
            self.waiting.remove(&seq);
        }
        self.update();
    }

    /// They did not get through and go again as soon as their peer is asked again.
    pub(super) fn back(&mut self, seqs: &[u64]) {
        for seq in seqs {
            if let Some(entry) = self.away.remove(seq) {
                self.waiting.insert(*seq, entry);
            }
        }
        self.update();
    }

    /// The peer asked for these again, not before `due`.
    pub(super) fn defer(&mut self, deferred: &[(u64, Timestamp, Option<ErrorCode>)]) {
        for (seq, due, code) in deferred {
            if let Some(entry) = self.away.remove(seq) {
                let tries = entry.tries.saturating_add(1);
                let code = code.or(entry.code);
                let due = *due;
                self.waiting.insert(
                    *seq,
                    Entry {
                        due,
                        tries,
                        code,
                        ..entry
                    },
                );
            }
        }
        self.update();
    }

    /// Nothing waits for a moment any more, on the operator's word.
    pub(super) fn forget_pauses(&mut self) {
        for entry in self.waiting.values_mut() {
            entry.due = Timestamp::UNIX_EPOCH;
        }
        self.update();
    }

    /// Begins again at the lowest message: another process may have sent some since.
    pub(super) fn restart(&mut self) {
        self.cursor = 0;
        self.waiting.clear();
        self.update();
    }

    /// Those of these that wait, without the ones in `found`.
    pub(super) fn missing(&self, asked: &[u64], found: &[OutboxItem]) -> Vec<u64> {
        let found: BTreeSet<u64> = found.iter().map(|item| item.peer_seq).collect();
        let is_missing = |seq: &u64| !found.contains(seq) && self.waiting.contains_key(seq);
        asked.iter().copied().filter(is_missing).collect()
    }

    /// Only the first of a pair counts: the others wait for it.
    fn update(&mut self) {
        let mut held: HashSet<Pair> = self.away.values().map(|entry| entry.pair).collect();
        let firsts = self.waiting.values().filter(|entry| held.insert(entry.pair));
        self.next_due = firsts.map(|entry| entry.due).min();
    }
}

#[cfg(test)]
mod tests;
