//! Makes the room's parts from the settings and what the hub has.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aip_federation::delivery::{Delivery, DeliveryConfig, Seams};
use aip_federation::directory::{Directory, DirectorySeams, DirectorySettings, StaticPeer};
use aip_federation::egress::{Exchange, Limits};
use aip_federation::identities::{IdentityLimits, IdentitySeams, RemoteIdentities};
use aip_federation::inbound::{self, Inbound, InboundSettings};
use aip_federation::peers::FederationStore;
use aip_federation::policy::{Mode, Policy, QueueCaps};
use aip_federation::signing::Signer;
use aip_protocol::clock::Clock;
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::Domain;
use aip_relay::mailbox::MailboxStore;
use aip_relay::outbox::StoredOutboxes;
use aip_relay::presence::Presence;
use aip_relay::relay::{OwnAgents, Relay};
use rand::rngs::SysRng;
use rand_core::{Rng as _, UnwrapErr};

use super::bounces::AgentBounces;
use super::incoming::{Alive, KeptStatuses};
use super::peers::{Outgoing, Whereabouts};
use super::{Federation, reports};
use crate::agent::HubAgent;
use crate::config::{FederationSettings, PeerPolicy, Settings, static_peer};

/// Signatures of peers and of their agents that are verified at once: half of what a small machine has, so that its own agents
/// go first.
const VERIFICATIONS_MAX: usize = 2;

/// What federation is made of.
#[derive(Debug)]
pub struct Parts {
    /// The domain this hub speaks for.
    pub domain: Domain,
    /// What the relay asks before it queues.
    pub outgoing: Arc<Outgoing>,
    /// What is known and decided about peers.
    pub store: Arc<dyn FederationStore>,
    /// The way out.
    pub exchange: Arc<dyn Exchange>,
    /// Where mail waits.
    pub mailboxes: Arc<dyn MailboxStore>,
    /// Who is connected.
    pub presence: Arc<Presence>,
    /// This hub's own agents.
    pub relay: Arc<Relay>,
    /// Who tells senders of mail that comes back.
    pub agent: Arc<HubAgent>,
    /// The hub's key.
    pub hub_key: SigningKey,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Whether the hub has several processes.
    pub is_shared: bool,
}

/// What the relay asks before it queues mail for other hubs; `None` where the hub does not federate.
pub fn outgoing(
    settings: &Settings,
    domain: &Domain,
    store: Arc<dyn FederationStore>,
    clock: Arc<dyn Clock>,
) -> Option<Arc<Outgoing>> {
    let policy = Arc::new(policy(&settings.federation, domain.clone()));
    settings
        .federation
        .enabled
        .then(|| Arc::new(Outgoing::new(store, policy, clock)))
}

impl Federation {
    /// Puts the parts together. It sends while [`Federation::run`] runs.
    pub fn assemble(settings: &Settings, parts: Parts) -> Arc<Self> {
        let policy = Arc::new(policy(&settings.federation, parts.domain.clone()));
        let directory = directory(settings, &parts);
        let identities = RemoteIdentities::new(
            IdentityLimits::default(),
            IdentitySeams {
                directory: directory.clone(),
                store: parts.store.clone(),
                exchange: parts.exchange.clone(),
                clock: parts.clock.clone(),
            },
        );
        let signer = Arc::new(Signer::new(
            parts.domain.clone(),
            parts.hub_key.clone(),
            parts.clock.clone(),
            Box::new(UnwrapErr(SysRng)),
        ));
        let outbox = Arc::new(StoredOutboxes::new(
            parts.mailboxes.clone(),
            parts.presence.clone(),
            parts.clock.clone(),
        ));
        let seams = Seams {
            outbox: outbox.clone(),
            directory: Arc::new(Whereabouts {
                directory: directory.clone(),
                store: parts.store.clone(),
                policy: policy.clone(),
            }),
            exchange: parts.exchange.clone(),
            store: parts.store.clone(),
            signer: signer.clone(),
            bounces: Arc::new(AgentBounces(parts.agent.clone())),
            clock: parts.clock.clone(),
        };
        let config = delivery_config(&settings.federation, parts.is_shared);
        let delivery = Delivery::new(config, seams, Box::new(UnwrapErr(SysRng)));
        parts.outgoing.wake(&delivery);
        let inbound_settings = InboundSettings {
            policy: policy.clone(),
            envelope_bytes_max: settings.relay.envelope_bytes_max,
            verifications_max: VERIFICATIONS_MAX,
        };
        let heard = Alive(Arc::downgrade(&delivery));
        let inbound_seams = inbound_seams(&parts, &directory, &identities, outbox, heard);
        let inbound = Inbound::new(inbound_settings, inbound_seams);
        Arc::new(Self {
            store: parts.store,
            policy,
            directory,
            identities,
            delivery,
            inbound,
            exchange: parts.exchange,
            signer,
            outgoing: parts.outgoing,
            asked: reports::asked(),
            clock: parts.clock,
        })
    }
}

