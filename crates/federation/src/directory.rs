//! Which hub speaks for a domain, and with which keys (spec §8): discovery, pins, caches.
//!
//! A domain is asked at `/.well-known/aip`. The keys of the first document are pinned in the store; afterwards a document
//! counts only if a pinned key signed it, or vouches for the key that did. One that shows another key freezes the peer until
//! the operator decides. What was found is kept in the store as long as the peer says, and in memory for seconds, so that a
//! decision of the operator is seen soon by every process.

mod discovery;
mod error;
mod found;
mod pins;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aip_protocol::clock::Clock;
use aip_protocol::discovery::HubDocument;
use aip_protocol::multikey::VerifyingKey;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use moka::sync::Cache;
use rand_core::Rng;
use tokio::sync::{Semaphore, SemaphorePermit};
use url::Url;

pub use error::PeerError;
pub use found::Peer;

use crate::egress::{Exchange, Limits};
use crate::flights::Flights;
use crate::limits::{
    DISCOVERY_STALE, FLIGHTS_MAX, FLIGHTS_PER_DOMAIN_MAX, FRESH_LOOKS_EVERY, IDLE_IN_MEMORY, PEER_NEGATIVE,
    PEER_RECHECK, PEER_TRANSIENT_MAX, PEER_TRANSIENT_MIN, PEERS_IN_MEMORY_MAX, STRANGER_FLIGHTS_MAX,
};
use crate::looks::{Looks, Miss, Source};
use crate::peers::{FederationStore, PeerRecord, Stance};

/// How new an answer has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// As new as the caches promise.
    Cached,
    /// Asked for now, past every cache. Once in [`FRESH_LOOKS_EVERY`] for each thing looked up; more often is refused with
    /// the time to wait.
    Fresh,
}

/// A peer that the operator configured instead of having it discovered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticPeer {
    /// Its hub, whatever its document says.
    pub hub: Url,
    /// Its keys. With any the hub is never asked for its document; with none it is, at `hub`, and pinned as usual.
    pub keys: Vec<VerifyingKey>,
}

/// What the directory is set to.
#[derive(Debug, Clone)]
pub struct DirectorySettings {
    /// This hub's own domain, which is no peer.
    pub own: Domain,
    /// Whether `http` may be asked: `localhost` and its ports at once, other domains when nobody speaks TLS there.
    pub allow_http: bool,
    /// Configured peers; they win over discovery.
    pub static_peers: BTreeMap<Domain, StaticPeer>,
    /// What one question may cost.
    pub limits: Limits,
}

impl DirectorySettings {
    /// The strict defaults.
    pub fn new(own: Domain) -> Self {
        Self {
            own,
            allow_http: false,
            static_peers: BTreeMap::new(),
            limits: Limits::default(),
        }
    }
}

/// What a [`Directory`] is plugged into.
#[derive(Debug, Clone)]
pub struct DirectorySeams {
    /// What is known and decided about peers.
    pub store: Arc<dyn FederationStore>,
    /// The way out.
    pub exchange: Arc<dyn Exchange>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// Looks up the hubs of domains.
pub struct Directory {
    settings: DirectorySettings,
    seams: DirectorySeams,
    held: Cache<Domain, Held>,
    fresh_looks: Cache<Domain, Timestamp>,
    flights: Flights<(Domain, Freshness), Found>,
    /// Look-ups of domains that are not known yet: whoever names them leaves room for those that are.
    strangers: Semaphore,
    looks: Looks,
    rng: Mutex<Box<dyn Rng + Send>>,
}

type Found = Result<Arc<Peer>, PeerError>;

/// What the last look found, and in which time it is said again without looking.
#[derive(Debug, Clone)]
struct Held {
    found: Found,
    from: Timestamp,
    until: Timestamp,
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Directory")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Directory {
    /// Puts the directory together. `rng` spreads the pauses after failures.
    pub fn new(settings: DirectorySettings, seams: DirectorySeams, rng: Box<dyn Rng + Send>) -> Arc<Self> {
        let in_memory = || {
            Cache::builder()
                .max_capacity(PEERS_IN_MEMORY_MAX)
                .time_to_idle(IDLE_IN_MEMORY)
        };
        Arc::new(Self {
            settings,
            seams,
            held: in_memory().build(),
            fresh_looks: Cache::builder()
                .max_capacity(PEERS_IN_MEMORY_MAX)
                .time_to_idle(IDLE_IN_MEMORY)
                .build(),
            flights: Flights::new(FLIGHTS_MAX, FLIGHTS_PER_DOMAIN_MAX),
            strangers: Semaphore::new(STRANGER_FLIGHTS_MAX),
            looks: Looks::default(),
            rng: Mutex::new(rng),
        })
    }

