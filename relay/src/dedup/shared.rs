//! The part of the dedup window that the processes of one hub share: a fast path, and never the authority.

use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use crate::mailbox::Route;

#[cfg(feature = "testsuite")]
pub mod memory;
#[cfg(feature = "testsuite")]
pub mod suite;

/// An accepted envelope, as processes of one hub tell each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// SHA-256 of the envelope's JCS bytes.
    pub digest: [u8; 32],
    /// Inclusive; at most [`crate::limits::DEDUP_LIFE_SECS`] ahead.
    pub until: Timestamp,
    /// What the first answer said.
    pub seq: Option<u64>,
    /// What the first answer said.
    pub route: Route,
}

/// What the processes of a hub remember together, to spare a question to the store. It may forget at any time and
/// never fails; the store is the authority.
#[async_trait]
pub trait SharedWindow: Send + Sync + std::fmt::Debug {
    /// What some process has noted under `key` and is not over; `None` also when nobody can be asked. Answers within a
    /// bounded time.
    async fn recall(&self, key: [u8; 16]) -> Option<Accepted>;

    /// Tells the others, until [`Accepted::until`]. To be called when the acceptance is durable. Never blocks; what
    /// does not fit is dropped.
    fn note(&self, key: [u8; 16], accepted: Accepted);
}

/// The window of a process that shares none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unshared;

#[async_trait]
impl SharedWindow for Unshared {
    async fn recall(&self, _key: [u8; 16]) -> Option<Accepted> {
        None
    }

    fn note(&self, _key: [u8; 16], _accepted: Accepted) {}
}
