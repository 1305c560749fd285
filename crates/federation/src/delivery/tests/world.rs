//! The world around delivery: time that jumps, outboxes and peers in memory, hubs that can fail.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aip_protocol::clock::Clock;
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use url::Url;

pub(super) use super::net::Act;
use super::net::{Hub, Net};
use crate::delivery::{
    Bounce, BounceError, Bounces, Delivery, DeliveryConfig, LookUpError, PeerDirectory, PeerFacts, Seams,
};
use crate::outbox::fake::FakeOutbox;
use crate::outbox::{Fate, Outbox as _};
use crate::peers::fake::FakeStore;
use crate::signing::Signer;

/// The clock of the test runtime, which jumps to the next timer when nobody has anything to do.
#[derive(Debug)]
pub(super) struct JumpingClock(Instant);

impl Clock for JumpingClock {
    fn now(&self) -> Timestamp {
        start() + self.0.elapsed()
    }
}

fn start() -> Timestamp {
    Timestamp::parse("2026-11-30T12:00:00Z").unwrap()
}

pub(super) fn domain(text: &str) -> Domain {
    Domain::parse(text).unwrap()
}

pub(super) fn agent(name: &str, domain: &str) -> Did {
    Did::parse(&format!("did:aip:{domain}:{name}")).unwrap()
}

/// Everything delivery is plugged into.
#[derive(Debug)]
pub(super) struct World {
    pub(super) clock: Arc<JumpingClock>,
    pub(super) outbox: Arc<FakeOutbox>,
    pub(super) store: Arc<FakeStore>,
    pub(super) net: Arc<Net>,
    pub(super) whereabouts: Arc<Whereabouts>,
    pub(super) told: Arc<Told>,
}

impl World {
    pub(super) fn new() -> Self {
        let clock = Arc::new(JumpingClock(Instant::now()));
        Self {
            outbox: Arc::default(),
            store: Arc::default(),
            net: Arc::new(Net {
                hubs: Mutex::default(),
                clock: Arc::clone(&clock),
            }),
            whereabouts: Arc::default(),
            told: Arc::default(),
            clock,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Delivery by a process of this name; it does not run yet.
    pub(super) fn delivery(&self, holder: &str) -> Arc<Delivery> {
        self.configured(DeliveryConfig::new(holder))
    }

    pub(super) fn configured(&self, config: DeliveryConfig) -> Arc<Delivery> {
        let key = SigningKey::from_seed([7; 32]);
        let rng = || Box::new(StdRng::seed_from_u64(5));
        let signer = Signer::new(domain("alpha.example"), key, self.clock.clone(), rng());
        let seams = Seams {
            outbox: self.outbox.clone(),
            directory: self.whereabouts.clone(),
            exchange: self.net.clone(),
            store: self.store.clone(),
            signer: Arc::new(signer),
            bounces: self.told.clone(),
            clock: self.clock.clone(),
        };
        Delivery::new(config, seams, rng())
    }

    /// Queues one message and tells delivery.
    pub(super) fn send(&self, delivery: &Delivery, from: &str, to: &str, peer: &str) -> u64 {
        let seq = self.put(from, to, peer);
        delivery.wake(&domain(peer));
        seq
    }

    pub(super) fn put(&self, from: &str, to: &str, peer: &str) -> u64 {
        let (from, to) = (agent(from, "alpha.example"), agent(to, peer));
        self.outbox.put(&from, &to, self.now(), None)
    }

    /// Waits until nothing waits for a peer; says when that was.
    pub(super) async fn drained(&self, peer: &str, within: Duration) -> Timestamp {
        let deadline = self.now() + within;
        let mut step = Duration::from_millis(10);
        while !self.outbox.pending(&domain(peer)).is_empty() {
            assert!(
                self.now() < deadline,
                "{peer} is not drained: {:?}",
                self.outbox.pending(&domain(peer))
            );
            sleep(step).await;
            step = (step * 51 / 50).min(Duration::from_mins(1));
        }
        self.now()
    }

    pub(super) fn hub<R>(&self, peer: &str, with: impl FnOnce(&mut Hub) -> R) -> R {
        with(self.net.hubs.lock().unwrap().entry(domain(peer)).or_default())
    }

    /// When the peer was pushed to, in seconds from the start.
    pub(super) fn push_secs(&self, peer: &str) -> Vec<i64> {
        self.hub(peer, |hub| {
            let at = |(at, _): &(Timestamp, Vec<u64>)| at.millis_since(start()) / 1_000;
            hub.pushes.iter().map(at).collect()
        })
    }

    pub(super) fn fates(&self, peer: &str) -> BTreeMap<u64, Fate> {
        self.outbox.left(&domain(peer)).into_iter().collect()
    }
}

/// Delivery that runs until it is dropped.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) stop: CancellationToken,
    pub(super) task: JoinHandle<()>,
}

impl Running {
    pub(super) fn start(delivery: &Arc<Delivery>) -> Self {
        let (stop, delivery) = (CancellationToken::new(), Arc::clone(delivery));
        let token = stop.clone();
        Self {
            stop,
            task: tokio::spawn(async move { delivery.run(token).await }),
        }
    }

    pub(super) async fn stop(mut self) {
        self.stop.cancel();
        (&mut self.task).await.unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Where peers are: `https://hub.{domain}/base`, unless told otherwise.
#[derive(Debug, Default)]
pub(super) struct Whereabouts {
    /// What is said of a domain instead.
    pub(super) instead: Mutex<HashMap<Domain, fn() -> LookUpError>>,
    /// Domains that were asked for, and whether past the caches.
    pub(super) asked: Mutex<Vec<(Domain, bool)>>,
}

#[async_trait]
impl PeerDirectory for Whereabouts {
    async fn facts(&self, domain: &Domain, fresh: bool) -> Result<PeerFacts, LookUpError> {
        self.asked.lock().unwrap().push((domain.clone(), fresh));
        match self.instead.lock().unwrap().get(domain) {
            Some(error) => Err(error()),
            None => Ok(PeerFacts {
                hub: Url::parse(&format!("https://hub.{domain}/base")).unwrap(),
                names_itself: Url::parse(&format!("https://hub.{domain}/base")).unwrap(),
                features: vec!["mail".to_owned()],
            }),
        }
    }
}

/// Senders that were told.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) bounces: Mutex<Vec<Bounce>>,
    pub(super) fails: AtomicBool,
    /// The next call breaks down.
    pub(super) panics: AtomicBool,
}

#[async_trait]
impl Bounces for Told {
    async fn bounce(&self, bounce: Bounce) -> Result<(), BounceError> {
        assert!(!self.panics.swap(false, Ordering::SeqCst), "the test says so");
        if self.fails.load(Ordering::SeqCst) {
            return Err(BounceError("the test told it to fail".into()));
        }
        self.bounces.lock().unwrap().push(bounce);
        Ok(())
    }
}

/// The outbox may be asked directly, too.
pub(super) async fn pending(world: &World, peer: &str) -> u64 {
    world.outbox.state(&domain(peer)).await.unwrap().pending
}