    /// The hub that speaks for `domain`. However many ask at the same time, one request goes out; it goes on when those who
    /// ask go away.
    ///
    /// # Errors
    /// See [`PeerError`]. A domain that has no hub, or shows nonsense, is not asked again for
    /// [`PEER_NEGATIVE`]; one that cannot be reached for a few seconds.
    pub async fn peer(
        self: &Arc<Self>,
        domain: &Domain,
        freshness: Freshness,
    ) -> Result<Arc<Peer>, PeerError> {
        if freshness == Freshness::Cached
            && let Some(found) = self.held(domain)
        {
            self.looks.answer(Source::Memory);
            return found;
        }
        let look = || Arc::clone(self).look(domain.clone(), freshness);
        let flight = self.flights.join((domain.clone(), freshness), domain, look).await;
        flight.unwrap_or_else(|| {
            self.looks.miss(Miss::Busy);
            Err(PeerError::Busy)
        })
    }

    /// What was counted of the look-ups.
    pub fn looks(&self) -> &Looks {
        &self.looks
    }

    /// Forgets what is held in memory of a peer, so that what the operator decided counts at once in this process. Others
    /// notice within [`PEER_RECHECK`].
    pub fn forget(&self, domain: &Domain) {
        self.held.invalidate(domain);
        self.fresh_looks.invalidate(domain);
    }

    /// Whether [`Directory::peer`] answers out of the memory of this process, be it with an error.
    pub fn holds(&self, domain: &Domain) -> bool {
        self.held(domain).is_some()
    }

    fn held(&self, domain: &Domain) -> Option<Found> {
        let now = self.seams.clock.now();
        let held = self.held.get(domain)?;
        (held.from <= now && now < held.until).then_some(held.found)
    }

    async fn look(self: Arc<Self>, domain: Domain, freshness: Freshness) -> Found {
        let found = self.find(&domain, freshness).await;
        let found = self.looks.counted(found);
        let now = self.seams.clock.now();
        // A fresh look that failed for the moment takes nothing away from what the caches still promise.
        let is_lost = freshness == Freshness::Fresh && found.as_ref().is_err_and(PeerError::is_transient);
        if let Some(pause) = self.pause(&found, now).filter(|_| !is_lost) {
            let held = Held {
                found: found.clone(),
                from: now,
                until: now + pause,
            };
            self.held.insert(domain, held);
        }
        found
    }

    /// For how long this answer is given again without looking; `None`: not at all.
    fn pause(&self, found: &Found, now: Timestamp) -> Option<Duration> {
        match found {
            Ok(peer) if peer.fresh_until <= now => {
                Some(self.jittered(PEER_TRANSIENT_MIN, PEER_TRANSIENT_MAX))
            }
            Ok(_) | Err(PeerError::Blocked | PeerError::Frozen { .. }) => Some(PEER_RECHECK),
            Err(PeerError::Unfit(_)) => Some(PEER_NEGATIVE),
            Err(PeerError::Unreachable { retry_after, .. }) => {
                let pause = self.jittered(PEER_TRANSIENT_MIN, PEER_TRANSIENT_MAX);
                Some(retry_after.unwrap_or_default().clamp(pause, PEER_NEGATIVE))
            }
            Err(PeerError::TooSoon { .. } | PeerError::Busy | PeerError::Store(_)) => None,
        }
    }

