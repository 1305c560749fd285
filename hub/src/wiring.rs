//! Plugs the rooms together: the one place where an [`App`] is built, for the process and for tests alike.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use actix_web::web::Data;
use aip_catalog::{Catalog, CatalogError, CatalogOptions, NoTrust};
use aip_cluster::Cluster;
use aip_embed::OptionsError;
use aip_federation::egress::{
    EgressError, Exchange, GuardedClient, Limits, Outbound, Policy, SystemResolver,
};
use aip_federation::peers::FederationStore;
use aip_market::store::{MarketStore, MemoryMarket};
use aip_protocol::clock::Clock;
use aip_protocol::error::Refusal;
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::Domain;
use aip_registry::listings::Listings;
use aip_registry::{AloneSiblings, Directory, Grants, MemoryStore, Registry, RegistryConfig, Siblings};
use aip_relay::admission::Blocklist;
use aip_relay::dedup::{SharedWindow, Unshared};
use aip_relay::mailbox::memory::MemoryMailboxes;
use aip_relay::mailbox::{Epoch, MailboxStore, Quota};
use aip_relay::neighbours::{Alone, Ears, Neighbours};
use aip_relay::presence::Presence;
use aip_relay::rate::{Rate, SenderBuckets, SenderRates};
use aip_relay::relay::RelayConfig;
use rand::rngs::SysRng;
use rand_core::{CryptoRng, Rng as _, UnwrapErr};

use crate::app::{App, BuildError, Parts};
use crate::catalog::{Embedders, Models, ProviderKeys, Quarantine, StoredSource, embedders};
use crate::clock::{self, SystemClock};
use crate::config::{Registration, Secret, Settings};
use crate::datadir::{DataDir, DataDirError};
use crate::federation;
use crate::hub_key::{self, HubKeyError};
use crate::lifecycle::Lifecycle;
use crate::pause::{PausableMailboxes, PausableMarket, PausableNames, PausablePeers, Pause};
use crate::stores::{self, Stores};

mod hub;
mod identities;
mod rooms;

pub use hub::Hub;
use rooms::{federate, market, open_registry, open_relay, own_agent};

const DAY_SECS: u64 = 86_400;

