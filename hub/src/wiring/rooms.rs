//! The rooms that know each other through the hub only, each put together from its seams.

use std::sync::Arc;

use aip_protocol::clock::Clock;
use aip_protocol::error::Refusal;
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::Domain;
use aip_registry::{Registry, Siblings};
use aip_relay::presence::Presence;
use aip_relay::relay::{Peers, Relay};

use super::identities::RegistryIdentities;
use super::{Seams, buckets, chance, registry_config, relay_config};
use crate::agent::{AgentSeams, HubAgent};
use crate::config::Settings;
use crate::federation::{self, Federation, Recipients};
use crate::hub_key;
use crate::market::peers::{KeysError, KeysFile};
use crate::market::providers::{Admission, HttpProviders, MarketProviders, PeerProviders, RelayProviders};
use crate::market::{self, MarketRoom};

/// Who exists at this hub.
pub(super) fn open_registry(
    settings: &Settings,
    domain: &Domain,
    seams: &Seams,
    siblings: Arc<dyn Siblings>,
) -> Arc<Registry> {
    let registry_seams = aip_registry::Seams {
        directory: seams.directory.clone(),
        grants: seams.grants.clone(),
        clock: seams.clock.clone(),
        siblings,
        challenge_key: hub_key::challenge_key(&seams.hub_key).into(),
        rng: Box::new(chance()),
    };
    Arc::new(Registry::new(
        domain.clone(),
        registry_config(settings),
        registry_seams,
    ))
}

/// Envelopes in; `outgoing` takes those for other hubs.
pub(super) fn open_relay(
    settings: &Settings,
    domain: &Domain,
    seams: &Seams,
    (presence, registry): (&Arc<Presence>, &Arc<Registry>),
    outgoing: Option<&Arc<federation::Outgoing>>,
) -> Result<Arc<Relay>, Refusal> {
    let config = relay_config(settings, domain.clone())?;
    let identities = RegistryIdentities::new(registry.clone(), config.quota);
    let relay_seams = aip_relay::relay::Seams {
        clock: seams.clock.clone(),
        identities: Arc::new(identities),
        store: seams.mailboxes.clone(),
        outbound: seams.outbound.clone(),
        presence: presence.clone(),
        buckets: buckets(seams.cluster.as_ref(), config.rate, &seams.clock),
        peers: outgoing.map(|outgoing| outgoing.clone() as Arc<dyn Peers>),
    };
    Ok(Relay::new(config, relay_seams, Box::new(chance())))
}

/// Hubs of other domains.
pub(super) fn federate(
    settings: &Settings,
    domain: &Domain,
    seams: &Seams,
    (presence, relay, agent): (&Arc<Presence>, &Arc<Relay>, &Arc<HubAgent>),
    outgoing: Arc<federation::Outgoing>,
) -> Arc<Federation> {
    let parts = federation::Parts {
        domain: domain.clone(),
        outgoing,
        store: seams.peers.clone(),
        exchange: seams.exchange.clone(),
        mailboxes: seams.mailboxes.clone(),
        presence: presence.clone(),
        relay: relay.clone(),
        agent: agent.clone(),
        hub_key: seams.hub_key.clone(),
        clock: seams.clock.clone(),
        is_shared: seams.cluster.is_some(),
    };
    Federation::assemble(settings, parts)
}

/// Where capabilities are sold. It is made also where the settings say that there is no market: what an earlier run set aside
/// goes back all the same.
pub(super) fn market(
    settings: &Settings,
    domain: &Domain,
    seams: &Seams,
    (registry, agent): (&Arc<Registry>, &Arc<HubAgent>),
) -> Result<Arc<MarketRoom>, KeysError> {
    let admission = Arc::new(Admission {
        key: Arc::new(seams.hub_key.clone()),
        hub: settings.public_url(),
        clock: seams.clock.clone(),
    });
    let http = HttpProviders::new(seams.exchange.clone(), admission.clone());
    let peer_keys = Arc::new(KeysFile::open(&settings.market_peers.keys_file)?);
    let hubs = PeerProviders::new(seams.exchange.clone(), admission, peer_keys.clone());
    let parts = market::Parts {
        domain: domain.clone(),
        store: seams.market.clone(),
        listings: seams.listings.clone(),
        registry: registry.clone(),
        providers: Arc::new(MarketProviders::new(http, RelayProviders::new(agent.clone()))),
        book: Arc::default(),
        peer_keys,
        hubs: Arc::new(hubs),
        exchange: seams.exchange.clone(),
        clock: seams.clock.clone(),
        hub_key: seams.hub_key.clone(),
        previous_hub_key: seams.previous_hub_key.clone(),
        // As what can be paused is this process's alone.
        is_shared: seams.pause.is_none(),
        rng: Box::new(chance()),
        references: Box::new(chance()),
        pauses: Box::new(chance()),
    };
    Ok(Arc::new(MarketRoom::open(settings, parts)))
}

/// The hub's own agent, and whom it can write to. `keys` are the hub's key and the one before it.
pub(super) fn own_agent(
    domain: &Domain,
    keys: (SigningKey, Option<SigningKey>),
    registry: &Arc<Registry>,
    relay: &Arc<Relay>,
    clock: &Arc<dyn Clock>,
) -> Result<(Arc<HubAgent>, Arc<Recipients>), Refusal> {
    let recipients = Arc::new(Recipients::new(registry.clone()));
    let seams = AgentSeams {
        hub_key: Arc::new(keys.0),
        previous_key: keys.1,
        registry: registry.clone(),
        relay: relay.clone(),
        recipients: recipients.clone(),
        clock: clock.clone(),
        rng: Box::new(chance()),
    };
    Ok((Arc::new(HubAgent::new(domain, seams)?), recipients))
}
