//! What is remembered of a mailbox between two calls.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use aip_protocol::name::Did;

use super::changes::Job;
use crate::cursor::Cursor;
use crate::entry::{Entry, Head};
use crate::limits;

/// A cursor and the stream sequence of its record (0: there is none).
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) cursor: Arc<Cursor>,
    pub(super) revision: u64,
}

impl Default for Known {
    /// Of a mailbox that nobody has read from.
    fn default() -> Self {
        Self {
            cursor: Arc::new(Cursor::EMPTY),
            revision: 0,
        }
    }
}

/// Pending messages, as far as they were met. All mailboxes of a process together keep a bounded number.
#[derive(Debug)]
struct Heads {
    kept: BTreeMap<u64, Head>,
    /// How many of them are of whom.
    of_sender: HashMap<Did, u64>,
    total: Arc<AtomicUsize>,
}

impl Heads {
    fn insert(&mut self, head: Head) {
        let room = self.kept.len() < limits::HEADS_KEPT_MAX
            && self.total.load(Relaxed) < limits::HEADS_KEPT_TOTAL_MAX;
        if !room || self.kept.contains_key(&head.seq) {
            return;
        }
        *self.of_sender.entry(head.sender.clone()).or_default() += 1;
        self.kept.insert(head.seq, head);
        self.total.fetch_add(1, Relaxed);
    }

    fn forget_settled(&mut self, cursor: &Cursor) {
        let before = self.kept.len();
        let of_sender = &mut self.of_sender;
        self.kept.retain(|seq, head| {
            let waits = !cursor.is_settled(*seq);
            if !waits && let Some(count) = of_sender.get_mut(&head.sender) {
                *count -= 1;
                if *count == 0 {
                    of_sender.remove(&head.sender);
                }
            }
            waits
        });
        self.total.fetch_sub(before - self.kept.len(), Relaxed);
    }
}

impl Drop for Heads {
    fn drop(&mut self) {
        self.total.fetch_sub(self.kept.len(), Relaxed);
    }
}

/// How far a mailbox goes at least.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) seq: u64,
    stream_seq: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Memory {
    era: u64,
    known: Option<Known>,
    heads: Heads,
    /// The highest sequence number that is known to be given out.
    last_seq: u64,
    /// All entries up to this sequence number were met, or it is known that they are gone.
    met_seq: u64,
    /// Bytes of all envelopes up to a sequence number.
    total_bytes: (u64, u64),
    /// The highest stream sequence that an entry of this mailbox is known to have.
    last_stream_seq: u64,
    /// Changes that wait to be written.
    pub(super) queue: Vec<Job>,
    /// A task is writing them.
    pub(super) writing: bool,
}

impl Memory {
    /// Nothing is remembered yet, of a mailbox in this era; `heads` counts those that all mailboxes keep.
    pub(super) fn new(heads: Arc<AtomicUsize>, era: u64) -> Self {
        Self {
            era,
            known: None,
            heads: Heads {
                kept: BTreeMap::new(),
                of_sender: HashMap::new(),
                total: heads,
            },
            last_seq: 0,
            met_seq: 0,
            total_bytes: (0, 0),
            last_stream_seq: 0,
            queue: Vec::new(),
            writing: false,
        }
    }

    /// Takes note of a cursor and tells the newest known: records only grow, so the one with the higher revision
    /// has everything that the other has.
    pub(super) fn learn(&mut self, read: Known) -> Known {
        match &self.known {
            Some(known) if known.revision >= read.revision => known.clone(),
            _ => {
                self.heads.forget_settled(&read.cursor);
                self.last_seq = self.last_seq.max(read.cursor.next_seq().saturating_sub(1));
                self.known = Some(read.clone());
                read
            }
        }
    }

    /// The newest cursor known.
    pub(super) fn known(&self) -> Option<&Known> {
        self.known.as_ref()
    }

    /// Whether the message is known to be settled.
    pub(super) fn is_settled(&self, seq: u64) -> bool {
        let known = self.known.as_ref();
        known.is_some_and(|known| known.cursor.is_settled(seq))
    }

    /// Takes note of an entry.
    pub(super) fn met(&mut self, entry: &Entry, stream_seq: u64) {
        self.heard(entry.seq);
        self.all_met(entry.seq);
        self.total_bytes = self.total_bytes.max((entry.seq, entry.total_bytes));
        self.last_stream_seq = self.last_stream_seq.max(stream_seq);
        if entry.kind.waits() && !self.is_settled(entry.seq) {
            self.heads.insert(entry.head(stream_seq));
        }
    }

    /// Takes note that `seq` was given out.
    pub(super) fn heard(&mut self, seq: u64) {
        self.last_seq = self.last_seq.max(seq);
    }

    /// Takes note that no entry up to `seq` is left to be met.
    pub(super) fn all_met(&mut self, seq: u64) {
        self.met_seq = self.met_seq.max(seq);
    }

    /// What a reader must have seen before it may say that nothing follows.
    pub(super) fn end(&self) -> End {
        End {
            seq: self.last_seq,
            stream_seq: self.last_stream_seq,
        }
    }

