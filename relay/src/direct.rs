//! Direct delivery to an agent's own endpoint (spec §5): one guarded POST, a breaker, bounded concurrency.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aip_federation::egress::{Answer, EgressError, Limits, Outbound};
use aip_protocol::clock::Clock;
use bytes::Bytes;
use rand_core::Rng;
use tokio::sync::{OwnedMutexGuard, Semaphore};

use crate::breaker::Breakers;
use crate::limits::DIRECT_CALLS_MAX;

/// What an endpoint gets.
pub const CONTENT_TYPE: &str = "application/aip+json";

/// How an attempt ended. Whatever is not [`Attempt::Delivered`] sends the message to the mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The endpoint answered 2xx in time.
    Delivered,
    /// It was called and did not.
    Failed,
    /// It was not called: it failed lately, or enough calls are running.
    Skipped,
}

/// Delivers to endpoints.
#[derive(Debug)]
pub struct Direct {
    outbound: Arc<dyn Outbound>,
    clock: Arc<dyn Clock>,
    breakers: Breakers,
    slots: Semaphore,
    limits: Limits,
    flights: Flights,
}

impl Direct {
    /// Sets direct delivery up. `rng` spreads the pauses of the breakers.
    pub fn new(
        outbound: Arc<dyn Outbound>,
        clock: Arc<dyn Clock>,
        limits: Limits,
        rng: Box<dyn Rng + Send>,
    ) -> Self {
        Self {
            outbound,
            clock,
            breakers: Breakers::new(rng),
            slots: Semaphore::new(DIRECT_CALLS_MAX),
            limits,
            flights: Flights::default(),
        }
    }

    /// Waits until no other delivery of the same dedup key is under way, so that a retry that overtakes its first
    /// attempt finds that attempt's record instead of calling the endpoint a second time.
    pub async fn enter(&self, key: [u8; 16]) -> Flight<'_> {
        self.flights.enter(key).await
    }

    /// Tries to deliver one envelope. Waits for the endpoint at most, never for a free place.
    pub async fn attempt(&self, endpoint: &str, wire: Bytes) -> Attempt {
        let Ok(_slot) = self.slots.try_acquire() else {
            return Attempt::Skipped;
        };
        let Some(permit) = self.breakers.try_call(endpoint, self.clock.now()) else {
            return Attempt::Skipped;
        };
        let answer = self
            .outbound
            .post(endpoint, CONTENT_TYPE, wire, self.limits)
            .await;
        if endpoint_is_well(&answer) {
            permit.succeeded();
        } else {
            permit.failed(self.clock.now());
        }
        match answer {
            Ok(answer) if answer.is_success() => Attempt::Delivered,
            Ok(answer) => {
                tracing::debug!(answer.status, "A direct endpoint did not take a message");
                Attempt::Failed
            }
            Err(error) => {
                tracing::debug!(error.kind = error.kind(), "A direct endpoint did not answer");
                Attempt::Failed
            }
        }
    }
}

/// Whether the answer speaks for the endpoint. A status that judges this one message must not open the breaker:
/// otherwise anyone could cut an agent off by sending it what it refuses.
fn endpoint_is_well(answer: &Result<Answer, EgressError>) -> bool {
    match answer {
        Ok(answer) => answer.is_success() || matches!(answer.status, 400 | 409 | 413 | 415 | 422),
        Err(_) => false,
    }
}

/// Deliveries under way, by dedup key.
#[derive(Debug, Default)]
struct Flights {
    running: Mutex<HashMap<[u8; 16], Arc<tokio::sync::Mutex<()>>>>,
}

