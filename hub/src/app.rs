//! The state that every handler shares: the rooms, the settings, and what the HTTP side keeps for itself.
//!
//! One [`App`] is built at start and handed to both listeners as `web::Data<App>`. There is no global state: a test
//! builds an `App` of its own from in-memory rooms.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aip_catalog::Catalog;
use aip_cluster::Cluster;
use aip_protocol::clock::Clock;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::Domain;
use aip_registry::Registry;
use aip_registry::listings::Listings;
use aip_relay::inbox::Inbox;
use aip_relay::mailbox::{Health, MailboxStore};
use aip_relay::presence::Presence;
use aip_relay::relay::Relay;
use tokio_util::sync::CancellationToken;

use crate::agent::HubAgent;
use crate::catalog::ProviderKeys;
use crate::config::{Secret, Settings};
use crate::cors::Origins;
use crate::error::ApiError;
use crate::extract::{BodyPace, BodyRoom};
use crate::federation::Federation;
use crate::front::Failures;
use crate::market::MarketRoom;
use crate::metrics::Metrics;
use crate::pause::Pause;
use crate::request_id::RequestIds;
use crate::routes::discovery::Discovery;
use crate::routes::docs::Docs;
use crate::socket::Sockets;
use crate::stores::Stores;
use crate::throttle::Throttle;

/// What [`App::new`] is made of; the wiring at start makes these from the settings.
pub struct Parts {
    /// The checked settings.
    pub settings: Arc<Settings>,
    /// The domain this hub speaks for.
    pub domain: Domain,
    /// The clock of every decision about time.
    pub clock: Arc<dyn Clock>,
    /// Who exists.
    pub registry: Arc<Registry>,
    /// What agents offer.
    pub listings: Arc<dyn Listings>,
    /// How it is found.
    pub catalog: Arc<Catalog>,
    /// Makes the keys of providers.
    pub provider_keys: ProviderKeys,
    /// Envelopes in.
    pub relay: Arc<Relay>,
    /// Where envelopes wait.
    pub store: Arc<dyn MailboxStore>,
    /// Who is connected.
    pub presence: Arc<Presence>,
    /// Hubs of other domains; `None` where the hub does not federate.
    pub federation: Option<Arc<Federation>>,
    /// Where capabilities are sold; `None` where the hub has no market.
    pub market: Option<Arc<MarketRoom>>,
    /// The hub's own signing key.
    pub hub_key: Arc<SigningKey>,
    /// The one before it, which vouches for it to peers.
    pub previous_hub_key: Option<Arc<SigningKey>>,
    /// The hub's own agent.
    pub agent: Arc<HubAgent>,
    /// The token of the operator's door.
    pub operator_token: Secret,
    /// The stores as a whole, for backups; `None` where everything is in memory.
    pub stores: Option<Arc<Stores>>,
    /// The other processes of the hub; `None` where there are none, or no way to them.
    pub cluster: Option<Arc<Cluster>>,
    /// Holds the stores still; `None` where they are not this process's alone.
    pub pause: Option<Arc<Pause>>,
    /// A number that tells this run's request ids from another's.
    pub run: u32,
    /// Cancelled when the hub starts to stop: long waits and sockets end then.
    pub stop: CancellationToken,
}

impl Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("domain", &self.domain)
            .finish_non_exhaustive()
    }
}

