//! Agents of other domains: their histories are fetched from their hubs, replayed here, and held against what was known.
//!
//! What was verified once is kept in the store. A hub that later shows a history which does not extend it is not believed:
//! both operations are kept as evidence, and only the operator's word takes the other history (spec §3).

mod error;
mod fetch;
mod judge;

use std::sync::Arc;
use std::time::Duration;

use aip_protocol::clock::Clock;
use aip_protocol::error::Refusal;
use aip_protocol::identity::{EndpointPolicy, Identity, Operation};
use aip_protocol::json::Json;
use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;
use moka::sync::Cache;
use tokio::sync::Semaphore;

pub use error::IdentityError;

use crate::directory::{Directory, Freshness, Peer, PeerError};
use crate::egress::{Exchange, Limits};
use crate::flights::Flights;
use crate::limits::{
    FLIGHTS_MAX, FLIGHTS_PER_DOMAIN_MAX, FRESH_LOOKS_EVERY, HISTORY_BYTES_MAX, HISTORY_TIMEOUT,
    IDENTITIES_IN_MEMORY_BYTES, IDENTITY_FRESH, IDENTITY_NEGATIVE, IDENTITY_STALE, IDENTITY_TRANSIENT,
    IDLE_IN_MEMORY, LONG_HISTORY_OPERATIONS, LONG_REPLAYS_MAX, PEERS_IN_MEMORY_MAX,
};
use crate::looks::{Looks, Miss, Source};
use crate::peers::{FederationStore, HistoryCaps, KnownHistory, StoreError};

/// What one agent takes in memory beside its operations, in bytes, as an estimate.
const ENTRY_BYTES: u32 = 1024;

/// A remote agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Resolved {
    /// Who it is: replayed and verified here.
    pub identity: Identity,
    /// When its hub was asked. What the hub learned later is not in it.
    pub asked_at: Timestamp,
    /// Until when it is given without asking again; in the past when the hub cannot be reached at the moment.
    pub fresh_until: Timestamp,
}

/// What one look-up may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdentityLimits {
    /// Of one page; [`Limits::answer_bytes_max`] of the whole history.
    pub page: Limits,
    /// Longest time for all pages.
    pub timeout: Duration,
    /// How many histories the store keeps.
    pub histories: HistoryCaps,
}

impl Default for IdentityLimits {
    fn default() -> Self {
        Self {
            page: Limits {
                answer_bytes_max: HISTORY_BYTES_MAX,
                ..Limits::default()
            },
            timeout: HISTORY_TIMEOUT,
            histories: HistoryCaps::default(),
        }
    }
}

/// What [`RemoteIdentities`] is plugged into.
#[derive(Debug, Clone)]
pub struct IdentitySeams {
    /// Who speaks for a domain.
    pub directory: Arc<Directory>,
    /// What was known before, and where lies are recorded.
    pub store: Arc<dyn FederationStore>,
    /// The way out.
    pub exchange: Arc<dyn Exchange>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// Looks up agents of other domains.
pub struct RemoteIdentities {
    limits: IdentityLimits,
    seams: IdentitySeams,
    held: Cache<Did, Held>,
    fresh_looks: Cache<Did, Timestamp>,
    flights: Flights<(Did, Freshness), Found>,
    long_replays: Arc<Semaphore>,
    looks: Looks,
}

type Found = Result<Resolved, IdentityError>;

/// What the last look found, and in which time it is said again without looking.
#[derive(Debug, Clone)]
struct Held {
    found: Found,
    from: Timestamp,
    until: Timestamp,
}

impl std::fmt::Debug for RemoteIdentities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteIdentities")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl RemoteIdentities {
    /// Puts the look-up together.
    pub fn new(limits: IdentityLimits, seams: IdentitySeams) -> Arc<Self> {
        let held = Cache::builder()
            .max_capacity(IDENTITIES_IN_MEMORY_BYTES)
            .weigher(|_did: &Did, held: &Held| held.weight())
            .time_to_idle(IDLE_IN_MEMORY);
        let fresh_looks = Cache::builder()
            .max_capacity(PEERS_IN_MEMORY_MAX)
            .time_to_idle(IDLE_IN_MEMORY);
        Arc::new(Self {
            limits,
            seams,
            held: held.build(),
            fresh_looks: fresh_looks.build(),
            flights: Flights::new(FLIGHTS_MAX, FLIGHTS_PER_DOMAIN_MAX),
            long_replays: Arc::new(Semaphore::new(LONG_REPLAYS_MAX)),
            looks: Looks::default(),
        })
    }

