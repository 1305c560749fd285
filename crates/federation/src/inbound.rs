//! What comes in from peers. [`Local`] is the seam to this hub's own agents.

use std::fmt::Debug;

use aip_protocol::error::ErrorCode;
use aip_protocol::name::Did;
use aip_protocol::peer::AdmittedItem;
use async_trait::async_trait;
use bytes::Bytes;

/// What became of one item at this hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reception {
    /// Durable: in the recipient's mailbox, or taken by its endpoint.
    Stored,
    /// It was here before.
    Duplicate,
    /// Refused for good.
    Refused(ErrorCode),
    /// Not now; the peer comes again after so many seconds.
    Retry {
        /// Why.
        code: ErrorCode,
        /// When to come again.
        after_secs: u64,
    },
}

/// This hub's own agents.
#[async_trait]
pub trait Local: Debug + Send + Sync {
    /// Delivers an item whose sender's signature was verified: recipient known and not ended, sender not blocked, quota,
    /// dedup, then its endpoint or its mailbox. `wire` is the envelope's canonical form. What fails here is
    /// [`Reception::Retry`] with `unavailable`.
    async fn deliver(&self, item: AdmittedItem, wire: Bytes) -> Reception;

    /// Whether an agent of this hub exists: cheap, asked before anything is fetched for an item.
    async fn knows(&self, did: &Did) -> bool;
}
