//! The seam to other processes of the same hub: what registries over one store must hear of each other.
//!
//! The store is the authority for everything; what passes here keeps caches fresh and spares the store a question. News
//! may be lost, so a cache entry lives [`crate::limits::CACHE_SECS`] at most, and whoever implements this calls
//! [`crate::Registry::forget_all`] when news may have been lost.

use std::fmt;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use crate::secret::SecretHash;

/// Whether a challenge was answered before, as far as the processes know together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spend {
    /// It was not, and from now on it was.
    Fresh,
    /// It was.
    Spent,
    /// Nobody could be asked; the store knows.
    Unknown,
}

/// The way to the other processes. Never fails; what cannot be done in a bounded time is left out and counted.
#[async_trait]
pub trait Siblings: fmt::Debug + Send + Sync {
    /// An agent was registered or changed here, durably: the others forget what they hold of it
    /// ([`crate::Registry::forget`]). Never blocks.
    fn changed(&self, did: &Did);

    /// Spends a challenge, which is remembered until `until`. Of several processes that spend one challenge exactly one
    /// learns that it was fresh.
    async fn spend(&self, challenge: &SecretHash, until: Timestamp) -> Spend;
}

/// The only process of its hub.
#[derive(Debug, Clone, Copy, Default)]
pub struct AloneSiblings;

#[async_trait]
impl Siblings for AloneSiblings {
    fn changed(&self, _did: &Did) {}

    async fn spend(&self, _challenge: &SecretHash, _until: Timestamp) -> Spend {
        Spend::Unknown
    }
}
