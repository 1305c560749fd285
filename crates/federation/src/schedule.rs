//! Who is next: the order of next attempts of all peers, and how many may be on their way.
//!
//! A peer has one place, at a moment, in one class. Those that answered last time have all slots to themselves, though more
//! requests of one at a time only half; those that answer slowly, those of which nothing is known yet, and those that failed
//! share a part of them, each no more than a part of that: so a thousand peers that hang hold up nobody who answers. A
//! request to a peer that answered last time and does not now leaves its slot to others ([`Schedule::late`]). What the
//! requests hold in memory has a bound too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use aip_protocol::time::Timestamp;

use crate::limits::{BATCH_BYTES_HELD_MAX, BATCH_BYTES_MAX, LATE_BYTES_MAX, PUSHES_BYTES_MAX};

/// What is known of a peer, as far as fairness goes, in the order in which they are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// It answered last time, and nothing is on its way to it.
    Well,
    /// It answered last time, and this would be one more request at the same time.
    More,
    /// Its last answer took long, or one takes long now.
    Slow,
    /// Nothing yet.
    Fresh,
    /// It failed last time.
    Failing,
}

impl Class {
    const ALL: [Self; 5] = [Self::Well, Self::More, Self::Slow, Self::Fresh, Self::Failing];

    /// The most that a request to such a peer holds in memory, in bytes.
    fn bytes_max(self) -> usize {
        match self {
            Self::Well | Self::More | Self::Slow => BATCH_BYTES_MAX,
            Self::Fresh | Self::Failing => BATCH_BYTES_HELD_MAX,
        }
    }
}

/// What is counted of requests on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Count {
    Of(Class),
    Late,
}

/// Leave for one request.
#[derive(Debug)]
#[must_use = "a slot is given back with `Schedule::free`"]
pub struct Slot {
    count: Count,
    bytes: usize,
}

/// The order of next attempts.
#[derive(Debug)]
pub struct Schedule<K> {
    places: HashMap<K, (Timestamp, Class)>,
    queues: BTreeMap<Class, BTreeSet<(Timestamp, K)>>,
    slots_max: usize,
    used: BTreeMap<Count, Used>,
}

/// Requests, and what they hold in memory.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    requests: usize,
    bytes: usize,
}

impl<K: Clone + Ord + Hash> Schedule<K> {
    /// Nobody is waiting, and so many requests may be on their way at the same time.
    pub fn new(slots_max: usize) -> Self {
        Self {
            places: HashMap::new(),
            queues: BTreeMap::new(),
            slots_max: slots_max.max(1),
            used: BTreeMap::new(),
        }
    }

    /// The next attempt of `key` is at this moment.
    pub fn set(&mut self, key: &K, at: Timestamp, class: Class) {
        if self.places.get(key) == Some(&(at, class)) {
            return;
        }
        self.unset(key);
        self.places.insert(key.clone(), (at, class));
        self.queue(class).insert((at, key.clone()));
    }

    /// There is no next attempt of `key`.
    pub fn unset(&mut self, key: &K) {
        if let Some((at, class)) = self.places.remove(key) {
            self.queue(class).remove(&(at, key.clone()));
        }
    }

    /// When the next attempt of `key` is.
    pub fn at(&self, key: &K) -> Option<Timestamp> {
        self.places.get(key).map(|(at, _)| *at)
    }

    /// Of those that failed, the one that is asked last.
    pub fn last_failing(&self) -> Option<&K> {
        let failing = self.queues.get(&Class::Failing);
        failing.and_then(BTreeSet::last).map(|(_, key)| key)
    }

    /// Takes the next one that is due, with a slot for its request; `None` when nobody is due, or no slot is free for those
    /// who are.
    pub fn take(&mut self, now: Timestamp) -> Option<(K, Slot)> {
        for class in Class::ALL {
            if !self.has_slot(class) {
                continue;
            }
            let first = self.queue(class).first().filter(|(at, _)| *at <= now).cloned();
            let Some((_, key)) = first else { continue };
            self.unset(&key);
            let (count, bytes) = (Count::Of(class), class.bytes_max());
            self.occupy(count, bytes);
            return Some((key, Slot { count, bytes }));
        }
        None
    }

    /// The moment of the first attempt for which there is a slot.
    pub fn next(&self) -> Option<Timestamp> {
        let classes = Class::ALL.into_iter().filter(|class| self.has_slot(*class));
        let firsts = classes.filter_map(|class| self.queues.get(&class)?.first());
        firsts.map(|(at, _)| *at).min()
    }

    /// The request turned out to hold so many bytes, not more than were set aside for it.
    pub fn shrink(&mut self, slot: &mut Slot, bytes: usize) {
        let spare = slot.bytes.saturating_sub(bytes);
        slot.bytes -= spare;
        let used = self.used.entry(slot.count).or_default();
        used.bytes = used.bytes.saturating_sub(spare);
    }

    /// The request takes long although its peer answered last time: others need not wait for it, as long as there are not
    /// too many of its kind. Not so to peers whose class has but a share: whoever hangs again and again stays in that.
    pub fn late(&mut self, slot: &mut Slot) {
        let late = self.used(|count| count == Count::Late);
        let has_room = late.requests < self.slots_max * 2 && late.bytes + slot.bytes <= LATE_BYTES_MAX;
        if has_room && matches!(slot.count, Count::Of(Class::Well | Class::More)) {
            self.vacate(slot);
            slot.count = Count::Late;
            self.occupy(slot.count, slot.bytes);
        }
    }

    /// Gives a slot back.
    #[expect(clippy::needless_pass_by_value, reason = "a slot is given back once")]
    pub fn free(&mut self, slot: Slot) {
        self.vacate(&slot);
    }

    /// Requests on their way.
    pub fn in_flight(&self) -> usize {
        self.used(|_| true).requests
    }

    /// Whether one more request of this class may start.
    fn has_slot(&self, class: Class) -> bool {
        let all = self.used(|count| count != Count::Late);
        let own = self.used(|count| count == Count::Of(class)).requests;
        let sharing = |count| matches!(count, Count::Of(Class::Slow | Class::Fresh | Class::Failing));
        let sharing = self.used(sharing).requests;
        let part = |quarters: usize| (self.slots_max * quarters).div_ceil(4);
        let has_share = match class {
            Class::Well => true,
            Class::More => own < part(2),
            Class::Fresh => sharing < part(3),
            Class::Slow | Class::Failing => own < part(1) && sharing < part(3),
        };
        let has_memory = all.requests == 0 || all.bytes + class.bytes_max() <= PUSHES_BYTES_MAX;
        has_share && has_memory && all.requests < self.slots_max
    }

    fn queue(&mut self, class: Class) -> &mut BTreeSet<(Timestamp, K)> {
        self.queues.entry(class).or_default()
    }

    /// What is used, of some.
    fn used(&self, of: impl Fn(Count) -> bool) -> Used {
        let some = self.used.iter().filter(|(count, _)| of(**count));
        some.fold(Used::default(), |sum, (_, used)| Used {
            requests: sum.requests + used.requests,
            bytes: sum.bytes + used.bytes,
        })
    }

    fn occupy(&mut self, count: Count, bytes: usize) {
        let used = self.used.entry(count).or_default();
        used.requests += 1;
        used.bytes += bytes;
    }

    fn vacate(&mut self, slot: &Slot) {
        let used = self.used.entry(slot.count).or_default();
        used.requests = used.requests.saturating_sub(1);
        used.bytes = used.bytes.saturating_sub(slot.bytes);
    }
}

#[cfg(test)]
mod tests;