/// The shared state of the process.
#[derive(Debug)]
pub struct App {
    /// The checked settings.
    pub settings: Arc<Settings>,
    /// The domain this hub speaks for.
    pub domain: Domain,
    /// Where the hub is reached from outside, without a slash at its end.
    pub public_url: String,
    /// The clock of every decision about time.
    pub clock: Arc<dyn Clock>,
    /// Who exists.
    pub registry: Arc<Registry>,
    /// What agents offer.
    pub listings: Arc<dyn Listings>,
    /// How it is found.
    pub catalog: Arc<Catalog>,
    /// Makes the keys of providers.
    pub provider_keys: ProviderKeys,
    /// Envelopes in.
    pub relay: Arc<Relay>,
    /// Where envelopes wait.
    pub store: Arc<dyn MailboxStore>,
    /// Who is connected.
    pub presence: Arc<Presence>,
    /// Hubs of other domains; `None` where the hub does not federate.
    pub federation: Option<Arc<Federation>>,
    /// Envelopes out.
    pub inbox: Inbox,
    /// What the sockets share.
    pub sockets: Sockets,
    /// Where capabilities are sold; `None` where the hub has no market.
    pub market: Option<Arc<MarketRoom>>,
    /// The hub's own signing key.
    pub hub_key: Arc<SigningKey>,
    /// The one before it, which vouches for it to peers.
    pub previous_hub_key: Option<Arc<SigningKey>>,
    /// The hub's own agent.
    pub agent: Arc<HubAgent>,
    /// The token of the operator's door.
    pub operator_token: Secret,
    /// The stores as a whole, for backups.
    pub stores: Option<Arc<Stores>>,
    /// The other processes of the hub.
    pub cluster: Option<Arc<Cluster>>,
    /// Holds the stores still.
    pub pause: Option<Arc<Pause>>,
    /// What is counted.
    pub metrics: Metrics,
    /// Makes the ids of requests.
    pub request_ids: RequestIds,
    /// Writes failures to the log.
    pub failures: Failures,
    /// Limits per network address.
    pub throttle: Throttle,
    /// The memory for bodies.
    pub bodies: BodyRoom,
    /// Web pages that may call this hub.
    pub origins: Origins,
    /// The pages and the OpenAPI document.
    pub docs: Docs,
    /// The signed discovery document.
    pub discovery: Discovery,
    /// Whether the hub takes new work.
    pub serving: Serving,
    /// Cancelled when the hub starts to stop.
    pub stop: CancellationToken,
}

impl App {
    /// Puts the state together.
    ///
    /// # Errors
    /// Two metrics of one name, or a description that JSON cannot hold: bugs.
    pub fn new(parts: Parts) -> Result<Self, BuildError> {
        let settings = parts.settings;
        Ok(Self {
            agent: parts.agent,
            public_url: settings.public_url(),
            throttle: Throttle::new(&settings),
            bodies: BodyRoom::for_bodies_of(settings.relay.batch_bytes_max),
            origins: Origins::new(&settings.http.allowed_origins),
            discovery: Discovery::default(),
            docs: Docs::new()?,
            metrics: Metrics::new()?,
            request_ids: RequestIds::new(parts.run),
            inbox: Inbox::new(parts.store.clone(), parts.presence.clone(), parts.clock.clone()),
            sockets: Sockets::new(parts.run),
            serving: Serving::default(),
            failures: Failures::default(),
            settings,
            domain: parts.domain,
            clock: parts.clock,
            registry: parts.registry,
            listings: parts.listings,
            catalog: parts.catalog,
            provider_keys: parts.provider_keys,
            relay: parts.relay,
            store: parts.store,
            presence: parts.presence,
            federation: parts.federation,
            market: parts.market,
            hub_key: parts.hub_key,
            previous_hub_key: parts.previous_hub_key,
            operator_token: parts.operator_token,
            stores: parts.stores,
            cluster: parts.cluster,
            pause: parts.pause,
            stop: parts.stop,
        })
    }

    /// Lets the catalog and the market look at the listings, or at their agents, at once.
    pub(crate) fn listings_changed(&self) {
        self.catalog.nudge();
        if let Some(room) = &self.market {
            room.shelf.nudge();
        }
    }

    /// Refuses what is new, such as `listings`, while there is no room for it.
    ///
    /// # Errors
    /// 503 while the disk is nearly full.
    pub(crate) fn require_room(&self, what: &str) -> Result<(), ApiError> {
        if matches!(self.store.health(), Health::DiskFull { .. }) {
            let detail =
                format!("The hub's disk is nearly full, so it takes no new {what} for now. Try again later.");
            return Err(Refusal::new(ErrorCode::Unavailable, detail).into());
        }
        Ok(())
    }

    /// Whether other processes of the hub work on the same stores.
    pub fn shares_stores(&self) -> bool {
        self.pause.is_none()
    }

    /// How long a body may take.
    pub fn body_pace(&self) -> BodyPace {
        BodyPace {
            grace: Duration::from_secs(self.settings.http.body_timeout_secs),
            bytes_per_sec_min: self.settings.http.body_bytes_per_sec_min,
        }
    }
}

/// The state could not be put together; a bug, as nothing in it depends on the outside.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two metrics of one name.
    #[error("the counters cannot be set up")]
    Metrics(#[from] prometheus::Error),
    /// The OpenAPI document does not print.
    #[error("the API's description cannot be printed")]
    Docs(#[from] serde_json::Error),
}

/// Whether the hub takes new work. Readiness says so to a load balancer; nothing else depends on it.
#[derive(Debug, Default)]
pub struct Serving {
    draining: AtomicBool,
}

impl Serving {
    /// From now on the hub is not ready: it finishes what it has and stops.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Whether [`Serving::drain`] was called.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }
}