    /// Whether a reader that would go on at `next` has seen everything up to `end`.
    pub(super) fn is_past(&self, end: End, next: u64) -> bool {
        next > end.stream_seq && self.met_seq >= end.seq
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Bytes of all envelopes up to the last sequence number, if that one's entry was met.
    pub(super) fn total_bytes(&self) -> Option<u64> {
        let (seq, total_bytes) = self.total_bytes;
        (seq == self.last_seq).then_some(total_bytes)
    }

    pub(super) fn head(&self, seq: u64) -> Option<&Head> {
        self.heads.kept.get(&seq)
    }

    /// A stream sequence from which on every pending message above `after` is met.
    pub(super) fn start_after(&self, after: u64) -> u64 {
        let below = self.heads.kept.range(..=after).next_back();
        let below = below.map_or(0, |(_, head)| head.stream_seq.saturating_add(1));
        let floor = self
            .known
            .as_ref()
            .map_or(0, |known| known.cursor.read_from(self.era));
        below.max(floor)
    }

    /// How many of the pending messages up to `last_seq` are from `sender`; `None` when some are not known.
    pub(super) fn count_from(&self, cursor: &Cursor, last_seq: u64, sender: &Did) -> Option<u64> {
        if self.knows_all(cursor, last_seq) {
            return Some(self.heads.of_sender.get(sender).copied().unwrap_or(0));
        }
        let mut count = 0;
        for seq in cursor.unsettled(last_seq) {
            count += u64::from(self.heads.kept.get(&seq)?.sender == *sender);
        }
        Some(count)
    }

    /// Whether the heads that are kept are just those of the pending messages up to `last_seq`: none of those kept is
    /// settled by the newest cursor known.
    fn knows_all(&self, cursor: &Cursor, last_seq: u64) -> bool {
        let known = self.known.as_ref();
        let kept = &self.heads.kept;
        known.is_some_and(|known| std::ptr::eq(Arc::as_ptr(&known.cursor), cursor))
            && kept.keys().next_back().is_none_or(|last| *last <= last_seq)
            && kept.len() as u64 == cursor.pending(last_seq.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use aip_protocol::time::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::entry::{Kind, Reuse};
    use crate::testing::did;

    /// Number `seq`, of one of these senders.
    fn entry(seq: u64, sender: &str) -> Entry {
        let at = Timestamp::UNIX_EPOCH;
        Entry {
            kind: Kind::Peer,
            seq,
            total_bytes: seq,
            stamp: seq,
            reuse: Reuse::NONE,
            accepted_at: at,
            expires_at: at,
            until: at,
            dedup_key: [0; 16],
            digest: [0; 32],
            id: Uuid::from_u64_pair(4, seq),
            sender: did(sender),
            recipient: did("erin"),
            wire: bytes::Bytes::from_static(b"x"),
        }
    }

    /// Counted one by one.
    fn counted(memory: &Memory, last_seq: u64, sender: &str) -> u64 {
        let known = memory.known().cloned().unwrap_or_default();
        let of_sender = |seq: &u64| memory.head(*seq).is_some_and(|head| head.sender == did(sender));
        known.cursor.unsettled(last_seq).filter(of_sender).count() as u64
    }

    #[test]
    fn the_messages_of_a_sender_are_counted_as_they_come_and_go() {
        let total = Arc::new(AtomicUsize::new(0));
        let mut memory = Memory::new(Arc::clone(&total), 0);
        memory.learn(Known::default());
        let mut cursor = Cursor::EMPTY;
        for (seq, sender) in (1..=60).zip(["alice", "bob", "carol"].into_iter().cycle()) {
            memory.met(&entry(seq, sender), seq);
            memory.met(&entry(seq, sender), seq);
            if seq % 4 == 0 {
                for gone in [seq - 3, seq - 1] {
                    let head = memory.head(gone).cloned().expect("it waits");
                    assert!(cursor.settle(&head, 0));
                }
                memory.learn(Known {
                    cursor: Arc::new(cursor.clone()),
                    revision: seq,
                });
            }
            let known = memory.known().cloned().unwrap_or_default().cursor;
            assert!(memory.knows_all(&known, seq));
            for sender in ["alice", "bob", "carol", "dave"] {
                let expected = counted(&memory, seq, sender);
                assert_eq!(memory.count_from(&known, seq, &did(sender)), Some(expected));
            }
        }
        assert_eq!(total.load(Relaxed), 30);
    }

    #[test]
    fn who_does_not_know_all_messages_does_not_count_them() {
        let mut memory = Memory::new(Arc::default(), 0);
        memory.learn(Known::default());
        memory.met(&entry(1, "alice"), 1);
        memory.met(&entry(3, "alice"), 3);
        let known = memory.known().cloned().unwrap_or_default().cursor;
        assert_eq!(memory.count_from(&known, 3, &did("alice")), None);
        memory.met(&entry(2, "bob"), 2);
        assert_eq!(memory.count_from(&known, 3, &did("alice")), Some(2));
        assert_eq!(
            memory.count_from(&Cursor::EMPTY, 2, &did("alice")),
            Some(1),
            "by another cursor, and not to the end"
        );
    }
}
