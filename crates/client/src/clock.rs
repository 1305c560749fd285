//! The system clock of the client: the only place of this crate that asks the machine for the time.

use std::time::UNIX_EPOCH;

use aip_protocol::clock::Clock;
use aip_protocol::time::Timestamp;

/// The machine's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "the one reading of the machine's clock")]
        let now = std::time::SystemTime::now();
        // A machine whose clock stands before 1970 gets 1970: every hub refuses that with both clocks in the answer.
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_unix_nanos(i128::try_from(since.as_nanos()).unwrap_or(i128::MAX))
    }
}
