//! How many frames one socket may send.

use std::num::NonZeroU32;

use governor::clock::MonotonicClock;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use crate::limits::FRAME_BURST_SECS;

/// A bucket of frames.
pub(super) struct Pace(RateLimiter<NotKeyed, InMemoryState, MonotonicClock>);

impl Pace {
    /// `frames_per_sec` in the long run, and bursts of ten times that.
    pub(super) fn new(frames_per_sec: u32) -> Self {
        let at_least_one = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        let burst = at_least_one(frames_per_sec.saturating_mul(FRAME_BURST_SECS));
        let quota = Quota::per_second(at_least_one(frames_per_sec)).allow_burst(burst);
        Self(RateLimiter::direct_with_clock(quota, MonotonicClock))
    }

    /// Whether one more frame is within the rate.
    pub(super) fn admits(&self) -> bool {
        self.0.check().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_a_flood_does_not() {
        let pace = Pace::new(1);
        assert!((0..FRAME_BURST_SECS).all(|_| pace.admits()));
        assert!(!pace.admits());
    }
}
