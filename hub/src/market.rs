//! The hub's side of the market: what is sold, made from the listings ([`shelf`]), the signed documents about it
//! ([`documents`]), and the ways to providers ([`providers`]). The order of a call, and the money, are
//! [`aip_market`]'s.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aip_federation::egress::Exchange;
use aip_market::market::{Market, MarketConfig, Seams};
use aip_market::provider::Providers;
use aip_market::routing::PeerHubs;
use aip_market::store::MarketStore;
use aip_protocol::clock::Clock;
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::Domain;
use aip_registry::Registry;
use aip_registry::listings::Listings;
use rand_core::{CryptoRng, Rng as _};
use uuid::Uuid;

use crate::catalog::Quarantine;
use crate::config::Settings;
use crate::throttle::Holdings;

pub mod crawl;
pub mod documents;
pub mod facilitator;
pub mod limits;
pub mod offer;
pub mod peers;
pub mod providers;
pub mod shelf;

use documents::{Documents, Facts};
use peers::{Book, KeysFile, PeerRoom};
use shelf::Shelf;

/// What a [`MarketRoom`] is made of.
pub struct Parts {
    /// The domain that the hub speaks for.
    pub domain: Domain,
    /// What is kept.
    pub store: Arc<dyn MarketStore>,
    /// Where offers come from.
    pub listings: Arc<dyn Listings>,
    /// Whose they are.
    pub registry: Arc<Registry>,
    /// The ways to who does the work.
    pub providers: Arc<dyn Providers>,
    /// Which other hubs sell here.
    pub book: Arc<Book>,
    /// What this hub pays them with.
    pub peer_keys: Arc<KeysFile>,
    /// The guarded way out.
    pub exchange: Arc<dyn Exchange>,
    /// The way to them.
    pub hubs: Arc<dyn PeerHubs>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Signs receipts and documents.
    pub hub_key: SigningKey,
    /// The key before it, whose receipts are good too.
    pub previous_hub_key: Option<SigningKey>,
    /// Whether other processes of the hub work on the same store.
    pub is_shared: bool,
    /// Chance for ids and secrets.
    pub rng: Box<dyn CryptoRng + Send>,
    /// Chance for references.
    pub references: Box<dyn CryptoRng + Send>,
    /// Chance for pauses.
    pub pauses: Box<dyn CryptoRng + Send>,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("domain", &self.domain)
            .finish_non_exhaustive()
    }
}

/// The market of this process.
pub struct MarketRoom {
    /// Calls, purses and housekeeping.
    pub engine: Arc<Market>,
    /// What is sold.
    pub shelf: Arc<Shelf>,
    /// What is published about it.
    pub documents: Documents,
    /// Other hubs that sell here.
    pub peers: Arc<PeerRoom>,
    /// The keys whose receipts are this hub's.
    pub keys: Vec<aip_protocol::multikey::VerifyingKey>,
    /// Streams of events, by who has them open.
    pub streams: Holdings,
    references: Mutex<Box<dyn CryptoRng + Send>>,
}

impl MarketRoom {
    /// Puts the market together; [`Shelf::catch_up`] fills it.
    pub fn open(settings: &Settings, mut parts: Parts) -> Self {
        let shelf = Shelf::new(parts.listings.clone(), parts.registry, parts.clock.clone());
        let shelf = Arc::new(shelf.behind(Quarantine::new(&settings.search.quarantine)));
        let config = config(settings, &parts.domain, parts.is_shared, &mut *parts.references);
        let keys = std::iter::once(&parts.hub_key).chain(&parts.previous_hub_key);
        let keys = keys.map(|key| key.public().clone()).collect();
        let (exchange, clock) = (parts.exchange.clone(), parts.clock.clone());
        let x402 = facilitator::open(&settings.market_x402, exchange, clock);
        let peers = Arc::new(PeerRoom::open(
            settings,
            peers::Parts {
                domain: parts.domain.clone(),
                store: parts.store.clone(),
                listings: parts.listings,
                exchange: parts.exchange,
                clock: parts.clock.clone(),
                hub_key: parts.hub_key.clone(),
                previous_hub_key: parts.previous_hub_key,
                book: parts.book.clone(),
                keys: parts.peer_keys,
                shelf: shelf.clone(),
                rng: parts.pauses,
            },
        ));
        let facts = Facts::new(settings, &parts.domain, parts.hub_key.clone(), peers.clone());
        let seams = Seams {
            store: parts.store,
            offers: shelf.clone(),
            providers: parts.providers,
            peers: parts.book.clone(),
            hubs: parts.hubs,
            x402,
            clock: parts.clock.clone(),
            key: parts.hub_key,
        };
        Self {
            engine: Market::new(config, seams, parts.rng),
            documents: Documents::new(facts, shelf.clone(), parts.clock),
            peers,
            shelf,
            keys,
            streams: Holdings::new(limits::STREAMS_PER_NETWORK_MAX),
            references: Mutex::new(parts.references),
        }
    }

    /// What is kept.
    pub fn store(&self) -> &dyn MarketStore {
        &**self.engine.store()
    }

    /// A reference that was never used.
    pub fn draw_reference(&self) -> String {
        let mut bytes = [0_u8; 16];
        self.references
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .fill_bytes(&mut bytes);
        hex::encode(bytes)
    }

    /// Gives up what an earlier run of this process left under way, and fills the shelf: before the doors open. What fails
    /// here is told, and tried again later.
    pub async fn prepare(&self) {
        match self.engine.recover().await {
            Ok(0) => {}
            Ok(count) => tracing::warn!(
                count,
                "{count} calls were under way when the hub ended: nothing was charged for them"
            ),
            Err(error) => {
                tracing::error!(%error, "Calls that were under way are given up by the next sweep");
            }
        }
        self.peers.prepare().await;
        if let Err(error) = self.shelf.catch_up().await {
            tracing::error!(%error, "The market knows no offers yet; it tries again");
        }
    }

    /// One round of housekeeping.
    pub async fn sweep(&self) {
        match self.engine.sweep().await {
            Ok(swept) if swept.abandoned > 0 => tracing::warn!(
                count = swept.abandoned,
                "{} calls were lost with the process that made them: nothing was charged for them",
                swept.abandoned
            ),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "The market was not swept; the next sweep tries again"),
        }
    }
}

impl fmt::Debug for MarketRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MarketRoom")
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

/// A hub of one process finds at its start what it lost; the processes of a cluster must not take each other's.
fn config(settings: &Settings, domain: &Domain, is_shared: bool, rng: &mut dyn CryptoRng) -> MarketConfig {
    let market = &settings.market;
    let holder = if is_shared {
        let mut bytes = [0_u8; 16];
        rng.fill_bytes(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    } else {
        Uuid::nil()
    };
    MarketConfig {
        domain: domain.to_string(),
        base_url: settings.public_url(),
        trials_per_visitor: market.trials_per_visitor,
        fee_bps: market.fee_bps,
        routing_fee_bps: settings.market_peers.routing_fee_bps,
        provider_timeout: Duration::from_secs(market.provider_timeout_secs),
        open_signup: market.open_signup,
        demo_credit: market.demo_credit,
        holder,
    }
}
