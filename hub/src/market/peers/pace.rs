//! When a peer is asked next: at an interval, after failures ever later, and never all of them at once.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aip_protocol::time::Timestamp;
use rand_core::{CryptoRng, Rng as _};

use crate::market::limits::{CRAWL_RETRY, PENDING_CRAWL_PAUSE_MAX};

/// How much of a pause is left to chance: one part in so many.
const CHANCE_PART: u32 = 5;
/// How many times the interval a pending peer waits.
const PENDING_INTERVALS: u32 = 6;
/// The most doublings.
const DOUBLINGS_MAX: u32 = 16;

/// The pace of crawling.
pub(in crate::market) struct Pace {
    interval: Duration,
    /// Whether hubs that strangers name are looked at.
    pub(in crate::market) is_open: bool,
    rng: Mutex<Box<dyn CryptoRng + Send>>,
}

impl Pace {
    /// With this interval.
    pub(in crate::market) fn new(interval: Duration, is_open: bool, rng: Box<dyn CryptoRng + Send>) -> Self {
        Self {
            interval,
            is_open,
            rng: Mutex::new(rng),
        }
    }

    /// When a peer is asked again that has failed so often in a row. One that nobody has decided about waits longer.
    pub(in crate::market) fn next(&self, now: Timestamp, is_pending: bool, failures: u32) -> Timestamp {
        let usual = if is_pending {
            (self.interval * PENDING_INTERVALS).min(PENDING_CRAWL_PAUSE_MAX)
        } else {
            self.interval
        };
        let pause = match failures.checked_sub(1) {
            None => usual,
            Some(before) => (CRAWL_RETRY * 2_u32.pow(before.min(DOUBLINGS_MAX))).min(usual),
        };
        now + pause - self.part_of(pause / CHANCE_PART)
    }

    /// A part of a duration, by chance.
    pub(in crate::market) fn part_of(&self, duration: Duration) -> Duration {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let drawn = self.rng.lock().unwrap_or_else(PoisonError::into_inner).next_u64();
        Duration::from_millis(drawn.checked_rem(millis).unwrap_or_default())
    }
}

impl std::fmt::Debug for Pace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pace")
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SysRng;
    use rand_core::UnwrapErr;

    use super::*;

    #[test]
    fn pauses_grow_and_end_and_differ() {
        let pace = Pace::new(Duration::from_hours(1), true, Box::new(UnwrapErr(SysRng)));
        let now = Timestamp::from_unix_millis(0);
        let secs =
            |is_pending: bool, failures: u32| pace.next(now, is_pending, failures).unix_millis() / 1_000;
        for (failures, most) in [
            (0, 3_600),
            (1, 60),
            (2, 120),
            (3, 240),
            (7, 3_600),
            (u32::MAX, 3_600),
        ] {
            for _ in 0..20 {
                let pause = secs(false, failures);
                assert!((most * 4 / 5..=most).contains(&pause), "{failures}: {pause}");
            }
        }
        assert!((4 * 3_600..=6 * 3_600).contains(&secs(true, 0)));
        let drawn: std::collections::BTreeSet<_> = (0..20).map(|_| secs(false, 0)).collect();
        assert!(drawn.len() > 1);
    }
}
