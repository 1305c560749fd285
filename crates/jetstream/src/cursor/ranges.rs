//! A set of numbers that come in runs.

use std::collections::BTreeMap;

/// Runs of numbers: first to last, apart from each other by at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ranges {
    runs: BTreeMap<u64, u64>,
    len: u64,
}

impl Ranges {
    pub(super) const EMPTY: Self = Self {
        runs: BTreeMap::new(),
        len: 0,
    };

    /// How many numbers.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The runs, in order.
    pub(super) fn runs(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + '_ {
        self.runs.iter().map(|(first, last)| (*first, *last))
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        let below = self.runs.range(..=number).next_back();
        below.is_some_and(|(_, last)| *last >= number)
    }

    /// Adds a number that is not in it.
    pub(super) fn insert(&mut self, number: u64) {
        let before = self.runs.range(..number).next_back();
        let first = before
            .filter(|(_, last)| last.checked_add(1) == Some(number))
            .map_or(number, |(first, _)| *first);
        let last = number
            .checked_add(1)
            .and_then(|next| self.runs.remove(&next))
            .unwrap_or(number);
        self.runs.insert(first, last);
        self.len += 1;
    }

    /// Adds a run that lies above all others; `None` when it does not, or touches the last one.
    pub(super) fn push(&mut self, first: u64, last: u64) -> Option<()> {
        let end = self.runs.last_key_value().map_or(0, |(_, last)| *last);
        let apart = end.checked_add(1)? < first && first <= last;
        if !apart {
            return None;
        }
        self.len = self.len.checked_add(last - first)?.checked_add(1)?;
        self.runs.insert(first, last);
        Some(())
    }

    /// Takes out the run that begins right after `number`; tells its last number.
    pub(super) fn take_adjoining(&mut self, number: u64) -> Option<u64> {
        let first = number.checked_add(1)?;
        let last = self.runs.remove(&first)?;
        self.len -= last - first + 1;
        Some(last)
    }

    /// The numbers from `from` up to and including `upto` that are not in it, in order.
    pub(super) fn gaps(&self, from: u64, upto: u64) -> impl Iterator<Item = u64> + '_ {
        let ends = self.runs().chain([(u64::MAX, u64::MAX)]);
        let mut start = from;
        ends.flat_map(move |(first, last)| {
            let gap = start..first.min(upto.saturating_add(1)).max(start);
            start = start.max(last.saturating_add(1));
            gap
        })
    }
}
