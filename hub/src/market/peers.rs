//! Other hubs that sell here: who they are (`book`), what they sell (the crawler), and what this hub says to them.
//!
//! Peers are decided about by the operator, and by nobody else: strangers can only name them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aip_federation::egress::{EgressError, Exchange, Policy};
use aip_market::money::Usd;
use aip_market::offer::{Offer, Source};
use aip_market::peers::{Found, MarketPeer, PeerBook as _, PeerStatus, RouteMode};
use aip_market::store::{MarketStore, PeerChange, PeerChanged, PeerNote, StoreError};
use aip_protocol::clock::Clock;
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use aip_registry::listings::Listings;
use rand_core::CryptoRng;
use tokio::sync::Notify;

use super::crawl::{Crawler, Own};
use super::limits::EARLY_CRAWL_PAUSE;
use super::shelf::Shelf;
use crate::config::Settings;

mod announcer;
mod book;
mod keys;
pub(super) mod pace;
mod work;

use announcer::Announcer;
pub use book::Book;
pub use keys::{KeysError, KeysFile};
use pace::Pace;

/// What a [`PeerRoom`] is made of.
pub struct Parts {
    /// The domain that the hub speaks for.
    pub domain: Domain,
    /// What is kept.
    pub store: Arc<dyn MarketStore>,
    /// Where listings are.
    pub listings: Arc<dyn Listings>,
    /// The guarded way out.
    pub exchange: Arc<dyn Exchange>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Signs announcements.
    pub hub_key: SigningKey,
    /// The key before it.
    pub previous_hub_key: Option<SigningKey>,
    /// The peers in memory.
    pub book: Arc<Book>,
    /// What this hub pays others with.
    pub keys: Arc<KeysFile>,
    /// What is sold here.
    pub shelf: Arc<Shelf>,
    /// Chance for pauses.
    pub rng: Box<dyn CryptoRng + Send>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts")
            .field("domain", &self.domain)
            .finish_non_exhaustive()
    }
}

/// What a capability costs here and where it is sold, as documents and answers say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Routed<'a> {
    /// What it costs a buyer of this hub at most.
    pub price: Usd,
    /// What of it is this hub's for finding and calling, in hundredths of a percent of the price.
    pub fee_bps: u16,
    /// `local`, or the address of the hub.
    pub hub: &'a str,
    /// What that hub is called; `None`: it is this one.
    pub name: Option<&'a str>,
    /// `local`, or `live`: what is not is not shown.
    pub status: &'static str,
    /// Whether an account or a channel of this hub pays it.
    pub is_sold_here: bool,
}

/// Other hubs that sell here.
#[derive(Debug)]
pub struct PeerRoom {
    /// Whether the settings let this hub ask others, and others announce themselves.
    pub is_enabled: bool,
    /// Whether strangers may name hubs.
    pub is_open: bool,
    /// What is added to the price of what they sell.
    pub routing_fee_bps: u16,
    /// Time between two looks at what a hub sells.
    pub interval: Duration,
    /// This hub's address.
    pub own_url: String,
    /// The peers in memory.
    pub book: Arc<Book>,
    /// What this hub pays others with.
    pub keys: Arc<KeysFile>,
    egress: Policy,
    seeds: Vec<String>,
    crawler: Crawler,
    announcer: Option<Announcer>,
    due: Notify,
    crawls: Mutex<BTreeMap<&'static str, u64>>,
}

impl PeerRoom {
    /// Puts it together; [`PeerRoom::prepare`] fills the book.
    pub fn open(settings: &Settings, parts: Parts) -> Self {
        let peers = &settings.market_peers;
        let own_keys = std::iter::once(&parts.hub_key).chain(&parts.previous_hub_key);
        let own = Own {
            domain: parts.domain,
            url: settings.public_url(),
            keys: own_keys.map(|key| key.public().clone()).collect(),
        };
        let interval = Duration::from_secs(peers.crawl_interval_secs);
        let announcer = peers.announce.then(|| Announcer {
            own_url: own.url.clone(),
            name: own.domain.to_string(),
            key: parts.hub_key.clone(),
            exchange: parts.exchange.clone(),
            book: parts.book.clone(),
            shelf: parts.shelf,
        });
        Self {
            is_enabled: settings.market.enabled && peers.enabled,
            is_open: peers.open,
            routing_fee_bps: peers.routing_fee_bps,
            interval,
            own_url: own.url.clone(),
            book: parts.book.clone(),
            keys: parts.keys,
            egress: Policy {
                allow_http: settings.egress.allow_http,
                allowed_private_ranges: settings.egress.allowed_private_ranges.clone(),
                ..Policy::default()
            },
            seeds: peers
                .seeds
                .iter()
                .filter_map(|seed| aip_market::peers::peer_url(seed))
                .collect(),
            announcer,
            crawler: Crawler {
                own,
                store: parts.store,
                listings: parts.listings,
                exchange: parts.exchange,
                clock: parts.clock,
                book: parts.book,
                pace: Pace::new(interval, peers.open, parts.rng),
            },
            due: Notify::new(),
            crawls: Mutex::default(),
        }
    }