    /// The agent of another domain. However many ask for it at the same time, its hub is asked once, and goes on being asked
    /// when those go away.
    ///
    /// [`Freshness::Cached`] may give what was fetched up to [`IDENTITY_FRESH`] ago, and, while its hub cannot be reached,
    /// what was fetched up to [`IDENTITY_STALE`] ago. An answer to [`Freshness::Fresh`] may come from a question that was
    /// under way already: compare [`Resolved::asked_at`].
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub async fn identity(
        self: &Arc<Self>,
        did: &Did,
        freshness: Freshness,
    ) -> Result<Resolved, IdentityError> {
        if freshness == Freshness::Cached
            && let Some(found) = self.held(did)
        {
            self.looks.answer(Source::Memory);
            return found;
        }
        let look = || Arc::clone(self).look(did.clone(), freshness);
        let flight = self
            .flights
            .join((did.clone(), freshness), &did.domain(), look)
            .await;
        flight.unwrap_or_else(|| {
            self.looks.miss(Miss::Busy);
            Err(IdentityError::Peer(PeerError::Busy))
        })
    }

    /// What was counted of the look-ups.
    pub fn looks(&self) -> &Looks {
        &self.looks
    }

    /// Forgets what is held of an agent in the memory of this process, so that the operator's word counts at once.
    pub fn forget(&self, did: &Did) {
        self.held.invalidate(did);
        self.fresh_looks.invalidate(did);
    }

    fn held(&self, did: &Did) -> Option<Found> {
        let now = self.seams.clock.now();
        let held = self.held.get(did)?;
        (held.from <= now && now < held.until).then_some(held.found)
    }

    async fn look(self: Arc<Self>, did: Did, freshness: Freshness) -> Found {
        let found = self.find(&did, freshness).await;
        let found = self.looks.counted(found);
        let now = self.seams.clock.now();
        // A fresh look that failed for the moment takes nothing away from what the caches still promise.
        let is_lost = freshness == Freshness::Fresh && found.as_ref().is_err_and(IdentityError::is_transient);
        if let Some(until) = held_until(&found, now).filter(|_| !is_lost) {
            let held = Held {
                found: found.clone(),
                from: now,
                until,
            };
            self.held.insert(did, held);
        }
        found
    }

    async fn find(&self, did: &Did, freshness: Freshness) -> Result<(Resolved, Source), IdentityError> {
        let now = self.seams.clock.now();
        let known = self.seams.store.history(did).await.map_err(PeerError::from)?;
        match freshness {
            Freshness::Cached => {
                if let Some(known) = known
                    .as_ref()
                    .filter(|known| is_within(known, IDENTITY_FRESH, now))
                {
                    return Ok((self.resolved(known).await?, Source::Store));
                }
            }
            Freshness::Fresh => self.take_fresh_look(did, now)?,
        }
        match self.ask(did, known.as_ref(), freshness).await {
            Err(error) if freshness == Freshness::Cached && error.is_unreachable() => {
                match known.filter(|known| is_within(known, IDENTITY_STALE, now)) {
                    Some(known) => Ok((self.resolved(&known).await?, Source::Stale)),
                    None => Err(error),
                }
            }
            found => Ok((found?, Source::Hub)),
        }
    }

    /// Asks its hub, and holds the answer against what was known before.
    async fn ask(&self, did: &Did, known: Option<&KnownHistory>, freshness: Freshness) -> Found {
        let peer = self.peer(&did.domain(), freshness).await?;
        let asked_at = self.seams.clock.now();
        let fetching = tokio::time::timeout(self.limits.timeout, self.fetch(&peer, did));
        let Ok(fetched) = fetching.await else {
            return Err(IdentityError::Peer(PeerError::unreachable(
                "its history took too long",
            )));
        };
        let (operations, identity) = self.replay(did, fetched?).await?;
        let shown = KnownHistory {
            did: did.clone(),
            operations,
            fetched_at: asked_at,
        };
        self.admit(shown, identity, known).await
    }

    /// The hub of the domain, asked afresh if that is due.
    async fn peer(&self, domain: &Domain, freshness: Freshness) -> Result<Arc<Peer>, PeerError> {
        let directory = &self.seams.directory;
        match directory.peer(domain, freshness).await {
            Err(PeerError::TooSoon { .. }) => directory.peer(domain, Freshness::Cached).await,
            found => found,
        }
    }

