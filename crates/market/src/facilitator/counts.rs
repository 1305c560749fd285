//! What became of payments, counted.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Settled;

/// Payments of this process, by what the facilitator said of them after the work.
#[derive(Debug, Default)]
pub struct PaymentCounts {
    settled: AtomicU64,
    refused: AtomicU64,
    unclear: AtomicU64,
    silent: AtomicU64,
}

impl PaymentCounts {
    /// Counts one; `None`: the facilitator said nothing.
    pub(crate) fn count(&self, settled: Option<&Settled>) {
        let counter = match settled {
            Some(Settled::Done(_)) => &self.settled,
            Some(Settled::Refused(_)) => &self.refused,
            Some(Settled::Unclear(_)) => &self.unclear,
            None => &self.silent,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// All of them by their names.
    pub fn all(&self) -> [(&'static str, u64); 4] {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("settled", read(&self.settled)),
            ("refused", read(&self.refused)),
            ("unclear", read(&self.unclear)),
            ("silent", read(&self.silent)),
        ]
    }
}
