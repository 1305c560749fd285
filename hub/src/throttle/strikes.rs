//! Failures of authenticity, per bucket: nothing is known of them before they happen, so they are paid for afterwards.

use std::iter;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use governor::Quota;

use super::Limit;
use crate::limits::THROTTLE_BUCKETS;

/// A limit of failures. One that the bucket cannot pay for is owed, and until it is paid nobody of that bucket is heard.
pub(super) struct Strikes {
    limit: Limit,
    owed: Box<[AtomicU32]>,
    owed_max: u32,
    interval: Duration,
}

impl Strikes {
    /// No limit where `quota` is absent.
    pub(super) fn new(quota: Option<Quota>) -> Option<Self> {
        let (burst, interval) = quota.map(|quota| (quota.burst_size(), quota.replenish_interval()))?;
        Some(Self {
            limit: Limit::new(quota)?,
            owed: iter::repeat_with(AtomicU32::default)
                .take(usize::try_from(THROTTLE_BUCKETS).unwrap_or(usize::MAX))
                .collect(),
            // More would lock an address out for longer than it takes to fill its bucket.
            owed_max: burst.get(),
            interval,
        })
    }

    /// The time to wait until nothing is owed, if anything is.
    pub(super) fn wait(&self, bucket: u64) -> Option<Duration> {
        let owed = self.owed(bucket)?;
        loop {
            let failures = owed.load(Ordering::Relaxed).checked_sub(1)?;
            if let Some(wait) = self.limit.wait(bucket) {
                return Some(wait.saturating_add(self.interval.saturating_mul(failures)));
            }
            let paid = |owed: u32| owed.checked_sub(1);
            let _nothing_owed = owed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, paid);
        }
    }

    /// Counts one failure.
    pub(super) fn count(&self, bucket: u64) {
        if self.limit.wait(bucket).is_none() {
            return;
        }
        if let Some(owed) = self.owed(bucket) {
            let more = |owed: u32| (owed < self.owed_max).then(|| owed.saturating_add(1));
            let _enough = owed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }

    fn owed(&self, bucket: u64) -> Option<&AtomicU32> {
        self.owed.get(usize::try_from(bucket).ok()?)
    }
}
