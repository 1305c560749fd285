//! How long to wait after failures in a row: doubling, with full jitter.

use std::time::Duration;

use crate::limits::{BACKOFF_FIRST, BACKOFF_MAX};

/// Pauses that double from the first to the longest; each is a random part of the whole ("full jitter"), so that those who
/// failed together do not come back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The most to wait after the first failure.
    pub first: Duration,
    /// The most to wait after many.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: BACKOFF_FIRST,
            max: BACKOFF_MAX,
        }
    }
}

impl Backoff {
    /// The pause after so many failures in a row, at least one; `chance` picks from nothing to the whole.
    pub fn pause(self, failures: u32, chance: u32) -> Duration {
        jitter(self.whole(failures), chance)
    }

    /// The most that is waited after so many failures in a row.
    pub fn whole(self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.max)
    }
}

/// A random part of `whole`.
pub(crate) fn jitter(whole: Duration, chance: u32) -> Duration {
    whole.mul_f64(f64::from(chance) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_51_pauses_double_from_2_s_to_1_h_with_full_jitter() {
        let backoff = Backoff::default();
        let whole: Vec<u64> = (1..=13)
            .map(|failures| backoff.whole(failures).as_secs())
            .collect();
        assert_eq!(
            whole,
            [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]
        );
        assert_eq!(backoff.whole(u32::MAX), BACKOFF_MAX);
        assert_eq!(backoff.pause(3, 0), Duration::ZERO);
        assert_eq!(backoff.pause(3, u32::MAX), Duration::from_secs(8));
        let half = backoff.pause(3, u32::MAX / 2).as_secs_f64();
        assert!((half - 4.0).abs() < 0.01, "{half}");
    }
}