fn inbound_seams(
    parts: &Parts,
    directory: &Arc<Directory>,
    identities: &Arc<RemoteIdentities>,
    outbox: Arc<StoredOutboxes>,
    heard: Alive,
) -> inbound::Seams {
    inbound::Seams {
        documents: Arc::new(directory.clone()),
        senders: Arc::new(identities.clone()),
        store: parts.store.clone(),
        local: Arc::new(OwnAgents::new(parts.relay.clone())),
        outbox,
        statuses: Arc::new(KeptStatuses(parts.mailboxes.clone())),
        heard: Arc::new(heard),
        clock: parts.clock.clone(),
    }
}

fn directory(settings: &Settings, parts: &Parts) -> Arc<Directory> {
    let configured = settings.federation.static_peers.iter();
    let static_peers: BTreeMap<_, _> = configured
        .filter_map(|entry| static_peer(entry))
        .map(|(domain, hub)| {
            (
                domain,
                StaticPeer {
                    hub,
                    keys: Vec::new(),
                },
            )
        })
        .collect();
    let directory_settings = DirectorySettings {
        allow_http: settings.egress.allow_http,
        static_peers,
        ..DirectorySettings::new(parts.domain.clone())
    };
    let seams = DirectorySeams {
        store: parts.store.clone(),
        exchange: parts.exchange.clone(),
        clock: parts.clock.clone(),
    };
    Directory::new(directory_settings, seams, Box::new(UnwrapErr(SysRng)))
}

fn policy(federation: &FederationSettings, own: Domain) -> Policy {
    let domains = |texts: &[String]| texts.iter().filter_map(|text| Domain::parse(text).ok()).collect();
    Policy {
        own,
        mode: match federation.policy {
            PeerPolicy::Open => Mode::Open,
            PeerPolicy::Allowlist => Mode::Allowlist,
            PeerPolicy::Blocklist => Mode::Blocklist,
            PeerPolicy::Limited => Mode::Limited,
        },
        allowed: domains(&federation.allowed),
        blocked: domains(&federation.blocked),
        ramp: federation.ramp,
        items_per_sec: federation.peer_items_per_sec,
        bytes_per_sec: federation.peer_bytes_per_sec,
        queue: QueueCaps {
            items: federation.queue_messages_max,
            bytes: federation.queue_bytes_max,
            items_per_sender: federation.queue_messages_per_sender_max,
        },
    }
}

fn delivery_config(federation: &FederationSettings, is_shared: bool) -> DeliveryConfig {
    // Unique per run: what an earlier run of this process left is not ours.
    let holder = format!("{:016x}", UnwrapErr(SysRng).next_u64());
    let config = DeliveryConfig::new(holder);
    DeliveryConfig {
        requests_max: federation.requests_max,
        push: Limits {
            timeout: Duration::from_secs(federation.push_timeout_secs),
            ..config.push
        },
        linger_poll: config.linger_poll.filter(|_| is_shared),
        ..config
    }
}
