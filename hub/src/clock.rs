//! The hub's clock: the machine's, but never backwards, not even across a restart.
//!
//! The dedup window (spec §5) is exact only if time does not go back: a record that has been forgotten must not
//! become needed again. So the clock is max(wall, last answer, high-water mark); the mark is the latest time that
//! the mailbox store was told in any run.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aip_protocol::clock::Clock;
use aip_protocol::time::Timestamp;

/// How far the wall clock may lie behind the mark without a word: what a time service corrects in passing.
const SLIP_TOLERATED: Duration = Duration::from_secs(2);

/// A clock that does not go back.
#[derive(Debug)]
pub struct SystemClock {
    /// The latest answer, in nanoseconds since 1970.
    last_nanos: AtomicI64,
}

impl SystemClock {
    /// A clock that starts no earlier than `mark`, the high-water mark of the last run.
    pub fn new(mark: Option<Timestamp>) -> Self {
        Self {
            last_nanos: AtomicI64::new(mark.map_or(0, nanos)),
        }
    }

    fn at_least(&self, wall: Timestamp) -> Timestamp {
        let wall = nanos(wall);
        let last = self.last_nanos.fetch_max(wall, Ordering::AcqRel);
        Timestamp::from_unix_nanos(i128::from(last.max(wall)))
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        self.at_least(wall())
    }
}

fn nanos(moment: Timestamp) -> i64 {
    // Until the year 2262; a mark beyond is held at the end rather than wrapped.
    i64::try_from(moment.unix_nanos()).unwrap_or(i64::MAX)
}

/// The machine's clock as it is. Everything but the start and `doctor` asks a [`Clock`].
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the wall clock"
)]
pub fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_nanos(i128::try_from(since.as_nanos()).unwrap_or(i128::MAX))
}

/// How far `wall` lies behind `mark`, if that is more than a time service corrects in passing.
pub fn behind(wall: Timestamp, mark: Timestamp) -> Option<Duration> {
    let millis = u64::try_from(mark.millis_since(wall)).ok()?;
    Some(Duration::from_millis(millis)).filter(|slip| *slip > SLIP_TOLERATED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn the_clock_never_goes_back() {
        let clock = SystemClock::new(None);
        let noon = at("2026-11-29T12:00:00Z");
        assert_eq!(clock.at_least(noon), noon);
        assert_eq!(clock.at_least(at("2026-11-29T11:50:00Z")), noon);
        assert_eq!(
            clock.at_least(at("2026-11-29T12:00:01Z")),
            at("2026-11-29T12:00:01Z")
        );
    }

    #[test]
    fn the_clock_starts_at_the_mark_of_the_last_run() {
        let mark = at("2100-01-01T00:00:00Z");
        assert_eq!(SystemClock::new(Some(mark)).now(), mark);
        assert!(SystemClock::new(None).now() > at("2026-01-01T00:00:00Z"));
    }

    #[test]
    fn a_wall_clock_behind_the_mark_is_told_by_how_much() {
        let mark = at("2026-11-29T12:10:00Z");
        assert_eq!(
            behind(at("2026-11-29T12:00:00Z"), mark),
            Some(Duration::from_mins(10))
        );
        assert_eq!(behind(at("2026-11-29T12:09:59Z"), mark), None);
        assert_eq!(behind(at("2026-11-29T13:00:00Z"), mark), None);
    }
}
