//! Which messages of a peer's outbox go next: each pair of sender and recipient in order, none twice at a time.
//!
//! Everything up to the *cursor* was looked at: it has left, is *away* (in a batch on its way), or *waits* (for a retry, or for
//! an earlier message of its pair). Of what waits only the place is held, not the message, in the [`Lane`] of its pair; there
//! are [`places`] for all that an outbox holds, so that a mailbox that is full holds up nobody else's mail. All of it can be
//! forgotten at any time: the outbox is the truth, and looking begins at its lowest message again.
//!
//! What is asked of a ledger costs as much as a batch, however much waits.

mod lane;
pub(super) mod places;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use aip_protocol::error::ErrorCode;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;

use super::batch::ITEM_BYTES;
use crate::limits::{HURRIED_MAX, HURRY_EVERY};
use crate::outbox::OutboxItem;
use lane::{Lane, Place};
use places::{Held, Places};

/// From how many batches' worth of messages one batch is chosen.
pub(super) const AHEAD: usize = 4;

/// Sender and recipient, as a hash: two pairs that share one merely wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Pair(u64);

impl Pair {
    fn of(item: &OutboxItem) -> Self {
        Self::between(&item.sender, &item.recipient)
    }

    fn between(sender: &Did, recipient: &Did) -> Self {
        let mut hasher = DefaultHasher::new();
        (sender, recipient).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// The place of a lane among those that may go, now or later: the swift ones first, by their first message, then those
/// that the peer held up, by the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_slow: bool,
    due: Timestamp,
    first: u64,
    pair: Pair,
}

/// A message that waits and may go now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    pub(super) seq: u64,
    pair: Pair,
    bytes: u32,
}

/// Most messages and bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) items: usize,
    pub(super) bytes: usize,
}

/// Where the messages of one outbox are.
#[derive(Debug)]
pub(super) struct Ledger {
    cursor: u64,
    lanes: HashMap<Pair, Lane>,
    /// The lanes of which something waits and nothing is away; kept with every change of a lane.
    ranks: BTreeSet<Rank>,
    away: BTreeMap<u64, (Pair, u32)>,
    held: Held,
    /// Not before then again.
    hurry_at: Timestamp,
}

impl Ledger {
    /// Nothing was looked at.
    pub(super) fn new(places: &Arc<Places>) -> Self {
        Self {
            cursor: 0,
            lanes: HashMap::new(),
            ranks: BTreeSet::new(),
            away: BTreeMap::new(),
            held: Held::new(places),
            hurry_at: Timestamp::UNIX_EPOCH,
        }
    }

    /// Everything up to here was looked at.
    pub(super) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// How many more can be looked at.
    pub(super) fn room(&self) -> usize {
        self.held.room()
    }

    /// Whether nothing waits and nothing is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Whether this message was looked at and waits.
    pub(super) fn is_waiting(&self, item: &OutboxItem) -> bool {
        let lane = self.lanes.get(&Pair::of(item));
        lane.is_some_and(|lane| lane.holds(item.peer_seq))
    }

    /// Messages on their way.
    pub(super) fn away(&self) -> usize {
        self.away.len()
    }

    #[cfg(test)]
    pub(super) fn waiting_count(&self) -> usize {
        self.held.count()
    }

