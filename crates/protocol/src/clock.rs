//! Where "now" comes from: an argument, never the wall clock itself.

use std::fmt::Debug;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::time::Timestamp;

/// Tells the time. The system clock lives in the processes; libraries only see this trait.
pub trait Clock: Send + Sync + Debug {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// A clock that stands still until it is told to move, for tests and simulations.
///
/// It counts whole milliseconds, as the wire form does.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `start`.
    pub fn new(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.unix_millis()))
    }

    /// Shows `now` from here on, also when that goes back.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.unix_millis(), Ordering::SeqCst);
    }

    /// Moves forward by the whole milliseconds in `by`.
    pub fn advance(&self, by: Duration) {
        let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stands_still_until_moved() {
        let clock = ManualClock::new(Timestamp::from_unix_millis(1_000));
        assert_eq!(clock.now(), clock.now());
        clock.advance(Duration::from_millis(250));
        assert_eq!(clock.now().unix_millis(), 1_250);
        clock.set(Timestamp::from_unix_millis(7));
        assert_eq!(clock.now().unix_millis(), 7);
    }
}