    async fn find(&self, domain: &Domain, freshness: Freshness) -> Result<(Arc<Peer>, Source), PeerError> {
        if *domain == self.settings.own {
            return Err(PeerError::Unfit("it is this hub's own domain".into()));
        }
        let record = self.seams.store.peer(domain).await?;
        if let Some(record) = &record {
            check_decided(record)?;
        }
        let configured = self.settings.static_peers.get(domain);
        if let Some(configured) = configured.filter(|peer| !peer.keys.is_empty()) {
            return Ok((Arc::new(Peer::configured(domain, configured)), Source::Store));
        }
        let kept = record.as_ref().and_then(|record| self.kept(record));
        let now = self.seams.clock.now();
        match freshness {
            Freshness::Cached => {
                if let Some(peer) = kept.as_ref().filter(|peer| now < peer.fresh_until) {
                    return Ok((Arc::clone(peer), Source::Store));
                }
            }
            Freshness::Fresh => self.take_fresh_look(domain, now)?,
        }
        let place = self.place(record.as_ref())?;
        let found = self.discover(domain, record.as_ref()).await;
        drop(place);
        match (found, kept) {
            (Err(PeerError::Unreachable { .. }), Some(stale))
                if freshness == Freshness::Cached && now < stale.fresh_until + DISCOVERY_STALE =>
            {
                Ok((stale, Source::Stale))
            }
            (found, _) => found.map(|peer| (peer, Source::Hub)),
        }
    }

    /// A place among the strangers, unless it is none any more.
    fn place(&self, record: Option<&PeerRecord>) -> Result<Option<SemaphorePermit<'_>>, PeerError> {
        if record.is_some_and(PeerRecord::is_met) {
            return Ok(None);
        }
        match self.strangers.try_acquire() {
            Ok(place) => Ok(Some(place)),
            Err(_full) => Err(PeerError::Busy),
        }
    }

    /// The peer as the store knows it, if its document may still be used at all.
    fn kept(&self, record: &PeerRecord) -> Option<Arc<Peer>> {
        let document = record.document.clone().filter(|_| !record.pinned.is_empty())?;
        let document = HubDocument::from_json(document).ok()?;
        let fresh_until = record.fresh_until?;
        let hub = self.configured_hub(&record.domain);
        let peer = Peer::documented(&document, &record.pinned, hub, fresh_until);
        peer.keys_at(self.seams.clock.now()).next()?;
        Some(Arc::new(peer))
    }

    fn configured_hub(&self, domain: &Domain) -> Option<&Url> {
        self.settings.static_peers.get(domain).map(|peer| &peer.hub)
    }

    fn take_fresh_look(&self, domain: &Domain, now: Timestamp) -> Result<(), PeerError> {
        let last = self.fresh_looks.get(domain).filter(|last| *last <= now);
        if let Some(next) = last
            .map(|last| last + FRESH_LOOKS_EVERY)
            .filter(|next| now < *next)
        {
            return Err(PeerError::too_soon(next, now));
        }
        self.fresh_looks.insert(domain.clone(), now);
        Ok(())
    }

    /// A duration between the two, at random.
    fn jittered(&self, min: Duration, max: Duration) -> Duration {
        let span = u64::try_from(max.saturating_sub(min).as_millis()).unwrap_or(u64::MAX);
        let drawn = self.rng.lock().unwrap_or_else(PoisonError::into_inner).next_u64();
        min + Duration::from_millis(drawn % (span + 1))
    }
}

/// Whether we have anything to do with this peer.
fn check_decided(record: &PeerRecord) -> Result<(), PeerError> {
    if record.stance == Stance::Blocked {
        return Err(PeerError::Blocked);
    }
    match &record.frozen {
        Some(frozen) => Err(PeerError::Frozen {
            kid: frozen.kid.clone(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
