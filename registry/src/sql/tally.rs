//! What happened between a store and its database, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// What happened since a store was opened, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SqlFigures {
    /// Transactions committed. Far fewer than changes under load: those that wait together share one.
    pub commits: u64,
    /// Transactions that gave way to another one (deadlock, lock, serialization) and were run again.
    pub conflicts: u64,
    /// Connections that broke, or could not be made.
    pub connections_lost: u64,
    /// Commits that were not answered, so that their callers were told that the outcome is unknown.
    pub outcomes_unknown: u64,
}

/// The same while it is counted.
#[derive(Debug, Default)]
pub(super) struct Tally {
    commits: AtomicU64,
    conflicts: AtomicU64,
    connections_lost: AtomicU64,
    outcomes_unknown: AtomicU64,
}

impl Tally {
    pub(super) fn committed(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn conflicted(&self) {
        self.conflicts.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn lost(&self) {
        self.connections_lost.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn unknown(&self) {
        self.outcomes_unknown.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn figures(&self) -> SqlFigures {
        SqlFigures {
            commits: self.commits.load(Ordering::Relaxed),
            conflicts: self.conflicts.load(Ordering::Relaxed),
            connections_lost: self.connections_lost.load(Ordering::Relaxed),
            outcomes_unknown: self.outcomes_unknown.load(Ordering::Relaxed),
        }
    }
}
