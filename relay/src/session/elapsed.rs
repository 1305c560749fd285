//! Time that only goes forward, made from a clock that may be set.

use std::time::Duration;

use aip_protocol::time::Timestamp;

/// Sums up how far the clock went forward. A clock that is set back costs the pauses nothing: they go on from there.
#[derive(Debug, Default)]
pub(super) struct Elapsed {
    last: Option<Timestamp>,
    total: Duration,
}

impl Elapsed {
    /// Takes note of the time; returns the sum so far.
    pub(super) fn advance(&mut self, now: Timestamp) -> Duration {
        let millis = self.last.map_or(0, |last| now.millis_since(last));
        self.total += Duration::from_millis(u64::try_from(millis).unwrap_or(0));
        self.last = Some(now);
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_set_back_does_not_stretch_a_pause() {
        let mut time = Elapsed::default();
        let at = Timestamp::from_unix_millis;
        assert_eq!(time.advance(at(1_000_000)), Duration::ZERO);
        assert_eq!(time.advance(at(1_000_500)), Duration::from_millis(500));
        assert_eq!(time.advance(at(400_000)), Duration::from_millis(500));
        assert_eq!(time.advance(at(400_250)), Duration::from_millis(750));
    }
}