/// Why a hub cannot be put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The data folder.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The hub's key.
    #[error(transparent)]
    HubKey(#[from] HubKeyError),
    /// A store.
    #[error(transparent)]
    Stores(#[from] stores::OpenError),
    /// The way out.
    #[error("the client for direct endpoints cannot be set up")]
    Egress(#[from] EgressError),
    /// The index of listings.
    #[error("the index of listings cannot be opened; it can be deleted, the next start makes it anew")]
    Catalog(#[from] CatalogError),
    /// A model for searches by meaning.
    #[error("a model for searches cannot be set up")]
    Embedder(#[from] OptionsError),
    /// The keys of this hub's accounts at other hubs.
    #[error("`market_peers.keys_file`: {0}")]
    PeerKeys(#[from] crate::market::peers::KeysError),
    /// The way to the other processes.
    #[error(transparent)]
    Cluster(#[from] aip_cluster::ConnectError),
    /// A setting that [`Settings::check`] would have refused.
    #[error("a setting cannot be used: {0}")]
    Setting(#[from] Refusal),
    /// A bug.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// What a hub is plugged into: production and tests differ by this value only.
#[derive(Debug)]
pub struct Seams {
    /// Now.
    pub clock: Arc<dyn Clock>,
    /// Agents and their histories.
    pub directory: Arc<dyn Directory>,
    /// Tokens and invites.
    pub grants: Arc<dyn Grants>,
    /// What agents offer, and who hands it in for them.
    pub listings: Arc<dyn Listings>,
    /// Where the index of listings lies; `None` keeps it in memory.
    pub index_dir: Option<PathBuf>,
    /// What finds listings by their meaning.
    pub embedders: Embedders,
    /// Envelopes.
    pub mailboxes: Arc<dyn MailboxStore>,
    /// The way out to direct endpoints.
    pub outbound: Arc<dyn Outbound>,
    /// The way out to other hubs.
    pub exchange: Arc<dyn Exchange>,
    /// What is known and decided about other hubs.
    pub peers: Arc<dyn FederationStore>,
    /// Accounts, channels, calls and receipts.
    pub market: Arc<dyn MarketStore>,
    /// The hub's own key.
    pub hub_key: SigningKey,
    /// The one before it.
    pub previous_hub_key: Option<SigningKey>,
    /// What opens the operator's door.
    pub operator_token: Secret,
    /// The stores as a whole, for backups; `None` where everything is in memory.
    pub stores: Option<Arc<Stores>>,
    /// The other processes; `None` where there are none, or no way to them.
    pub cluster: Option<Arc<Cluster>>,
    /// Holds the stores still; `None` where they are not this process's alone.
    pub pause: Option<Arc<Pause>>,
}

impl Seams {
    /// A hub that keeps what it keeps where the settings say: in the data folder, or on engines.
    ///
    /// # Errors
    /// The folder, a store or the HTTP client cannot be used.
    pub async fn stored(settings: &Settings, folder: &DataDir, models: Models) -> Result<Self, StartError> {
        let mut rng = chance();
        let operator_token = match &settings.http.operator_token {
            token if token.is_empty() => folder.operator_token(&mut rng)?,
            token => token.clone(),
        };
        let registry = stores::open_registry(settings, folder).await?;
        let hub_key = if settings.engines.registry_url.is_empty() {
            hub_key::own(settings, folder, &mut rng)?
        } else {
            hub_key::shared(settings, folder, &registry, &mut rng).await?
        };
        let clock = Arc::new(SystemClock::new(None));
        let cluster = stores::redis::connect(settings, &hub_key, clock.clone()).await?;
        let window: Arc<dyn SharedWindow> = match &cluster {
            Some(cluster) => cluster.clone(),
            None => Arc::new(Unshared),
        };
        let stores = Arc::new(Stores::complete(settings, folder, registry, window).await?);
        let shared = stores::redis::warnings(settings, &hub_key).await;
        for sentence in settings
            .notes()
            .into_iter()
            .chain(stores.warnings())
            .chain(shared)
        {
            tracing::warn!("{sentence}");
        }
        let mailboxes = stores.mailboxes.store();
        keep_steady(&clock, &*mailboxes);
        let client = Arc::new(guarded_client(settings)?);
        let seams = Self {
            clock,
            directory: stores.registry.clone(),
            grants: stores.registry.clone(),
            listings: stores.registry.clone(),
            index_dir: Some(index_dir(settings, folder)),
            embedders: embedders(&settings.search, models)?,
            mailboxes,
            outbound: client.clone(),
            exchange: client,
            peers: stores.registry.clone(),
            market: stores.registry.clone(),
            previous_hub_key: hub_key::previous(&hub_key::file(settings, folder))?,
            hub_key,
            operator_token,
            cluster,
            pause: None,
            stores: Some(stores.clone()),
        };
        Ok(if stores.are_embedded() {
            seams.pausable(stores.registry.clone())
        } else {
            seams
        })
    }

    /// The same, with everything behind the gate of a pause. `names` is both of the registry's stores.
    fn pausable<S: Directory + Grants + Listings + FederationStore + 'static>(self, names: Arc<S>) -> Self {
        let pause = Arc::new(Pause::new(self.clock.clone()));
        let peers = Arc::new(PausablePeers::new(names.clone(), pause.clone()));
        let names = Arc::new(PausableNames::new(names, pause.clone()));
        Self {
            directory: names.clone(),
            grants: names.clone(),
            listings: names,
            peers,
            market: Arc::new(PausableMarket::new(self.market, pause.clone())),
            mailboxes: Arc::new(PausableMailboxes::new(self.mailboxes, pause.clone())),
            pause: Some(pause),
            ..self
        }
    }

    /// A hub that forgets everything, with the time of `clock`: for tests.
    ///
    /// # Errors
    /// The HTTP client cannot be set up.
    pub fn in_memory(settings: &Settings, clock: Arc<dyn Clock>) -> Result<Self, StartError> {
        let mut rng = chance();
        let client = Arc::new(guarded_client(settings)?);
        let names = Arc::new(MemoryStore::new());
        let seams = Self {
            clock,
            directory: names.clone(),
            grants: names.clone(),
            listings: names.clone(),
            index_dir: None,
            embedders: Embedders::default(),
            mailboxes: Arc::new(MemoryMailboxes::new(Epoch::from_random(rng.next_u64()))),
            outbound: client.clone(),
            exchange: client,
            peers: names.clone(),
            market: Arc::new(MemoryMarket::new()),
            hub_key: SigningKey::generate(&mut rng),
            previous_hub_key: None,
            operator_token: settings.http.operator_token.clone(),
            stores: None,
            cluster: None,
            pause: None,
        };
        Ok(seams.pausable(names))
    }
}

/// Opens a hub on its data folder, which the caller has locked.
///
/// # Errors
/// What cannot be used, and how to mend it.
pub async fn open(settings: Settings, folder: &DataDir, models: Models) -> Result<Hub, StartError> {
    let seams = Seams::stored(&settings, folder, models).await?;
    build(settings, seams)
}

/// Builds a hub from checked settings and its seams.
///
/// # Errors
/// A setting that [`Settings::check`] would have refused, or a bug.
pub fn build(settings: Settings, seams: Seams) -> Result<Hub, StartError> {
    let life = Lifecycle::new();
    let domain = Domain::parse(&settings.hub.domain)?;
    let (neighbours, siblings) = others(seams.cluster.as_ref());
    let presence = Presence::among(neighbours, seams.mailboxes.clone());
    if let Some(stores) = &seams.stores {
        stores.bell.hang(&presence, seams.clock.clone());
    }
    let registry = open_registry(&settings, &domain, &seams, siblings);
    if let Some(cluster) = &seams.cluster {
        hear(cluster, &presence, &registry);
    }
    let outgoing = federation::outgoing(&settings, &domain, seams.peers.clone(), seams.clock.clone());
    let relay = open_relay(
        &settings,
        &domain,
        &seams,
        (&presence, &registry),
        outgoing.as_ref(),
    )?;
    let keys = (seams.hub_key.clone(), seams.previous_hub_key.clone());
    let (agent, recipients) = own_agent(&domain, keys, &registry, &relay, &seams.clock)?;
    let federation = outgoing.map(|outgoing| {
        let federation = federate(&settings, &domain, &seams, (&presence, &relay, &agent), outgoing);
        recipients.ask(&federation);
        federation
    });
    let room = market(&settings, &domain, &seams, (&registry, &agent))?;
    let market = settings.market.enabled.then(|| room.clone());
    let quarantine = Quarantine::new(&settings.search.quarantine);
    let source = StoredSource::new(seams.listings.clone(), registry.clone()).behind(quarantine);
    let options = catalog_options(&settings, seams.index_dir, &seams.hub_key);
    let catalog = open_catalog(options, source, seams.embedders, &seams.clock)?;
    let app = App::new(Parts {
        settings: Arc::new(settings),
        domain,
        clock: seams.clock,
        registry,
        listings: seams.listings,
        catalog,
        provider_keys: ProviderKeys::new(Box::new(chance())),
        relay,
        store: seams.mailboxes,
        presence,
        federation,
        market,
        hub_key: Arc::new(seams.hub_key),
        previous_hub_key: seams.previous_hub_key.map(Arc::new),
        agent,
        operator_token: seams.operator_token,
        stores: seams.stores,
        cluster: seams.cluster,
        pause: seams.pause,
        run: chance().next_u32(),
        stop: life.closing_token(),
    })?;
    Ok(Hub {
        app: Data::new(app),
        life,
        market: room,
    })
}

/// The catalog, which trusts nobody more than others.
fn open_catalog(
    options: CatalogOptions,
    source: StoredSource,
    embedders: Embedders,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<Catalog>, CatalogError> {
    let Embedders { wished, former } = embedders;
    let (source, clock) = (Arc::new(source), clock.clone());
    Catalog::open_in_place_of(options, source, wished, former, Arc::new(NoTrust), clock)
}

/// The other processes of the hub, for sessions and for names.
fn others(cluster: Option<&Arc<Cluster>>) -> (Arc<dyn Neighbours>, Arc<dyn Siblings>) {
    match cluster {
        Some(cluster) => (cluster.clone(), cluster.clone()),
        None => (Arc::new(Alone), Arc::new(AloneSiblings)),
    }
}

/// Lets this process hear what the others say.
fn hear(cluster: &Cluster, presence: &Arc<Presence>, registry: &Arc<Registry>) {
    let ears: Weak<dyn Ears> = Arc::downgrade(&(presence.clone() as Arc<dyn Ears>));
    cluster.listen(ears);
    cluster.inform(Arc::downgrade(registry));
}

/// What senders may send, counted together with the other processes where there are any.
fn buckets(cluster: Option<&Arc<Cluster>>, rate: Rate, clock: &Arc<dyn Clock>) -> Arc<dyn SenderBuckets> {
    match cluster {
        Some(cluster) => Arc::new(cluster.buckets(rate)),
        None => Arc::new(SenderRates::new(rate, clock.clone())),
    }
}

/// The operating system's randomness: the root of all chance in the process.
fn chance() -> impl CryptoRng + Send + 'static {
    UnwrapErr(SysRng)
}

/// Keeps the clock no earlier than what the mailboxes have seen; says so when the machine's clock is behind that.
fn keep_steady(clock: &SystemClock, mailboxes: &dyn MailboxStore) {
    let Some(mark) = mailboxes.clock_high_water() else {
        return;
    };
    clock.raise(mark);
    if let Some(slip) = clock::behind(clock::wall(), mark) {
        tracing::warn!(
            behind_secs = slip.as_secs(),
            "The machine's clock is {} s behind the latest time that the mailboxes have seen, {mark}. The hub's time \
             goes on from there at half speed until the clock has caught up; set the clock, or if it is right now, see \
             `aip-hub doctor`",
            slip.as_secs()
        );
    }
}

fn guarded_client(settings: &Settings) -> Result<GuardedClient, EgressError> {
    let egress = &settings.egress;
    let policy = Policy {
        allow_http: egress.allow_http,
        allowed_private_ranges: egress.allowed_private_ranges.clone(),
        connect_timeout: Duration::from_secs(egress.connect_timeout_secs),
    };
    GuardedClient::new(policy, Arc::new(SystemResolver::default()))
}

/// Where the index of listings lies.
pub(crate) fn index_dir(settings: &Settings, folder: &DataDir) -> PathBuf {
    if settings.search.index_dir.as_os_str().is_empty() {
        folder.index()
    } else {
        settings.search.index_dir.clone()
    }
}

fn catalog_options(settings: &Settings, dir: Option<PathBuf>, hub_key: &SigningKey) -> CatalogOptions {
    let search = &settings.search;
    CatalogOptions {
        dir,
        fusion: search.fusion(),
        depth: usize::try_from(search.depth).unwrap_or(usize::MAX),
        cursor_key: hub_key::cursor_key(hub_key),
        embed_timeout: Duration::from_millis(search.embed_timeout_millis),
    }
}

fn registry_config(settings: &Settings) -> RegistryConfig {
    let registry = &settings.registry;
    RegistryConfig {
        policy: match settings.hub.registration {
            Registration::Open => aip_registry::Policy::Open,
            Registration::Invite => aip_registry::Policy::Invite,
            Registration::Closed => aip_registry::Policy::Closed,
        },
        reserved_names: settings
            .hub
            .reserved_names
            .iter()
            .cloned()
            .collect::<BTreeSet<_>>(),
        allow_http_endpoints: settings.egress.allow_http,
        cache_agents_max: registry.cache_agents_max,
        token_lifetime_secs: registry.token_lifetime_secs,
        challenge_lifetime_secs: registry.challenge_lifetime_secs,
    }
}

fn relay_config(settings: &Settings, domain: Domain) -> Result<RelayConfig, Refusal> {
    let relay = &settings.relay;
    let at_least_one = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
    Ok(RelayConfig {
        domain,
        envelope_bytes_max: relay.envelope_bytes_max,
        batch_envelopes_max: relay.batch_envelopes_max,
        batch_bytes_max: relay.batch_bytes_max,
        rate: Rate {
            messages_per_sec: at_least_one(relay.sender_messages_per_sec),
            burst_messages: at_least_one(relay.sender_burst_messages),
        },
        quota: Quota {
            mailbox_messages: relay.mailbox_messages_max,
            mailbox_bytes: relay.mailbox_bytes_max,
            sender_messages: relay.mailbox_messages_per_sender_max,
        },
        retention: Duration::from_secs(u64::from(relay.retention_days) * DAY_SECS),
        blocklist: Blocklist::parse(relay.blocked_senders.iter().map(String::as_str))?,
        direct: Limits {
            timeout: Duration::from_secs(relay.direct_timeout_secs),
            answer_bytes_max: settings.egress.answer_bytes_max,
        },
    })
}
