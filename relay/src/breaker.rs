//! Skips a direct endpoint that failed, and keeps one slow endpoint from holding all connections.
//!
//! Closed: calls go out, so many at a time. After a failure it is open for a while, doubling with
//! every further failure, and nothing goes out. Then one call is let through as a probe; its outcome
//! closes the breaker or opens it again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aip_protocol::time::Timestamp;
use rand_core::Rng;

use crate::limits::{
    BREAKER_ENDPOINTS_MAX, BREAKER_PAUSE_FIRST, BREAKER_PAUSE_MAX, DIRECT_CALLS_PER_ENDPOINT_MAX,
};

/// The breakers of all endpoints.
pub struct Breakers {
    state: Mutex<State>,
}

struct State {
    endpoints: HashMap<String, Endpoint>,
    rng: Box<dyn Rng + Send>,
}

/// An endpoint that is being called, or failed lately. One that is well and idle is not held.
#[derive(Debug, Default)]
struct Endpoint {
    in_flight: usize,
    /// Failures in a row.
    failures: u32,
    /// Open until then; only looked at after a failure.
    open_until: Option<Timestamp>,
}

impl std::fmt::Debug for Breakers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let endpoints = self.lock().endpoints.len();
        f.debug_struct("Breakers")
            .field("endpoints", &endpoints)
            .finish_non_exhaustive()
    }
}

impl Breakers {
    /// All closed. `rng` spreads the pauses, so that endpoints do not come back all at once.
    pub fn new(rng: Box<dyn Rng + Send>) -> Self {
        let endpoints = HashMap::new();
        Self {
            state: Mutex::new(State { endpoints, rng }),
        }
    }

    /// Whether a call may go out now. If so it counts as in flight until the permit is told the
    /// outcome, or is dropped, which counts as neither success nor failure.
    pub fn try_call(&self, endpoint: &str, now: Timestamp) -> Option<Permit<'_>> {
        let mut state = self.lock();
        match state.endpoints.get_mut(endpoint) {
            Some(known) if !known.admits(now) => return None,
            Some(known) => known.in_flight += 1,
            None => {
                if state.endpoints.len() >= BREAKER_ENDPOINTS_MAX && !state.forget_one() {
                    return None;
                }
                let called = Endpoint {
                    in_flight: 1,
                    ..Endpoint::default()
                };
                state.endpoints.insert(endpoint.to_owned(), called);
            }
        }
        Some(Permit {
            breakers: self,
            endpoint: endpoint.to_owned(),
            outcome: None,
        })
    }

    /// Endpoints that are held in memory: called right now, or failed lately.
    pub fn len(&self) -> usize {
        self.lock().endpoints.len()
    }

    /// Whether no endpoint is held in memory.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn settle(&self, endpoint: &str, outcome: Option<Outcome>) {
        let mut state = self.lock();
        let State { endpoints, rng } = &mut *state;
        let Some(known) = endpoints.get_mut(endpoint) else {
            return;
        };
        known.in_flight = known.in_flight.saturating_sub(1);
        match outcome {
            Some(Outcome::Failed(at)) => {
                known.failures = known.failures.saturating_add(1);
                known.open_until = Some(at + pause(known.failures, rng.next_u32()));
            }
            Some(Outcome::Succeeded) => {
                known.failures = 0;
                known.open_until = None;
            }
            None => {}
        }
        if known.in_flight == 0 && known.failures == 0 {
            endpoints.remove(endpoint);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Endpoint {
    fn admits(&self, now: Timestamp) -> bool {
        match self.open_until {
            None => self.in_flight < DIRECT_CALLS_PER_ENDPOINT_MAX,
            // Half-open: one probe at a time.
            Some(until) => until <= now && self.in_flight == 0,
        }
    }
}

impl State {
    /// Makes room by forgetting the idle endpoint whose pause ends first.
    fn forget_one(&mut self) -> bool {
        let idle = self.endpoints.iter().filter(|(_, known)| known.in_flight == 0);
        let first = idle.min_by_key(|(_, known)| known.open_until);
        match first.map(|(endpoint, _)| endpoint.clone()) {
            Some(endpoint) => self.endpoints.remove(&endpoint).is_some(),
            None => false,
        }
    }
}

/// The pause after so many failures in a row: doubling from the first to the longest, of which
/// `chance` picks a moment in the second half.
fn pause(failures: u32, chance: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let whole = (BREAKER_PAUSE_FIRST * 2_u32.saturating_pow(doublings)).min(BREAKER_PAUSE_MAX);
    let half = whole / 2;
    half + half.mul_f64(f64::from(chance) / f64::from(u32::MAX))
}

#[derive(Debug, Clone, Copy)]
enum Outcome {
    Succeeded,
    Failed(Timestamp),
}

/// Leave for one call.
#[derive(Debug)]
#[must_use = "dropping the permit ends the call"]
pub struct Permit<'a> {
    breakers: &'a Breakers,
    endpoint: String,
    outcome: Option<Outcome>,
}