    /// How an offer is sold here.
    pub fn routed<'a>(&self, offer: &'a Offer) -> Routed<'a> {
        let Source::Peer(source) = &offer.source else {
            return Routed {
                price: offer.price,
                fee_bps: 0,
                hub: "local",
                name: None,
                status: "local",
                is_sold_here: true,
            };
        };
        let mode = self
            .book
            .peer(&source.hub)
            .map(|peer| peer.mode)
            .unwrap_or_default();
        let fee_bps = match mode {
            RouteMode::SellsFor => 0,
            RouteMode::Broker | RouteMode::Reseller => self.routing_fee_bps,
        };
        let fee = offer.price.basis_points(fee_bps);
        Routed {
            // Prices are far below where a sum could be none.
            price: offer.price.checked_add(fee).unwrap_or(offer.price),
            fee_bps,
            hub: &source.hub,
            name: Some(&source.name),
            status: "live",
            is_sold_here: mode != RouteMode::Broker || offer.price == Usd::ZERO,
        }
    }

    /// Whether an offer may be called: it is of this hub, or of one that the operator has let in.
    pub fn is_open(&self, offer: &Offer) -> bool {
        offer
            .source
            .hub()
            .is_none_or(|hub| self.book.peer(hub).is_some_and(|peer| peer.is_routable()))
    }

    fn store(&self) -> &dyn MarketStore {
        &*self.crawler.store
    }

    fn now(&self) -> Timestamp {
        self.crawler.clock.now()
    }

    /// Reads the peers, and meets those that the settings name: before the doors open. What fails is told, and tried again.
    pub async fn prepare(&self) {
        for seed in self.seeds.iter().filter(|_| self.is_enabled) {
            let seeded = PeerChange::Met {
                found: Found::Seed,
                depth: 0,
            };
            if let Err(error) = self.store().change_peer(seed, seeded, None, self.now()).await {
                tracing::error!(peer = %seed, %error, "A hub that the settings name was not met; the next start tries again");
            }
        }
        self.refresh().await;
    }

    async fn refresh(&self) {
        if let Err(error) = self.book.refresh(self.store()).await {
            tracing::warn!(%error, "The hubs that sell here cannot be read; what was known of them stays");
        }
        if let Err(error) = self.keys.reload() {
            tracing::warn!(%error, "The keys at other hubs cannot be read again; those from before stay");
        }
    }

    /// Whether a hub at this address could be asked at all. What its name resolves to is checked when it is asked.
    ///
    /// # Errors
    /// The guard of the way out refuses it.
    pub fn check(&self, url: &str) -> Result<(), EgressError> {
        self.egress.check_url(url).map(drop)
    }

    /// A change that the operator decides, with a line in the log. What a peer sold goes with it where that ends.
    ///
    /// # Errors
    /// The store.
    pub async fn decide(
        &self,
        url: &str,
        change: PeerChange,
        action: &'static str,
        detail: String,
    ) -> Result<PeerChanged, StoreError> {
        let note = PeerNote {
            actor: "operator",
            action,
            detail,
        };
        let changed = self
            .store()
            .change_peer(url, change, Some(note), self.now())
            .await?;
        if let PeerChanged::Done(peer) = &changed {
            self.book.put(peer);
            if peer.status != PeerStatus::Active {
                self.take_down(url).await;
            }
            self.due.notify_one();
        }
        Ok(changed)
    }

    /// Forgets a peer and what it sold, on the operator's word.
    ///
    /// # Errors
    /// The store.
    pub async fn remove(&self, url: &str) -> Result<bool, StoreError> {
        let note = PeerNote {
            actor: "operator",
            action: "remove",
            detail: String::new(),
        };
        let was_there = self.store().forget_peer(url, Some(note), self.now()).await?;
        self.book.remove(url);
        // Also of one that is gone: an earlier try may have failed here.
        self.take_down(url).await;
        Ok(was_there)
    }

    async fn take_down(&self, url: &str) {
        match self.crawler.take_down(url).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(peer = %url, count, "What a hub sold here was taken down"),
            Err(error) => tracing::error!(
                peer = %url, error,
                "What a hub sold here was not taken down: say it again; it is not called, and ends within hours"
            ),
        }
    }

    /// Somebody names a hub. One that is known is not changed by it.
    ///
    /// # Errors
    /// The store.
    pub async fn announced(&self, url: &str) -> Result<PeerChanged, StoreError> {
        if let Some(known) = self.book.peer(url) {
            return Ok(PeerChanged::Done((*known).clone()));
        }
        let met = PeerChange::Met {
            found: Found::Announced,
            depth: 1,
        };
        let changed = self.store().change_peer(url, met, None, self.now()).await?;
        if let PeerChanged::Done(peer) = &changed {
            self.book.put(peer);
            self.due.notify_one();
        }
        Ok(changed)
    }

    /// A peer has proven that it says that something has changed there: it is asked soon, though not all the time. Whether it
    /// will be.
    ///
    /// # Errors
    /// The store.
    pub async fn crawl_early(&self, peer: &MarketPeer) -> Result<bool, StoreError> {
        let now = self.now();
        let wanted = peer
            .last_try
            .map_or(now, |tried| now.max(tried + EARLY_CRAWL_PAUSE));
        if wanted < peer.crawl_at {
            let change = PeerChange::CrawlAt(wanted);
            if let PeerChanged::Done(peer) = self.store().change_peer(&peer.url, change, None, now).await? {
                self.book.put(&peer);
            }
            self.due.notify_one();
        }
        Ok(true)
    }

    /// Seconds since the manifest of an active hub was good, of the one where that is longest.
    pub fn stalest_secs(&self) -> Option<i64> {
        let now = self.now();
        let last = self
            .book
            .active()
            .into_iter()
            .map(|peer| peer.last_crawl.unwrap_or(peer.first_seen));
        last.min().map(|last| now.millis_since(last) / 1_000)
    }

    /// How often crawling came to what, in this process.
    pub fn crawls(&self) -> BTreeMap<&'static str, u64> {
        self.crawls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests;
