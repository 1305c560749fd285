//! The hub's clock: the machine's, but never backwards, not even across a restart.
//!
//! The dedup window (spec §5) is exact only if time does not go back: a record that has been forgotten must not
//! become needed again. So the clock is never below the wall, its last answer, or the high-water mark: the latest time
//! that the mailbox store was told in any run. While the wall lies behind, the hub's time goes on at half its speed,
//! and the wall catches up: did it stand still, no rate would refill and no pause would end until then.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aip_protocol::clock::Clock;
use aip_protocol::time::Timestamp;

/// How far the wall clock may lie behind the mark without a word: what a time service corrects in passing.
const SLIP_TOLERATED: Duration = Duration::from_secs(2);
/// Before this program was written.
const TIME_LEAST: &str = "2026-01-01T00:00:00Z";
/// A wall clock that is behind gains one second in so many.
const CATCH_UP: u32 = 2;

/// A clock that does not go back.
#[derive(Debug)]
pub struct SystemClock(Mutex<Answered>);

/// The latest answer.
#[derive(Debug)]
struct Answered {
    time: Timestamp,
    at: Instant,
}

impl Answered {
    /// The next answer, at the moment `at`, when the wall says `wall`.
    fn next(&mut self, wall: Timestamp, at: Instant) -> Timestamp {
        let passed = at.saturating_duration_since(self.at);
        self.time = wall.max(self.time + passed / CATCH_UP);
        self.at = self.at.max(at);
        self.time
    }
}

impl SystemClock {
    /// A clock that starts no earlier than `mark`, the high-water mark of the last run.
    pub fn new(mark: Option<Timestamp>) -> Self {
        Self(Mutex::new(Answered {
            time: mark.unwrap_or(Timestamp::UNIX_EPOCH),
            at: running(),
        }))
    }
}

impl SystemClock {
    /// From now on it is no earlier than `mark`.
    pub fn raise(&self, mark: Timestamp) {
        let mut answered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answered.time = answered.time.max(mark);
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let mut answered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answered.next(wall(), running())
    }
}

/// The machine's clock that nobody sets: how much time passes, not what time it is.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the machine's clocks"
)]
fn running() -> Instant {
    Instant::now()
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

/// Whether a clock may say so: not before this program was written.
pub fn is_plausible(wall: Timestamp) -> bool {
    !Timestamp::parse(TIME_LEAST).is_ok_and(|least| wall < least)
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

    /// What a clock answers, second by second, while the wall says these times.
    fn answers(start: &str, wall: &[&str]) -> Vec<String> {
        let began = running();
        let mut clock = Answered {
            time: at(start),
            at: began,
        };
        let seconds = (0..).map(Duration::from_secs);
        let steps = wall.iter().zip(seconds);
        steps
            .map(|(wall, passed)| clock.next(at(wall), began + passed).to_string())
            .collect()
    }

    #[test]
    fn the_clock_follows_the_wall() {
        let wall = ["2026-11-29T12:00:00.000Z", "2026-11-29T12:00:01.000Z"];
        assert_eq!(answers("1970-01-01T00:00:00Z", &wall), wall);
        let forward = ["2026-11-29T12:00:00.000Z", "2026-11-29T13:00:01.000Z"];
        assert_eq!(answers("1970-01-01T00:00:00Z", &forward), forward);
    }

    /// Rates refill and pauses end by this clock: it may not stand still for as long as the wall was set back.
    #[test]
    fn row_24_a_wall_clock_that_is_set_back_slows_the_clock_and_catches_up() {
        let wall = [
            "2026-11-29T12:00:00Z",
            "2026-11-29T11:59:58Z",
            "2026-11-29T11:59:59Z",
            "2026-11-29T12:00:00Z",
            "2026-11-29T12:00:01Z",
            "2026-11-29T12:00:02Z",
            "2026-11-29T12:00:03Z",
            "2026-11-29T12:00:04Z",
        ];
        assert_eq!(
            answers("1970-01-01T00:00:00Z", &wall),
            [
                "2026-11-29T12:00:00.000Z",
                "2026-11-29T12:00:00.500Z",
                "2026-11-29T12:00:01.000Z",
                "2026-11-29T12:00:01.500Z",
                "2026-11-29T12:00:02.000Z",
                "2026-11-29T12:00:02.500Z",
                "2026-11-29T12:00:03.000Z",
                "2026-11-29T12:00:04.000Z",
            ]
        );
    }

    #[test]
    fn the_clock_starts_at_the_mark_of_the_last_run() {
        let mark = "2100-01-01T00:00:00.000Z";
        assert_eq!(answers(mark, &["2026-11-29T12:00:00Z"]), [mark]);
        assert!(SystemClock::new(Some(at(mark))).now() >= at(mark));
        let clock = SystemClock::new(None);
        assert!(clock.now() > at("2026-01-01T00:00:00Z"));
        clock.raise(at(mark));
        assert!(clock.now() >= at(mark));
        clock.raise(at("2026-01-01T00:00:00Z"));
        assert!(clock.now() >= at(mark), "never back");
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
