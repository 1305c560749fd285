//! The front of the room: what strangers and operators may ask, and the rules for it.

mod admin;
mod cache;
mod challenge;
mod history;
mod register;
mod resolve;
mod signin;

use std::collections::BTreeSet;
use std::sync::Arc;

use aip_protocol::clock::Clock;
use aip_protocol::name::{Did, Domain, Name};
use aip_protocol::time::Timestamp;
use moka::future::Cache;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::config::RegistryConfig;
use crate::directory::Directory;
use crate::grants::{Grants, TokenRecord};
use crate::limits::CACHE_SECS;
use crate::secret::{Chance, SecretHash};
use crate::siblings::Siblings;
use cache::AgentCache;
use challenge::ChallengeMint;

pub use admin::NewInvite;
pub use challenge::{Challenge, SocketChallenge};
pub use history::HistoryPage;
pub use register::{Operated, Registered};
pub use signin::IssuedToken;

/// What a registry is plugged into.
pub struct Seams {
    /// Agents and histories.
    pub directory: Arc<dyn Directory>,
    /// Tokens and invites.
    pub grants: Arc<dyn Grants>,
    /// Now.
    pub clock: Arc<dyn Clock>,
    /// Other processes over the same stores.
    pub siblings: Arc<dyn Siblings>,
    /// What challenges are recognised by; the same in every process of the hub, and known to nobody else.
    pub challenge_key: Zeroizing<[u8; 32]>,
    /// Chance, for tokens, invites and challenges.
    pub rng: Box<dyn CryptoRng + Send>,
}

impl std::fmt::Debug for Seams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seams")
            .field("directory", &self.directory)
            .field("grants", &self.grants)
            .field("siblings", &self.siblings)
            .finish_non_exhaustive()
    }
}

/// Who exists at this hub.
///
/// Every method takes what a caller sent, refuses with a code and a sentence, and keeps the cache
/// in step with the store. Share it behind an `Arc`.
#[derive(Debug)]
pub struct Registry {
    domain: Domain,
    config: RegistryConfig,
    reserved: BTreeSet<Name>,
    agents: AgentCache,
    directory: Arc<dyn Directory>,
    grants: Arc<dyn Grants>,
    siblings: Arc<dyn Siblings>,
    /// Tokens that were looked up lately. A token never changes; whether it is still good is judged
    /// anew each time.
    tokens: Cache<SecretHash, TokenRecord>,
    mint: ChallengeMint,
    clock: Arc<dyn Clock>,
    chance: Chance,
}

impl Registry {
    /// The registry of `domain`. Configured reserved names that are no names reserve nothing.
    pub fn new(domain: Domain, config: RegistryConfig, seams: Seams) -> Self {
        let chance = Chance::new(seams.rng);
        Self {
            reserved: config
                .reserved_names
                .iter()
                .filter_map(|text| Name::parse(text).ok())
                .collect(),
            agents: AgentCache::new(
                domain.clone(),
                Arc::clone(&seams.directory),
                Arc::clone(&seams.siblings),
                config.cache_agents_max,
            ),
            tokens: Cache::builder()
                .max_capacity(config.cache_agents_max)
                .time_to_live(std::time::Duration::from_secs(CACHE_SECS))
                .build(),
            mint: ChallengeMint::new(seams.challenge_key, config.challenge_lifetime_secs),
            domain,
            config,
            directory: seams.directory,
            grants: seams.grants,
            siblings: seams.siblings,
            clock: seams.clock,
            chance,
        }
    }

    /// The hub's domain.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Another process has changed this agent: what is held of it here is read anew.
    pub async fn forget(&self, did: &Did) {
        self.agents.forget(did).await;
    }

    /// News of other processes may have been lost: every agent is read anew.
    pub fn forget_all(&self) {
        self.agents.forget_all();
    }

    /// Now, to the whole millisecond that the stores keep.
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.clock.now().unix_millis())
    }
}