    /// Replays a history that was fetched. What is wrong with it is judged with the operations at hand.
    async fn replay(&self, did: &Did, operations: Vec<Json>) -> Result<(Vec<Json>, Identity), IdentityError> {
        let replayed = self.replayed(&operations).await?;
        match replayed {
            Ok(identity) if identity.did() == did => Ok((operations, identity)),
            Ok(identity) => {
                let detail = format!("asked for {did}, its hub shows {}", identity.did());
                Err(IdentityError::Unsound(detail.into()))
            }
            Err(refusal) => Err(self.refuse(did, &operations, &refusal).await?),
        }
    }

    /// Verifies every signature. A long history takes its time, and takes it on a thread of its own.
    async fn replayed(&self, operations: &[Json]) -> Result<Result<Identity, Refusal>, IdentityError> {
        if operations.len() <= LONG_HISTORY_OPERATIONS {
            return Ok(replay(operations));
        }
        let turn = Arc::clone(&self.long_replays).acquire_owned().await;
        let operations = operations.to_vec();
        let replaying = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            replay(&operations)
        });
        replaying
            .await
            .map_err(|_stopped| IdentityError::Peer(PeerError::Busy))
    }

    /// An agent as the store knows it. That what we kept is broken is our own trouble: nothing is refused for it.
    async fn resolved(&self, known: &KnownHistory) -> Found {
        match self.replayed(&known.operations).await? {
            Ok(identity) => Ok(resolved(identity, known.fetched_at)),
            Err(refusal) => {
                tracing::error!(did = %known.did, %refusal, "A history in our own store does not replay");
                Err(IdentityError::Peer(StoreError(Box::new(refusal)).into()))
            }
        }
    }

    fn take_fresh_look(&self, did: &Did, now: Timestamp) -> Result<(), PeerError> {
        let last = self.fresh_looks.get(did).filter(|last| *last <= now);
        if let Some(next) = last
            .map(|last| last + FRESH_LOOKS_EVERY)
            .filter(|next| now < *next)
        {
            return Err(PeerError::too_soon(next, now));
        }
        self.fresh_looks.insert(did.clone(), now);
        Ok(())
    }
}

impl Held {
    /// Bytes, as an estimate: what an identity holds in memory is about its newest operation and a hash for each.
    fn weight(&self) -> u32 {
        let Ok(resolved) = &self.found else {
            return ENTRY_BYTES;
        };
        let operations = u32::try_from(resolved.identity.seq()).unwrap_or(u32::MAX);
        let newest = u32::try_from(resolved.identity.head().json.to_jcs().len()).unwrap_or(u32::MAX);
        let newest = newest.saturating_mul(4);
        operations
            .saturating_mul(256)
            .saturating_add(newest)
            .saturating_add(ENTRY_BYTES)
    }
}

/// Until when this answer is given again without looking; `None`: not at all.
fn held_until(found: &Found, now: Timestamp) -> Option<Timestamp> {
    match found {
        Ok(resolved) if now < resolved.fresh_until => Some(resolved.fresh_until),
        Err(IdentityError::NotFound | IdentityError::Forked | IdentityError::Unsound(_)) => {
            Some(now + IDENTITY_NEGATIVE)
        }
        Err(IdentityError::Peer(PeerError::TooSoon { .. } | PeerError::Busy | PeerError::Store(_))) => None,
        Ok(_) | Err(IdentityError::Peer(_)) => Some(now + IDENTITY_TRANSIENT),
    }
}

fn is_within(known: &KnownHistory, life: Duration, now: Timestamp) -> bool {
    known.fetched_at <= now && now < known.fetched_at + life
}

fn resolved(identity: Identity, asked_at: Timestamp) -> Resolved {
    Resolved {
        identity,
        asked_at,
        fresh_until: asked_at + IDENTITY_FRESH,
    }
}

fn replay(operations: &[Json]) -> Result<Identity, Refusal> {
    // Which endpoints an agent may have is for its own hub to say.
    let policy = EndpointPolicy { allow_http: true };
    let read = |(index, json): (usize, &Json)| {
        Operation::from_json(json.clone(), policy).map_err(|refusal| refusal.with("index", index))
    };
    let operations: Vec<Operation> = operations
        .iter()
        .enumerate()
        .map(read)
        .collect::<Result<_, _>>()?;
    Identity::replay(operations)
}

#[cfg(test)]
mod tests;