    /// When the first of those that wait may go; `None` when all of them wait for one that is away.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.ranks.first().map(|rank| rank.due)
    }

    /// How often in a row the peer asked for the pair of this message again, which is on its way.
    pub(super) fn tries(&self, seq: u64) -> u32 {
        let lane = self.away.get(&seq).and_then(|(pair, _)| self.lanes.get(pair));
        lane.map_or(0, |lane| lane.tries)
    }

    /// What the peer said last when it asked for the pair of this message again.
    pub(super) fn last_code(&self, item: &OutboxItem) -> Option<ErrorCode> {
        self.lanes.get(&Pair::of(item)).and_then(|lane| lane.code)
    }

    /// Of those that wait, some that may go now, in order.
    ///
    /// Those of one pair go together, as many as there is room for: so few pairs are held up by a batch, and the next batch
    /// finds others. The pair that has waited longest is first. Pairs that the peer held up get half of the room if there
    /// are others, or may be (`with_others`): however many of them come due, others go on.
    pub(super) fn ready(&self, now: Timestamp, room: Room, with_others: bool) -> Vec<Due> {
        let swift = self.ranks.iter().take_while(|rank| !rank.is_slow);
        let slow = self.ranks.range(Rank::first_slow()..);
        let slow = slow.take_while(|rank| rank.due <= now);
        let shares = with_others || self.ranks.first().is_some_and(|rank| !rank.is_slow);
        let due = |rank: &Rank| {
            let (lane, pair) = (self.lanes.get(&rank.pair), rank.pair);
            let places = lane.into_iter().flat_map(|lane| lane.next(room.items));
            places.map(move |place| place.due(pair))
        };
        fill(room, shares, slow.flat_map(due), swift.flat_map(due))
    }

    /// Of those at hand, which wait, some that may go now, as [`Self::ready`] does it. One that is not at hand holds its pair.
    pub(super) fn choose(&self, now: Timestamp, room: Room, at_hand: &BTreeMap<u64, OutboxItem>) -> Vec<u64> {
        // By lane, in the order of their first messages.
        let (mut slow, mut swift) = (BTreeMap::new(), BTreeMap::new());
        for (seq, item) in at_hand {
            let pair = Pair::of(item);
            let Some(lane) = self.lanes.get(&pair) else {
                continue;
            };
            let Some(first) = lane.first().filter(|_| lane.may_go(now)) else {
                continue;
            };
            let runs = if lane.is_slow { &mut slow } else { &mut swift };
            let run: &mut Vec<Due> = runs.entry(first).or_default();
            // The next of its lane.
            let next = lane.next(room.items).nth(run.len());
            run.extend(
                next.filter(|place| place.seq == *seq)
                    .map(|place| place.due(pair)),
            );
        }
        let shares = swift.values().any(|run| !run.is_empty());
        let slow = slow.into_values().flatten();
        let chosen = fill(room, shares, slow, swift.into_values().flatten());
        chosen.into_iter().map(|due| due.seq).collect()
    }

    /// These were looked at, in order. Those that were not before wait until they are taken.
    pub(super) fn look_at(&mut self, items: &[OutboxItem]) {
        for item in items {
            let seq = item.peer_seq;
            self.cursor = self.cursor.max(seq);
            if !self.away.contains_key(&seq) {
                let bytes = u32::try_from(item.wire.len() + ITEM_BYTES).unwrap_or(u32::MAX);
                self.change(Pair::of(item), |lane| lane.put(Place { seq, bytes }));
            }
        }
    }

    /// They are on their way.
    pub(super) fn take<'a>(&mut self, items: impl IntoIterator<Item = &'a OutboxItem>) {
        for item in items {
            let pair = Pair::of(item);
            let taken = self.change(pair, |lane| {
                let place = lane.remove(item.peer_seq);
                lane.away += usize::from(place.is_some());
                place
            });
            if let Some(Place { seq, bytes }) = taken {
                self.away.insert(seq, (pair, bytes));
            }
        }
    }

    /// They have left the outbox, whatever became of them.
    pub(super) fn left(&mut self, seqs: impl IntoIterator<Item = u64>) {
        for seq in seqs {
            self.returns(seq, |_, _| ());
        }
    }

    /// They have left the outbox on the peer's word: nothing holds up their pairs.
    pub(super) fn got_through(&mut self, seqs: impl IntoIterator<Item = u64>, now: Timestamp) {
        for seq in seqs {
            self.returns(seq, |lane, _| lane.is_free(now));
        }
    }

    /// They did not get through and go again as soon as their peer is asked again.
    pub(super) fn back(&mut self, seqs: &[u64]) {
        for seq in seqs {
            self.returns(*seq, Lane::put);
        }
    }

    /// The peer asked for these again, in order. Their pairs wait, each for its first message, which does not go before `due`.
    pub(super) fn defer(&mut self, deferred: &[(u64, Timestamp, Option<ErrorCode>)]) {
        let mut pairs = HashSet::new();
        for (seq, due, code) in deferred {
            let is_first = self.away.get(seq).is_some_and(|(pair, _)| pairs.insert(*pair));
            self.returns(*seq, |lane, place| {
                lane.put(place);
                if is_first {
                    lane.is_held_up(*due, *code);
                }
            });
        }
    }

    /// The peer takes no more until what it held up is settled: the first of that go now, once in a while.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        if self.hurry_at > now {
            return;
        }
        self.hurry_at = now + HURRY_EVERY;
        let is_held_up = |rank: &&Rank| {
            let code = self.lanes.get(&rank.pair).and_then(|lane| lane.code);
            rank.due > now && code != Some(ErrorCode::FutureCursor)
        };
        let held_up = self.ranks.iter().filter(is_held_up);
        let mut firsts: Vec<(u64, Pair)> = held_up.map(|rank| (rank.first, rank.pair)).collect();
        if firsts.len() > HURRIED_MAX {
            firsts.select_nth_unstable(HURRIED_MAX);
            firsts.truncate(HURRIED_MAX);
        }
        for (_, pair) in firsts {
            self.change(pair, |lane| lane.due = now);
        }
    }

    /// Nothing waits for a moment any more, on the operator's word.
    pub(super) fn forget_pauses(&mut self) {
        let pairs: Vec<Pair> = self.ranks.iter().map(|rank| rank.pair).collect();
        for pair in pairs {
            self.change(pair, |lane| (lane.due, lane.tries) = (Timestamp::UNIX_EPOCH, 0));
        }
    }

    /// Begins again at the lowest message: another process may have sent some since.
    pub(super) fn restart(&mut self) {
        self.cursor = 0;
        self.ranks.clear();
        self.lanes.retain(|_, lane| {
            lane.waiting.clear();
            lane.away > 0
        });
        self.held.hold(0);
    }

    /// Those that were to go and are not found in the outbox any more are forgotten.
    pub(super) fn forget_missing(&mut self, due: &[Due], found: &[OutboxItem]) {
        let found: HashSet<u64> = found.iter().map(|item| item.peer_seq).collect();
        for due in due.iter().filter(|due| !found.contains(&due.seq)) {
            self.change(due.pair, |lane| lane.remove(due.seq));
        }
    }

    /// A message is not on its way any more.
    fn returns(&mut self, seq: u64, change: impl FnOnce(&mut Lane, Place)) {
        if let Some((pair, bytes)) = self.away.remove(&seq) {
            self.change(pair, |lane| {
                lane.away = lane.away.saturating_sub(1);
                change(lane, Place { seq, bytes });
            });
        }
    }

    /// Changes a lane, and what follows from it.
    fn change<R>(&mut self, pair: Pair, change: impl FnOnce(&mut Lane) -> R) -> R {
        let lane = self.lanes.entry(pair).or_default();
        let (rank, waiting) = (lane.rank(pair), lane.waiting.len());
        let brought = change(lane);
        let (new_rank, now_waiting) = (lane.rank(pair), lane.waiting.len());
        if lane.is_empty() {
            self.lanes.remove(&pair);
        }
        if rank != new_rank {
            rank.map(|rank| self.ranks.remove(&rank));
            self.ranks.extend(new_rank);
        }
        if waiting != now_waiting {
            self.held
                .hold((self.held.count() + now_waiting).saturating_sub(waiting));
        }
        brought
    }
}

/// What there is room for, in order: first of the slow ones, in half of the room if it `shares` with the swift ones.
fn fill(
    room: Room,
    shares: bool,
    slow: impl Iterator<Item = Due>,
    swift: impl Iterator<Item = Due>,
) -> Vec<Due> {
    let part = if shares { 2 } else { 1 };
    let slow_room = Room {
        items: room.items / part,
        bytes: room.bytes / part,
    };
    let (mut filled, mut bytes) = (Vec::new(), 0_usize);
    let mut add = |due: Due, room: Room| {
        let more = bytes.saturating_add(usize::try_from(due.bytes).unwrap_or(usize::MAX));
        let fits = filled.len() < room.items && (more <= room.bytes || filled.is_empty());
        if fits {
            bytes = more;
            filled.push(due);
        }
        fits
    };
    // Up to the first of each that does not fit.
    let mut slow = slow.map(|due| add(due, slow_room));
    while slow.next() == Some(true) {}
    drop(slow);
    let mut swift = swift.map(|due| add(due, room));
    while swift.next() == Some(true) {}
    drop(swift);
    filled.sort_unstable_by_key(|due| due.seq);
    filled
}

#[cfg(test)]
mod tests;
