//! Counts of what a store has committed, for metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::outcomes::{AckOutcome, AppendOutcome, RedriveOutcome, Settled, StoreStats, Swept};
use super::rules::outbox::Left;
use super::types::Route;

/// Only ever added to; read one by one, so that a reading is not one moment.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    stored: AtomicU64,
    queued: AtomicU64,
    handed_over: AtomicU64,
    refused: AtomicU64,
    direct: AtomicU64,
    duplicates: AtomicU64,
    reused: AtomicU64,
    full: AtomicU64,
    acked: AtomicU64,
    expired: AtomicU64,
    dead: AtomicU64,
    redriven: AtomicU64,
    batches: AtomicU64,
    batch_ops: AtomicU64,
    batch_sizes: [AtomicU64; 11],
}

fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Relaxed);
}

impl Counters {
    /// What counts an append by this route.
    pub(crate) fn appending(route: Route) -> fn(&Self, &AppendOutcome) {
        match route {
            Route::Mailbox | Route::Direct => Self::appended,
            Route::Peer => Self::queued,
        }
    }

    fn queued(&self, outcome: &AppendOutcome) {
        match outcome {
            AppendOutcome::Stored { .. } => add(&self.queued, 1),
            _ => self.appended(outcome),
        }
    }

    pub(crate) fn left(&self, left: &Left) {
        add(&self.handed_over, left.delivered);
        add(&self.refused, left.refused);
        add(&self.dead, left.dead);
        add(&self.expired, left.expired);
    }

    pub(crate) fn appended(&self, outcome: &AppendOutcome) {
        let counter = match outcome {
            AppendOutcome::Stored { seq: Some(_) } => &self.stored,
            AppendOutcome::Stored { seq: None } => &self.direct,
            AppendOutcome::Duplicate { .. } => &self.duplicates,
            AppendOutcome::Reused => &self.reused,
            AppendOutcome::Full(_) => &self.full,
        };
        add(counter, 1);
    }

    pub(crate) fn acked(&self, outcome: &AckOutcome) {
        if let AckOutcome::Acked(acked) = outcome {
            add(&self.acked, acked.messages.len());
        }
    }

    pub(crate) fn buried(&self, settled: Option<&Settled>) {
        add(&self.dead, usize::from(settled.is_some()));
    }

    pub(crate) fn redriven(&self, outcome: &RedriveOutcome) {
        add(
            &self.redriven,
            usize::from(matches!(outcome, RedriveOutcome::Redriven { .. })),
        );
    }

    pub(crate) fn swept(&self, swept: &Swept) {
        add(&self.expired, swept.expired.len());
    }

    /// One batch of `ops` operations was written.
    pub(crate) fn batch(&self, ops: usize) {
        add(&self.batches, 1);
        add(&self.batch_ops, ops);
        let place = ops.max(1).next_power_of_two().trailing_zeros() as usize;
        if let Some(counter) = self.batch_sizes.get(place).or(self.batch_sizes.last()) {
            add(counter, 1);
        }
    }

    /// What concerns the queue and the disk is for the backend to fill in.
    pub(crate) fn read(&self) -> StoreStats {
        let mut batch_sizes = [0; 11];
        batch_sizes
            .iter_mut()
            .zip(&self.batch_sizes)
            .for_each(|(to, from)| *to = from.load(Relaxed));
        StoreStats {
            stored: self.stored.load(Relaxed),
            queued: self.queued.load(Relaxed),
            handed_over: self.handed_over.load(Relaxed),
            refused: self.refused.load(Relaxed),
            direct: self.direct.load(Relaxed),
            duplicates: self.duplicates.load(Relaxed),
            reused: self.reused.load(Relaxed),
            full: self.full.load(Relaxed),
            acked: self.acked.load(Relaxed),
            expired: self.expired.load(Relaxed),
            dead: self.dead.load(Relaxed),
            redriven: self.redriven.load(Relaxed),
            batches: self.batches.load(Relaxed),
            batch_ops: self.batch_ops.load(Relaxed),
            batch_sizes,
            ..StoreStats::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_counted_by_size() {
        let counters = Counters::default();
        for ops in [1, 2, 3, 4, 1_024, 5_000] {
            counters.batch(ops);
        }
        let stats = counters.read();
        assert_eq!((stats.batches, stats.batch_ops), (6, 6_034));
        assert_eq!(stats.batch_sizes, [1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 2]);
    }

    /// What was refused is not counted as stored.
    #[test]
    fn row_85_the_counter_of_stored_messages_counts_committed_ones() {
        let counters = Counters::default();
        counters.appended(&AppendOutcome::Full(crate::mailbox::Full::Sender));
        counters.appended(&AppendOutcome::Duplicate {
            seq: Some(1),
            route: crate::mailbox::Route::Mailbox,
        });
        counters.appended(&AppendOutcome::Stored { seq: Some(1) });
        let stats = counters.read();
        assert_eq!((stats.stored, stats.full, stats.duplicates), (1, 1, 1));
    }
}
