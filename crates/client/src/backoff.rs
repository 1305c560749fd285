//! When to try again. Pure: an attempt number, a server's wish and a draw go in, a delay comes out.

use std::time::Duration;

use crate::entropy::Entropy;
use crate::limits::{NAK_SECS_MAX, RETRY_AFTER_MAX};

/// An exponential back-off with full jitter: the delay before attempt n lies between zero and `base * 2^n`, at most `cap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The largest first delay.
    pub base: Duration,
    /// The largest delay of all.
    pub cap: Duration,
}

impl Backoff {
    /// For requests: 250 ms doubling to 30 s.
    pub const SEND: Self = Self {
        base: Duration::from_millis(250),
        cap: Duration::from_secs(30),
    };
    /// For sockets: 500 ms doubling to 30 s.
    pub const RECONNECT: Self = Self {
        base: Duration::from_millis(500),
        cap: Duration::from_secs(30),
    };
    /// After another session of the same agent took over: two that take turns must not do so at speed.
    pub const REPLACED: Self = Self {
        base: Duration::from_secs(30),
        cap: Duration::from_mins(10),
    };

    /// The upper bound of the delay after `failures` failures in a row (0 counts as 1).
    pub fn ceiling(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.base.saturating_mul(1 << doublings).min(self.cap)
    }

    /// The delay after `failures` failures in a row. A server's `Retry-After` is a floor (up to
    /// [`RETRY_AFTER_MAX`]); the jitter comes on top, so that clients that were refused together do not come back together.
    pub fn delay(&self, failures: u32, retry_after: Option<Duration>, entropy: &Entropy) -> Duration {
        let jitter = entropy.up_to(self.ceiling(failures));
        retry_after
            .unwrap_or_default()
            .min(RETRY_AFTER_MAX)
            .saturating_add(jitter)
    }
}

/// How long, in whole seconds, a message is handed back for after its handler failed: 5 s doubling with each attempt
/// (the first is 1), at most [`NAK_SECS_MAX`].
pub fn nak_secs(attempt: u32) -> u64 {
    let doublings = attempt.saturating_sub(1).min(31);
    5_u64.saturating_mul(1 << doublings).min(NAK_SECS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_doubles_up_to_the_cap() {
        let backoff = Backoff {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(10),
        };
        let ceilings: Vec<u64> = (0..7).map(|n| backoff.ceiling(n).as_secs()).collect();
        assert_eq!(ceilings, [1, 1, 2, 4, 8, 10, 10]);
        assert_eq!(backoff.ceiling(u32::MAX), Duration::from_secs(10));
    }

    #[test]
    fn retry_after_is_a_floor_with_jitter_on_top() {
        let entropy = Entropy::system();
        let backoff = Backoff {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(4),
        };
        for failures in 1..20 {
            let delay = backoff.delay(failures, Some(Duration::from_secs(7)), &entropy);
            assert!((7..=11).contains(&delay.as_secs()), "{delay:?}");
            assert!(backoff.delay(failures, None, &entropy) <= Duration::from_secs(4));
        }
        let long = backoff.delay(1, Some(Duration::from_hours(24)), &entropy);
        assert!(long <= RETRY_AFTER_MAX + Duration::from_secs(1));
    }

    #[test]
    fn a_message_handed_back_waits_longer_each_time() {
        let waits: Vec<u64> = [0, 1, 2, 3, 7, 8, u32::MAX].into_iter().map(nak_secs).collect();
        assert_eq!(waits, [5, 5, 10, 20, 300, 300, 300]);
    }
}
