//! Federation as this hub has it: the room's parts, plugged into the stores and the doors.

mod assemble;
mod bounces;
mod incoming;
mod peers;
mod recipients;
pub(crate) mod reports;

use std::net::IpAddr;
use std::sync::Arc;

use aip_federation::breaker::BreakerState;
use aip_federation::delivery::{Delivery, PeerView};
use aip_federation::directory::{Directory, Freshness};
use aip_federation::egress::Exchange;
use aip_federation::identities::RemoteIdentities;
use aip_federation::inbound::Inbound;
use aip_federation::outbox::OutboxError;
use aip_federation::peers::{FederationStore, PeerRecord, StoreError};
use aip_federation::policy::Policy;
use aip_federation::signing::Signer;
use aip_protocol::clock::Clock;
use aip_protocol::error::Refusal;
use aip_protocol::identity::Identity;
use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

pub use assemble::{Parts, outgoing};
pub(crate) use incoming::switched_off;
pub use peers::Outgoing;
pub use recipients::Recipients;

/// Who the audit log says decided.
const OPERATOR: &str = "operator";

/// Everything between this hub and others.
#[derive(Debug)]
pub struct Federation {
    /// What is known and decided about peers.
    pub store: Arc<dyn FederationStore>,
    /// Whom this hub has to do with.
    pub policy: Arc<Policy>,
    /// Where peers are.
    pub directory: Arc<Directory>,
    /// Agents of other domains.
    pub identities: Arc<RemoteIdentities>,
    /// Sends what waits.
    pub delivery: Arc<Delivery>,
    /// Takes in what peers send.
    pub inbound: Arc<Inbound>,
    /// The way to other hubs.
    pub exchange: Arc<dyn Exchange>,
    /// Signs for this hub.
    pub signer: Arc<Signer>,
    outgoing: Arc<Outgoing>,
    asked: reports::Asked,
    clock: Arc<dyn Clock>,
}

/// What waits for a peer, and how sending to it goes in this process.
#[derive(Debug, Serialize, ToSchema)]
pub struct Waiting {
    /// Messages that wait.
    pub pending: u64,
    /// Bytes of their envelopes.
    pub bytes: u64,
    /// How long the oldest of them has been waiting, in seconds.
    pub oldest_unsent_secs: Option<u64>,
    /// Messages on their way.
    pub in_flight: usize,
    /// Failures in a row.
    pub failures: u32,
    /// `closed`: it is being sent to; `open`: it is left alone for a while; `half_open`: one attempt tells.
    #[schema(example = "closed")]
    pub breaker: &'static str,
    /// When it is tried next.
    #[schema(value_type = Option<String>, format = "date-time")]
    pub next_attempt: Option<Timestamp>,
    /// Why the last attempt that failed did.
    pub last_error: Option<String>,
}

impl From<PeerView> for Waiting {
    fn from(view: PeerView) -> Self {
        Self {
            pending: view.pending,
            bytes: view.bytes,
            oldest_unsent_secs: view.oldest_unsent_age.map(|age| age.as_secs()),
            in_flight: view.in_flight,
            failures: view.failures,
            breaker: match view.breaker {
                BreakerState::Closed => "closed",
                BreakerState::Open { .. } => "open",
                BreakerState::HalfOpen => "half_open",
            },
            next_attempt: view.next_attempt,
            last_error: view
                .last_error
                .map(|error| format!("{}: {} ({})", error.at, error.detail, error.code)),
        }
    }
}

impl Federation {
    /// Sends until `stop`.
    pub async fn run(&self, stop: CancellationToken) {
        self.delivery.run(stop).await;
    }

    /// Notes what the operator decided, in the audit log and in the log, and lets it take effect at once.
    ///
    /// # Errors
    /// The store.
    pub async fn decided(
        &self,
        peer: &Domain,
        action: &str,
        detail: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.store.audit(peer, OPERATOR, action, detail, now).await?;
        tracing::info!(peer = %peer, action, detail, "The operator decided about the peer {peer}: {action}");
        self.outgoing.forget(peer);
        self.directory.forget(peer);
        self.delivery.retry(peer);
        Ok(())
    }

    /// Forgets what is known of a remote agent; `false` if nothing is.
    ///
    /// # Errors
    /// The store.
    pub async fn forget_history(&self, did: &Did, now: Timestamp) -> Result<bool, StoreError> {
        let known = self.store.forget_history(did).await?;
        self.identities.forget(did);
        if known {
            let peer = did.domain();
            self.store
                .audit(&peer, OPERATOR, "forget-history", did.as_str(), now)
                .await?;
        }
        Ok(known)
    }

    /// An agent of another domain, and where its hub is. `asker` is who has that looked up; `None` is this hub itself, or
    /// anybody in development.
    ///
    /// # Errors
    /// What §7 says: nobody of that name, the hub of that domain cannot be had, or what it shows is wrong; `rate_limited` if
    /// too many domains that were never met are asked for.
    pub async fn find(&self, did: &Did, asker: Option<IpAddr>) -> Result<(Identity, String), Refusal> {
        let domain = did.domain();
        let record = self.reachable(&domain).await?;
        let is_met = record.as_ref().is_some_and(PeerRecord::is_met);
        if let Some(asker) = asker.filter(|_| !is_met && !self.directory.holds(&domain)) {
            self.inbound.look_up(asker)?;
        }
        let found = self.identities.identity(did, Freshness::Cached).await;
        let resolved = found.map_err(|error| error.refusal())?;
        let peer = self.directory.peer(&domain, Freshness::Cached).await;
        let hub = peer.map_err(|error| error.refusal())?.hub.clone();
        Ok((resolved.identity, hub.as_str().trim_end_matches('/').to_owned()))
    }

    /// What is known of a peer, if the policy has anything go there.
    async fn reachable(&self, peer: &Domain) -> Result<Option<PeerRecord>, Refusal> {
        let record = self.store.peer(peer).await;
        let record = record.map_err(|error| peers::unreadable(peer, &error))?;
        self.policy.outgoing(peer, record.as_ref())?;
        Ok(record)
    }

    /// What waits for a peer.
    ///
    /// # Errors
    /// The store.
    pub async fn waiting(&self, peer: &Domain) -> Result<Waiting, OutboxError> {
        self.delivery.view(peer).await.map(Waiting::from)
    }
}
