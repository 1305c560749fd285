//! Counts of what the store has committed, as the relay shows them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use aip_relay::mailbox::{AppendOutcome, Fate, Route, StoreStats};

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
    pub(crate) acked: AtomicU64,
    pub(crate) expired: AtomicU64,
    pub(crate) dead: AtomicU64,
    pub(crate) redriven: AtomicU64,
    batches: AtomicU64,
    batch_ops: AtomicU64,
    batch_sizes: [AtomicU64; 11],
}

impl Counters {
    /// An append by this route was answered.
    pub(crate) fn appended(&self, route: Route, outcome: &AppendOutcome) {
        let counter = match outcome {
            AppendOutcome::Stored { .. } if route == Route::Peer => &self.queued,
            AppendOutcome::Stored { seq: Some(_) } => &self.stored,
            AppendOutcome::Stored { seq: None } => &self.direct,
            AppendOutcome::Duplicate { .. } => &self.duplicates,
            AppendOutcome::Reused => &self.reused,
            AppendOutcome::Full(_) => &self.full,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// What counts messages that leave an outbox like this.
    pub(crate) fn left(&self, fate: &Fate) -> &AtomicU64 {
        match fate {
            Fate::Delivered => &self.handed_over,
            Fate::Refused(_) => &self.refused,
            Fate::Dead(_) => &self.dead,
            Fate::Expired => &self.expired,
        }
    }

    /// One write of a cursor, with `ops` changes in it.
    pub(crate) fn batch(&self, ops: usize) {
        self.batches.fetch_add(1, Relaxed);
        self.batch_ops.fetch_add(ops as u64, Relaxed);
        let place = ops.max(1).next_power_of_two().trailing_zeros() as usize;
        if let Some(counter) = self.batch_sizes.get(place).or(self.batch_sizes.last()) {
            counter.fetch_add(1, Relaxed);
        }
    }

    /// A batch is the write of a cursor here; there is no queue and no disk of this process.
    pub(crate) fn read(&self) -> StoreStats {
        let mut batch_sizes = [0; 11];
        for (to, from) in batch_sizes.iter_mut().zip(&self.batch_sizes) {
            *to = from.load(Relaxed);
        }
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
