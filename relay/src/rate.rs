//! Rate limits per sender (spec §6): so many messages a second, bursts of some more.

use std::fmt::Debug;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use aip_protocol::clock::Clock;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use governor::clock::Clock as GovernorClock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::limits::RATE_SWEEP_CHECKS;

#[cfg(feature = "testsuite")]
pub mod suite;

/// Whose bucket it is: the first 16 bytes of a hash of the sender's DID.
pub type SenderKey = [u8; 16];

/// How much a sender may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Messages a second in the long run.
    pub messages_per_sec: NonZeroU32,
    /// Messages at once after a pause.
    pub burst_messages: NonZeroU32,
}

/// The buckets of all senders, here or shared by the processes of a hub.
#[async_trait]
pub trait SenderBuckets: Send + Sync + Debug {
    /// Takes one message out of the sender's bucket. Never fails, and answers within a bounded time.
    ///
    /// # Errors
    ///
    /// The bucket is empty: the whole seconds, at least one, until a message fits again.
    async fn take(&self, sender: &SenderKey) -> Result<(), u64>;
}

/// The buckets of all senders, in this process.
///
/// Memory is bounded by activity, not by how many senders there ever were: a bucket that is full
/// again is forgotten, at the latest after [`RATE_SWEEP_CHECKS`] further checks.
#[derive(Debug)]
pub struct SenderRates {
    buckets: RateLimiter<SenderKey, DashMapStateStore<SenderKey>, Elapsed, NoOpMiddleware<Nanos>>,
    clock: Elapsed,
    checks: AtomicU64,
}

impl SenderRates {
    /// Full buckets for everyone.
    pub fn new(rate: Rate, clock: Arc<dyn Clock>) -> Self {
        let quota = Quota::per_second(rate.messages_per_sec).allow_burst(rate.burst_messages);
        Self::of(quota, clock)
    }

    /// Full buckets for what a sender may do so many times an hour, and as many at once after a pause.
    pub fn per_hour(times: NonZeroU32, clock: Arc<dyn Clock>) -> Self {
        Self::of(Quota::per_hour(times), clock)
    }

    fn of(quota: Quota, clock: Arc<dyn Clock>) -> Self {
        let clock = Elapsed::new(clock);
        Self {
            buckets: RateLimiter::dashmap_with_clock(quota, clock.clone()),
            clock,
            checks: AtomicU64::new(0),
        }
    }

    /// Takes one message out of the sender's bucket.
    ///
    /// # Errors
    ///
    /// The bucket is empty: the whole seconds, at least one, until a message fits again.
    pub fn take(&self, sender: &SenderKey) -> Result<(), u64> {
        if self.checks.fetch_add(1, Ordering::Relaxed) % RATE_SWEEP_CHECKS == RATE_SWEEP_CHECKS - 1 {
            self.buckets.retain_recent();
        }
        self.buckets.check_key(sender).map_err(|until| {
            let wait = until.wait_time_from(self.clock.now());
            (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
        })
    }

    /// Buckets that are held in memory.
    pub fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Whether no bucket is held in memory.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }
}

#[async_trait]
impl SenderBuckets for SenderRates {
    async fn take(&self, sender: &SenderKey) -> Result<(), u64> {
        Self::take(self, sender)
    }
}

/// Time that only moves forward, made from a wall clock that may be set back: what the wall clock
/// gained since the last look counts, what it lost does not. So no sender is locked out for as long
/// as a clock was wrong.
#[derive(Debug, Clone)]
struct Elapsed {
    wall: Arc<dyn Clock>,
    state: Arc<Mutex<(Timestamp, u64)>>,
}

impl Elapsed {
    fn new(wall: Arc<dyn Clock>) -> Self {
        let state = Arc::new(Mutex::new((wall.now(), 0)));
        Self { wall, state }
    }
}

impl GovernorClock for Elapsed {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        let now = self.wall.now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, elapsed_nanos) = &mut *state;
        let gained = now.unix_nanos().saturating_sub(last.unix_nanos());
        *elapsed_nanos = elapsed_nanos.saturating_add(u64::try_from(gained).unwrap_or(0));
        *last = now;
        Nanos::from(*elapsed_nanos)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use aip_protocol::clock::ManualClock;

    use super::*;

    const ALICE: SenderKey = [1; 16];
    const BOB: SenderKey = [2; 16];

    fn rates(clock: &Arc<ManualClock>) -> SenderRates {
        let rate = Rate {
            messages_per_sec: NonZeroU32::new(20).unwrap(),
            burst_messages: NonZeroU32::new(200).unwrap(),
        };
        SenderRates::new(rate, clock.clone())
    }

    fn clock() -> Arc<ManualClock> {
        Arc::new(ManualClock::new(Timestamp::from_unix_millis(1_796_000_000_000)))
    }

    /// How many messages fit right now.
    fn fits(rates: &SenderRates, sender: &SenderKey) -> usize {
        (0..10_000).take_while(|_| rates.take(sender).is_ok()).count()
    }

    #[test]
    fn row_83_a_burst_fits_exactly_and_then_twenty_a_second() {
        let clock = clock();
        let rates = rates(&clock);
        assert_eq!(fits(&rates, &ALICE), 200);
        assert_eq!(rates.take(&ALICE), Err(1));
        clock.advance(Duration::from_millis(49));
        assert_eq!(fits(&rates, &ALICE), 0);
        clock.advance(Duration::from_millis(1));
        assert_eq!(fits(&rates, &ALICE), 1);
        clock.advance(Duration::from_secs(1));
        assert_eq!(fits(&rates, &ALICE), 20);
        clock.advance(Duration::from_hours(1));
        assert_eq!(fits(&rates, &ALICE), 200);
    }

    #[test]
    fn senders_do_not_share_a_bucket() {
        let rates = rates(&clock());
        assert_eq!(fits(&rates, &ALICE), 200);
        assert_eq!(fits(&rates, &BOB), 200);
    }

    #[test]
    fn the_wait_is_told_in_whole_seconds_rounded_up() {
        let clock = clock();
        let slow = Rate {
            messages_per_sec: NonZeroU32::new(1).unwrap(),
            burst_messages: NonZeroU32::new(1).unwrap(),
        };
        let rates = SenderRates::new(slow, clock.clone());
        assert_eq!(rates.take(&ALICE), Ok(()));
        assert_eq!(rates.take(&ALICE), Err(1));
        clock.advance(Duration::from_millis(999));
        assert_eq!(rates.take(&ALICE), Err(1));
        clock.advance(Duration::from_millis(1));
        assert_eq!(rates.take(&ALICE), Ok(()));
    }

    #[test]
    fn a_clock_that_is_set_back_locks_nobody_out() {
        let clock = clock();
        let rates = rates(&clock);
        assert_eq!(fits(&rates, &ALICE), 200);
        clock.set(clock.now() - Duration::from_hours(24));
        assert_eq!(fits(&rates, &ALICE), 0);
        clock.advance(Duration::from_secs(1));
        assert_eq!(fits(&rates, &ALICE), 20);
    }

    #[test]
    fn row_82_a_million_senders_leave_nothing_behind() {
        let clock = clock();
        let rates = rates(&clock);
        for number in 0..1_000_000_u128 {
            if number % 1_000 == 0 {
                clock.advance(Duration::from_millis(100));
            }
            assert_eq!(rates.take(&number.to_be_bytes()), Ok(()));
        }
        let bound = usize::try_from(RATE_SWEEP_CHECKS).unwrap() + 1_000;
        assert!(rates.len() <= bound, "{} buckets are held", rates.len());
    }
}
