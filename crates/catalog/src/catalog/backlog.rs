//! What waits to be embedded: the newest first, and no more of it in memory than there is room for.

use std::collections::{BTreeMap, BTreeSet};

/// Listings that wait, by the change that brought them.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    waiting: BTreeSet<(u64, u64)>,
    /// Listings that were taken and are not back yet, and whether they changed since.
    taken: BTreeMap<u64, bool>,
    /// Changes after the first and up to the second that are to be read again: there was no room, or nobody looked yet.
    gap: Option<(u64, u64)>,
    /// Every change up to this one was looked at or is in the gap.
    considered: u64,
    most: usize,
}

impl Backlog {
    /// Nobody looked yet at the changes after `settled` and up to `applied`.
    pub(super) fn new(settled: u64, applied: u64, most: usize) -> Self {
        Self {
            gap: (settled < applied).then_some((settled, applied)),
            considered: applied.max(settled),
            most,
            ..Self::default()
        }
    }

    /// Everything will be looked at again, from the first change on.
    pub(super) fn begin_anew(&mut self) {
        *self = Self {
            most: self.most,
            taken: std::mem::take(&mut self.taken),
            ..Self::default()
        };
    }

    /// The listing waits from this change on.
    pub(super) fn push(&mut self, seq: u64, number: u64) {
        if self.waiting.len() < self.most {
            self.waiting.insert((seq, number));
        } else {
            let (from, to) = self.gap.unwrap_or((seq, seq));
            self.gap = Some((from.min(seq.saturating_sub(1)), to.max(seq)));
        }
    }

    /// All changes up to this one were looked at.
    pub(super) fn passed(&mut self, seq: u64) {
        self.considered = self.considered.max(seq);
    }

    /// Takes the newest, at most so many. Each must be given back or be done.
    pub(super) fn take(&mut self, most: usize) -> Vec<(u64, u64)> {
        let taken: Vec<_> = std::iter::from_fn(|| self.waiting.pop_last())
            .take(most)
            .collect();
        self.taken
            .extend(taken.iter().map(|(_, number)| (*number, false)));
        taken
    }

    /// What was taken is embedded, or gone.
    pub(super) fn done(&mut self, taken: &[(u64, u64)]) {
        for (_, number) in taken {
            self.taken.remove(number);
        }
    }

    /// These listings changed: those of them that were taken are noted.
    pub(super) fn changed(&mut self, numbers: impl Iterator<Item = u64>) {
        if self.taken.is_empty() {
            return;
        }
        for number in numbers {
            if let Some(has_changed) = self.taken.get_mut(&number) {
                *has_changed = true;
            }
        }
    }

    /// What was taken and changed since.
    pub(super) fn changed_since_taken(&self) -> Vec<u64> {
        let changed = self.taken.iter().filter(|(_, has_changed)| **has_changed);
        changed.map(|(number, _)| *number).collect()
    }

    /// What was taken waits again.
    pub(super) fn give_back(&mut self, taken: Vec<(u64, u64)>) {
        self.done(&taken);
        self.waiting.extend(taken);
    }

    /// What is to be read again, once nothing waits.
    pub(super) fn gap(&self) -> Option<(u64, u64)> {
        self.gap.filter(|_| self.waiting.is_empty())
    }

    /// The gap was read up to this change.
    pub(super) fn narrow(&mut self, upto: u64) {
        self.gap = self.gap.and_then(|(from, to)| {
            let from = from.max(upto);
            (from < to).then_some((from, to))
        });
    }

    /// The change up to which every listing has its vector, where nothing waits.
    pub(super) fn settled(&self) -> Option<u64> {
        let is_idle = self.waiting.is_empty() && self.taken.is_empty() && self.gap.is_none();
        is_idle.then_some(self.considered)
    }

    /// How many wait, at most.
    pub(super) fn len(&self) -> u64 {
        let gap = self.gap.map_or(0, |(from, to)| to - from);
        let waiting = u64::try_from(self.waiting.len() + self.taken.len()).unwrap_or(u64::MAX);
        waiting.saturating_add(gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_come_first_and_what_has_no_room_is_read_again() {
        let mut backlog = Backlog::new(0, 0, 2);
        for seq in 1..=4 {
            backlog.push(seq, seq * 10);
            backlog.passed(seq);
        }
        assert_eq!((backlog.len(), backlog.gap()), (4, None));
        let taken = backlog.take(9);
        assert_eq!(taken, [(2, 20), (1, 10)]);
        assert_eq!((backlog.gap(), backlog.settled()), (Some((2, 4)), None));
        backlog.done(&taken);
        backlog.narrow(3);
        assert_eq!(backlog.gap(), Some((3, 4)));
        backlog.narrow(9);
        assert_eq!(backlog.settled(), Some(4));
    }

    #[test]
    fn what_is_given_back_waits_again() {
        let mut backlog = Backlog::new(3, 7, 100);
        assert_eq!(backlog.gap(), Some((3, 7)));
        backlog.push(9, 1);
        let taken = backlog.take(1);
        backlog.give_back(taken);
        assert_eq!((backlog.take(5), backlog.len()), (vec![(9, 1)], 5));
        backlog.begin_anew();
        assert_eq!(backlog.settled(), None);
        backlog.changed([1, 2].into_iter());
        assert_eq!(backlog.changed_since_taken(), [1]);
        backlog.done(&[(9, 1)]);
        assert_eq!(backlog.changed_since_taken(), [0; 0]);
        assert_eq!(backlog.settled(), Some(0));
    }
}
