//! Who is next: the order of next attempts of all peers, and how many may be on their way.
//!
//! A peer has one place, at a moment, in one of three classes. Those that answered last time have all slots to themselves;
//! those of which nothing is known yet, and those that failed, share a part of them, the failing ones a smaller part: so a
//! thousand peers that hang hold up nobody who answers. What the requests hold in memory has a bound too.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use aip_protocol::time::Timestamp;

use crate::limits::{BATCH_BYTES_HELD_MAX, BATCH_BYTES_MAX, PUSHES_BYTES_MAX};

/// What is known of a peer, as far as fairness goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It answered last time.
    Well,
    /// Nothing yet.
    Fresh,
    /// It failed last time.
    Failing,
}

impl Class {
    /// In the order in which they are served.
    const ALL: [Self; 3] = [Self::Well, Self::Fresh, Self::Failing];

    /// The most that a request to such a peer holds in memory, in bytes.
    fn bytes_max(self) -> usize {
        match self {
            Self::Well => BATCH_BYTES_MAX,
            Self::Fresh | Self::Failing => BATCH_BYTES_HELD_MAX,
        }
    }
}

/// Leave for one request.
#[derive(Debug)]
#[must_use = "a slot is given back with `Schedule::free`"]
pub struct Slot {
    class: Class,
    bytes: usize,
}

/// The order of next attempts.
#[derive(Debug)]
pub struct Schedule<K> {
    places: HashMap<K, (Timestamp, Class)>,
    well: BTreeSet<(Timestamp, K)>,
    fresh: BTreeSet<(Timestamp, K)>,
    failing: BTreeSet<(Timestamp, K)>,
    slots_max: usize,
    used: Used,
}

#[derive(Debug, Default)]
struct Used {
    well: usize,
    fresh: usize,
    failing: usize,
    bytes: usize,
}

impl<K: Clone + Ord + Hash> Schedule<K> {
    /// Nobody is waiting, and so many requests may be on their way at the same time.
    pub fn new(slots_max: usize) -> Self {
        Self {
            places: HashMap::new(),
            well: BTreeSet::new(),
            fresh: BTreeSet::new(),
            failing: BTreeSet::new(),
            slots_max: slots_max.max(1),
            used: Used::default(),
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
        self.failing.last().map(|(_, key)| key)
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
            let bytes = class.bytes_max();
            *self.count(class) += 1;
            self.used.bytes += bytes;
            return Some((key, Slot { class, bytes }));
        }
        None
    }

    /// The moment of the first attempt for which there is a slot.
    pub fn next(&self) -> Option<Timestamp> {
        let firsts = Class::ALL
            .into_iter()
            .filter(|class| self.has_slot(*class))
            .filter_map(|class| match class {
                Class::Well => self.well.first(),
                Class::Fresh => self.fresh.first(),
                Class::Failing => self.failing.first(),
            });
        firsts.map(|(at, _)| *at).min()
    }

    /// The request turned out to hold so many bytes, not more than were set aside for it.
    pub fn shrink(&mut self, slot: &mut Slot, bytes: usize) {
        let spare = slot.bytes.saturating_sub(bytes);
        slot.bytes -= spare;
        self.used.bytes = self.used.bytes.saturating_sub(spare);
    }

    /// Gives a slot back.
    #[expect(clippy::needless_pass_by_value, reason = "a slot is given back once")]
    pub fn free(&mut self, slot: Slot) {
        let Slot { class, bytes } = slot;
        let count = self.count(class);
        *count = count.saturating_sub(1);
        self.used.bytes = self.used.bytes.saturating_sub(bytes);
    }

    /// Requests on their way.
    pub fn in_flight(&self) -> usize {
        self.used.well + self.used.fresh + self.used.failing
    }

    /// Whether one more request of this class may start.
    fn has_slot(&self, class: Class) -> bool {
        let Used { fresh, failing, .. } = self.used;
        let (quarter, most) = (self.slots_max.div_ceil(4), (self.slots_max * 3).div_ceil(4));
        let has_share = match class {
            Class::Well => true,
            Class::Fresh => fresh + failing < most,
            Class::Failing => failing < quarter && fresh + failing < most,
        };
        let has_memory = self.in_flight() == 0 || self.used.bytes + class.bytes_max() <= PUSHES_BYTES_MAX;
        has_share && has_memory && self.in_flight() < self.slots_max
    }

    fn queue(&mut self, class: Class) -> &mut BTreeSet<(Timestamp, K)> {
        match class {
            Class::Well => &mut self.well,
            Class::Fresh => &mut self.fresh,
            Class::Failing => &mut self.failing,
        }
    }

    fn count(&mut self, class: Class) -> &mut usize {
        match class {
            Class::Well => &mut self.used.well,
            Class::Fresh => &mut self.used.fresh,
            Class::Failing => &mut self.used.failing,
        }
    }
}

#[cfg(test)]
mod tests;