impl Permit<'_> {
    /// The endpoint is well.
    pub fn succeeded(mut self) {
        self.outcome = Some(Outcome::Succeeded);
    }

    /// The endpoint failed, at `now`.
    pub fn failed(mut self, now: Timestamp) {
        self.outcome = Some(Outcome::Failed(now));
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.breakers.settle(&self.endpoint, self.outcome);
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    const URL: &str = "https://bob.example/aip";
    const OTHER: &str = "https://carol.example/aip";

    fn breakers() -> Breakers {
        Breakers::new(Box::new(StdRng::seed_from_u64(7)))
    }

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_unix_millis(1_796_000_000_000) + Duration::from_secs(secs)
    }

    fn fail(breakers: &Breakers, secs: u64) {
        breakers
            .try_call(URL, at(secs))
            .expect("may call")
            .failed(at(secs));
    }

    #[test]
    fn a_well_endpoint_is_called_and_not_held() {
        let breakers = breakers();
        breakers.try_call(URL, at(0)).unwrap().succeeded();
        assert!(breakers.is_empty());
        drop(breakers.try_call(URL, at(0)).unwrap());
        assert!(breakers.is_empty());
    }

    #[test]
    fn a_failure_opens_it_and_it_alone() {
        let breakers = breakers();
        fail(&breakers, 0);
        assert!(breakers.try_call(URL, at(14)).is_none());
        assert!(breakers.try_call(OTHER, at(14)).is_some());
        assert!(breakers.try_call(URL, at(31)).is_some());
    }

    #[test]
    fn half_open_lets_one_probe_through() {
        let breakers = breakers();
        fail(&breakers, 0);
        let probe = breakers.try_call(URL, at(31)).unwrap();
        assert!(breakers.try_call(URL, at(31)).is_none());
        probe.succeeded();
        let calls: Vec<_> = (0..3).map(|_| breakers.try_call(URL, at(31))).collect();
        assert!(calls.iter().all(Option::is_some));
    }

    #[test]
    fn a_probe_that_is_dropped_leaves_it_half_open() {
        let breakers = breakers();
        fail(&breakers, 0);
        drop(breakers.try_call(URL, at(31)).unwrap());
        assert_eq!(breakers.len(), 1);
        assert!(breakers.try_call(URL, at(31)).is_some());
    }

    #[test]
    fn row_51_pauses_double_to_a_cap_and_are_spread() {
        let secs = |failures, chance| pause(failures, chance).as_secs_f64().round();
        assert_eq!((secs(1, 0), secs(1, u32::MAX)), (15.0, 30.0));
        assert_eq!((secs(2, 0), secs(2, u32::MAX)), (30.0, 60.0));
        assert_eq!((secs(5, 0), secs(5, u32::MAX)), (240.0, 480.0));
        assert_eq!((secs(6, 0), secs(6, u32::MAX)), (450.0, 900.0));
        assert_eq!((secs(u32::MAX, 0), secs(u32::MAX, u32::MAX)), (450.0, 900.0));
        assert_ne!(pause(3, 1_000_000), pause(3, 2_000_000_000));
    }

    #[test]
    fn row_51_a_failed_probe_opens_it_for_longer_and_a_success_starts_anew() {
        let breakers = breakers();
        fail(&breakers, 0);
        fail(&breakers, 31);
        assert!(breakers.try_call(URL, at(31 + 29)).is_none());
        breakers.try_call(URL, at(31 + 61)).unwrap().succeeded();
        fail(&breakers, 100);
        assert!(breakers.try_call(URL, at(131)).is_some());
    }

    #[test]
    fn calls_to_one_endpoint_are_bounded() {
        let breakers = breakers();
        let calls: Vec<_> = (0..100).filter_map(|_| breakers.try_call(URL, at(0))).collect();
        assert_eq!(calls.len(), DIRECT_CALLS_PER_ENDPOINT_MAX);
        drop(calls);
        assert!(breakers.is_empty());
    }

    #[test]
    fn calls_in_flight_when_it_opens_are_counted_down() {
        let breakers = breakers();
        let first = breakers.try_call(URL, at(0)).unwrap();
        let second = breakers.try_call(URL, at(0)).unwrap();
        first.failed(at(1));
        assert!(breakers.try_call(URL, at(40)).is_none(), "one is still in flight");
        second.succeeded();
        assert!(breakers.is_empty());
    }

    #[test]
    fn row_82_endpoints_in_memory_are_bounded() {
        let breakers = breakers();
        for number in 0..BREAKER_ENDPOINTS_MAX as u64 + 50 {
            let url = format!("https://{number}.example/");
            breakers.try_call(&url, at(number)).unwrap().failed(at(number));
        }
        assert_eq!(breakers.len(), BREAKER_ENDPOINTS_MAX);
    }
}
