//! What people and gauges see of delivery.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;

use super::Delivery;
use super::peer::Peer;
use crate::breaker::BreakerState;
use crate::limits::VIEWS_MAX;
use crate::outbox::{Fate, OutboxError};

/// One peer, as the sending side sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerView {
    /// Its domain.
    pub domain: Domain,
    /// Messages that wait in its outbox.
    pub pending: u64,
    /// Bytes of their envelopes.
    pub bytes: u64,
    /// How long the oldest of them has been waiting.
    pub oldest_unsent_age: Option<Duration>,
    /// Messages on their way.
    pub in_flight: usize,
    /// Batches on their way.
    pub batches_in_flight: usize,
    /// Failures in a row.
    pub failures: u32,
    /// Whether it is being left alone.
    pub breaker: BreakerState,
    /// When it is asked next, as far as this process knows.
    pub next_attempt: Option<Timestamp>,
    /// Why the last attempt that failed did.
    pub last_error: Option<LastError>,
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastError {
    /// The code that a sender would see.
    pub code: String,
    /// For people: a status line, a kind of failure.
    pub detail: String,
    /// When.
    pub at: Timestamp,
}

/// Counts of this process since its start, and what is held at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryStats {
    /// Peers that are looked after.
    pub peers: usize,
    /// Of these, peers that are being left alone.
    pub breakers_open: usize,
    /// Attempts that run.
    pub in_flight: usize,
    /// Pushes that went out.
    pub pushes: u64,
    /// Messages in them.
    pub pushed: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Messages that peers have.
    pub delivered: u64,
    /// Messages that peers refused.
    pub refused: u64,
    /// Messages that were given up.
    pub dead: u64,
    /// Messages whose own expiry came first.
    pub expired: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pushes: AtomicU64,
    pushed: AtomicU64,
    failures: AtomicU64,
    delivered: AtomicU64,
    refused: AtomicU64,
    dead: AtomicU64,
    expired: AtomicU64,
}

impl Counters {
    pub(super) fn pushed(&self, items: usize) {
        self.pushes.fetch_add(1, Ordering::Relaxed);
        let items = u64::try_from(items).unwrap_or(u64::MAX);
        self.pushed.fetch_add(items, Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn settled(&self, fate: &Fate) {
        let counter = match fate {
            Fate::Delivered => &self.delivered,
            Fate::Refused(_) => &self.refused,
            Fate::Dead(_) => &self.dead,
            Fate::Expired => &self.expired,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Delivery {
    /// One peer, whether or not anything waits for it.
    ///
    /// # Errors
    ///
    /// When the outbox cannot be read.
    pub async fn view(&self, domain: &Domain) -> Result<PeerView, OutboxError> {
        let outbox = &self.seams.outbox;
        let state = outbox.state(domain).await?;
        let oldest = if state.pending == 0 {
            None
        } else {
            outbox
                .after(domain, 0, 1, 1)
                .await?
                .first()
                .map(|item| item.accepted_at)
        };
        let now = self.now();
        let view = PeerView {
            domain: domain.clone(),
            pending: state.pending,
            bytes: state.bytes,
            oldest_unsent_age: oldest.map(|oldest| age(oldest, now)),
            in_flight: 0,
            batches_in_flight: 0,
            failures: 0,
            breaker: BreakerState::Closed,
            next_attempt: None,
            last_error: None,
        };
        let known = self.lock();
        Ok(known
            .peers
            .get(domain)
            .map_or_else(|| view.clone(), |peer| seen(view.clone(), peer, now)))
    }

    /// The peers for which something waits, as far as this process knows: those that fail first, and at most
    /// [`VIEWS_MAX`].
    ///
    /// # Errors
    ///
    /// When the outbox cannot be read.
    pub async fn views(&self) -> Result<Vec<PeerView>, OutboxError> {
        let mut domains: Vec<_> = self
            .lock()
            .peers
            .iter()
            .map(|(domain, peer)| (std::cmp::Reverse(peer.breaker.failures()), domain.clone()))
            .collect();
        domains.sort();
        domains.truncate(VIEWS_MAX);
        let mut views = Vec::with_capacity(domains.len());
        for (_, domain) in domains {
            views.push(self.view(&domain).await?);
        }
        Ok(views)
    }

    /// Counts for gauges; cheap.
    pub fn stats(&self) -> DeliveryStats {
        let now = self.now();
        let state = self.lock();
        let is_open = |peer: &&Peer| peer.breaker.state(now) != BreakerState::Closed;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        DeliveryStats {
            peers: state.peers.len(),
            breakers_open: state.peers.values().filter(is_open).count(),
            in_flight: state.schedule.in_flight(),
            pushes: read(&counters.pushes),
            pushed: read(&counters.pushed),
            failures: read(&counters.failures),
            delivered: read(&counters.delivered),
            refused: read(&counters.refused),
            dead: read(&counters.dead),
            expired: read(&counters.expired),
        }
    }
}

fn seen(view: PeerView, peer: &Peer, now: Timestamp) -> PeerView {
    PeerView {
        in_flight: peer.ledger.away(),
        batches_in_flight: peer.pushing(),
        failures: peer.breaker.failures(),
        breaker: peer.breaker.state(now),
        next_attempt: peer.next_attempt(now),
        last_error: peer.last_error.clone(),
        ..view
    }
}

fn age(since: Timestamp, now: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(now.millis_since(since)).unwrap_or(0))
}