impl Flights {
    async fn enter(&self, key: [u8; 16]) -> Flight<'_> {
        let turn = Arc::clone(self.lock().entry(key).or_default());
        let mut flight = Flight {
            flights: self,
            key,
            turn: Arc::clone(&turn),
            guard: None,
        };
        flight.guard = Some(turn.lock_owned().await);
        flight
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 16], Arc<tokio::sync::Mutex<()>>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn of one delivery; the next of the same key begins when it is dropped.
#[derive(Debug)]
pub struct Flight<'a> {
    flights: &'a Flights,
    key: [u8; 16],
    turn: Arc<tokio::sync::Mutex<()>>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.guard = None;
        let mut running = self.flights.lock();
        // Two are the map's and ours: nobody else waits, and nobody can start to while the map is locked.
        if Arc::strong_count(&self.turn) == 2 {
            running.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use aip_federation::egress::fake::{FakeOutbound, Reply};
    use aip_protocol::clock::ManualClock;
    use aip_protocol::time::Timestamp;
    use futures_util::future::{join_all, poll_immediate};
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use std::pin::pin;
    use std::time::Duration;

    use super::*;
    use crate::limits::DIRECT_CALLS_PER_ENDPOINT_MAX;

    const URL: &str = "https://bob.example/aip";

    struct Bench {
        outbound: Arc<FakeOutbound>,
        clock: Arc<ManualClock>,
        direct: Direct,
    }

    fn bench(replies: &[Reply]) -> Bench {
        let outbound = Arc::new(FakeOutbound::new(replies.iter().copied()));
        let clock = Arc::new(ManualClock::new(Timestamp::from_unix_millis(1_796_000_000_000)));
        let rng = Box::new(StdRng::seed_from_u64(1));
        let direct = Direct::new(outbound.clone(), clock.clone(), Limits::default(), rng);
        Bench {
            outbound,
            clock,
            direct,
        }
    }

    async fn attempt(bench: &Bench) -> Attempt {
        bench.direct.attempt(URL, Bytes::from_static(b"{}")).await
    }

    #[tokio::test]
    async fn the_endpoint_gets_the_envelope_as_it_is() {
        let bench = bench(&[]);
        assert_eq!(attempt(&bench).await, Attempt::Delivered);
        let posted = bench.outbound.posted().remove(0);
        assert_eq!(
            (posted.url.as_str(), posted.content_type),
            (URL, "application/aip+json")
        );
        assert_eq!(posted.body, "{}");
    }

    #[tokio::test]
    async fn whatever_is_not_2xx_in_time_fails_and_opens_the_breaker() {
        for reply in [
            Reply::Status(500),
            Reply::Status(502),
            Reply::Status(404),
            Reply::Status(401),
            Reply::Status(429),
            Reply::Status(307),
            Reply::Status(101),
            Reply::TimedOut,
            Reply::TooLarge,
        ] {
            let bench = bench(&[reply]);
            assert_eq!(attempt(&bench).await, Attempt::Failed, "{reply:?}");
            assert_eq!(attempt(&bench).await, Attempt::Skipped, "{reply:?}");
            assert_eq!(bench.outbound.posted().len(), 1);
        }
    }

    #[tokio::test]
    async fn an_answer_that_judges_the_message_does_not_open_the_breaker() {
        for status in [400, 409, 413, 415, 422] {
            let bench = bench(&[Reply::Status(status), Reply::Status(200)]);
            assert_eq!(attempt(&bench).await, Attempt::Failed);
            assert_eq!(attempt(&bench).await, Attempt::Delivered);
        }
    }

    #[tokio::test]
    async fn row_51_a_failed_endpoint_is_probed_after_the_pause() {
        let bench = bench(&[Reply::Status(502), Reply::Status(200)]);
        assert_eq!(attempt(&bench).await, Attempt::Failed);
        bench.clock.advance(Duration::from_secs(31));
        assert_eq!(attempt(&bench).await, Attempt::Delivered);
        assert_eq!(attempt(&bench).await, Attempt::Delivered);
    }

    #[tokio::test]
    async fn calls_at_the_same_time_are_bounded_per_endpoint_and_in_all() {
        let bench = bench(&[Reply::Hangs]);
        let body = || Bytes::from_static(b"{}");
        let mut running = Vec::new();
        let mut skipped = 0;
        for _ in 0..20 {
            let mut call = Box::pin(bench.direct.attempt(URL, body()));
            match poll_immediate(&mut call).await {
                None => running.push(call),
                Some(outcome) => skipped += usize::from(outcome == Attempt::Skipped),
            }
        }
        assert_eq!(
            (running.len(), skipped),
            (DIRECT_CALLS_PER_ENDPOINT_MAX, 20 - DIRECT_CALLS_PER_ENDPOINT_MAX)
        );
        let urls: Vec<_> = (0..200)
            .map(|number| format!("https://{number}.example/"))
            .collect();
        let mut others = Vec::new();
        for url in &urls {
            let mut call = Box::pin(bench.direct.attempt(url, body()));
            if poll_immediate(&mut call).await.is_none() {
                others.push(call);
            }
        }
        assert_eq!(running.len() + others.len(), DIRECT_CALLS_MAX);
        drop((running, others));
        bench.outbound.set([Reply::Status(200)]);
        assert_eq!(
            attempt(&bench).await,
            Attempt::Delivered,
            "dropped calls free their places"
        );
    }

    #[tokio::test]
    async fn deliveries_of_one_key_take_turns_and_leave_nothing_behind() {
        let flights = Flights::default();
        let first = flights.enter([1; 16]).await;
        let other = flights.enter([2; 16]).await;
        let mut second = pin!(flights.enter([1; 16]));
        assert!(poll_immediate(&mut second).await.is_none());
        drop(first);
        let second = poll_immediate(second).await.expect("its turn");
        drop((second, other));
        assert!(flights.lock().is_empty());
        join_all((0..50_u8).map(async |number| drop(flights.enter([number % 5; 16]).await))).await;
        assert!(flights.lock().is_empty());
    }

    #[tokio::test]
    async fn a_waiter_that_gives_up_leaves_nothing_behind() {
        let flights = Flights::default();
        let first = flights.enter([1; 16]).await;
        let mut waiter = Box::pin(flights.enter([1; 16]));
        assert!(poll_immediate(&mut waiter).await.is_none());
        drop(first);
        drop(waiter);
        assert!(flights.lock().is_empty());
    }
}
