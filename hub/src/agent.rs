//! The hub's own agent, `did:aip:{domain}:hub` (`docs/protocol/hub-agent.md`): an agent like any other, whose name is
//! reserved for everybody else, and whose keys the hub holds.
//!
//! It sends ([`HubAgent::send`]): answers, and whatever else the hub has to say to an agent. What it sends goes through
//! the same door as a local sender's envelope, and has an id that follows from a key of the caller's choice, so that
//! what is said again is a duplicate. And it receives ([`run`]): its mail is admitted, deduplicated and stored like all
//! mail, and read here. A message is settled only when its answer is stored. And it asks ([`HubAgent::ask`]): a question
//! goes out, and its answer is waited for.

use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, PoisonError};

use aip_protocol::clock::Clock;
use aip_protocol::envelope::Envelope;
use aip_protocol::identity::Identity;
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::{Did, Domain, HUB_NAME, Handle, Name};
use aip_protocol::seal::OpenError;
use aip_registry::Registry;
use aip_relay::rate::SenderRates;
use aip_relay::relay::{Relay, SourceError};
use async_trait::async_trait;
use rand_core::CryptoRng;

pub use self::ask::{AskError, Hearing, Questions};
pub use self::identity::{Established, IdentityError};
pub use self::keys::AgentKeys;
pub use self::outgoing::{Outcome, Outgoing, message_id};
pub use self::receive::run;
pub use self::stats::{AgentStats, Fate};

mod answer;
mod ask;
mod identity;
mod keys;
pub mod limits;
mod offer;
mod outgoing;
mod receive;
mod search;
mod stats;

/// Finds who a message is for. [`Registry`] knows the agents of this hub.
#[async_trait]
pub trait Recipients: Send + Sync + Debug {
    /// The agent's identity; `None` when there is no such agent.
    ///
    /// # Errors
    /// It cannot be told now.
    async fn identity(&self, did: &Did) -> Result<Option<Identity>, SourceError>;
}

#[async_trait]
impl Recipients for Registry {
    async fn identity(&self, did: &Did) -> Result<Option<Identity>, SourceError> {
        let agent = self.resolve(did).await;
        let agent = agent.map_err(|error| SourceError(error.into()))?;
        Ok(agent.map(|agent| agent.identity.clone()))
    }
}

/// What a [`HubAgent`] is plugged into.
pub struct AgentSeams {
    /// The hub's key: the agent's keys follow from it.
    pub hub_key: Arc<SigningKey>,
    /// The one before, while the agent's history may still stand at its keys.
    pub previous_key: Option<SigningKey>,
    /// Where the agent is registered.
    pub registry: Arc<Registry>,
    /// Where its messages go out.
    pub relay: Arc<Relay>,
    /// Who they are for.
    pub recipients: Arc<dyn Recipients>,
    /// Now.
    pub clock: Arc<dyn Clock>,
    /// Chance, for sealing.
    pub rng: Box<dyn CryptoRng + Send>,
}

impl Debug for AgentSeams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSeams").finish_non_exhaustive()
    }
}

/// The hub's own agent. Share it behind an `Arc`.
pub struct HubAgent {
    did: Did,
    keys: AgentKeys,
    former: Option<AgentKeys>,
    registry: Arc<Registry>,
    relay: Arc<Relay>,
    recipients: Arc<dyn Recipients>,
    clock: Arc<dyn Clock>,
    rng: Mutex<Box<dyn CryptoRng + Send>>,
    requests: SenderRates,
    questions: Questions,
    stats: AgentStats,
}

impl HubAgent {
    /// The agent of the hub of `domain`. Until [`HubAgent::establish`] has seen to its identity, what it sends is refused.
    ///
    /// # Errors
    /// A bug: its name is none.
    pub fn new(domain: &Domain, mut seams: AgentSeams) -> Result<Self, aip_protocol::error::Refusal> {
        let handle = Handle {
            name: Name::parse(HUB_NAME)?,
            domain: domain.clone(),
        };
        Ok(Self {
            did: handle.did(),
            keys: AgentKeys::derive(&seams.hub_key),
            former: seams.previous_key.as_ref().map(AgentKeys::derive),
            registry: seams.registry,
            relay: seams.relay,
            recipients: seams.recipients,
            requests: SenderRates::new(limits::REQUEST_RATE, seams.clock.clone()),
            questions: Questions::new(seams.rng.next_u64()),
            clock: seams.clock,
            rng: Mutex::new(seams.rng),
            stats: AgentStats::default(),
        })
    }

    /// Who it is.
    pub fn did(&self) -> &Did {
        &self.did
    }

    /// Counts since the start.
    pub fn stats(&self) -> &AgentStats {
        &self.stats
    }

    /// What a message to this agent says: UTF-8 JSON, as its sender sealed it.
    fn open(&self, envelope: &Envelope) -> Result<Vec<u8>, OpenError> {
        let keys = std::iter::once(&self.keys).chain(&self.former);
        let opened = keys.map(|keys| envelope.open_bytes(&keys.opening));
        opened.reduce(Result::or).unwrap_or(Err(OpenError::OtherKey))
    }

    /// Lends the source of chance to a function.
    fn with_rng<T>(&self, draw: impl FnOnce(&mut dyn CryptoRng) -> T) -> T {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        draw(&mut **rng)
    }
}

impl Debug for HubAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubAgent")
            .field("did", &self.did)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
