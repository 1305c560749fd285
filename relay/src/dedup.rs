//! The dedup window of spec §5: one envelope is accepted once, however often it is sent.
//!
//! A record lives until `created_at + W + S` (inclusive). Admission refuses a retry after that moment, so a
//! retry inside the legal interval always meets its record. Records lie in *buckets* as long as a record's
//! longest life: a look-up touches two of them, and a whole bucket is dropped at once when its time has
//! passed.

use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use crate::mailbox::{Route, StoreError};

pub(crate) mod book;
#[cfg(feature = "testsuite")]
pub mod suite;

/// An accepted envelope, as the window remembers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remember {
    /// `Envelope::dedup_key`.
    pub key: [u8; 16],
    /// SHA-256 of the envelope's JCS bytes.
    pub digest: [u8; 32],
    /// Inclusive; at most [`crate::limits::DEDUP_LIFE_SECS`] after `now`.
    pub until: Timestamp,
    /// The hub's (monotone) clock.
    pub now: Timestamp,
    /// What the first answer said.
    pub seq: Option<u64>,
    /// What the first answer said.
    pub route: Route,
}

/// What the window knows about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// The same envelope was accepted.
    Duplicate {
        /// What the first answer said.
        seq: Option<u64>,
        /// What the first answer said.
        route: Route,
    },
    /// Another envelope was accepted under this key.
    Reused,
}

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

/// Remembers accepted envelopes for as long as a retry is legal.
#[async_trait]
pub trait DedupWindow: Send + Sync {
    /// What is known of `key` at `now`; `None` means: not accepted, or forgotten by now.
    async fn seen(&self, key: [u8; 16], digest: [u8; 32], now: Timestamp)
    -> Result<Option<Seen>, StoreError>;

    /// Remembers, unless the key is known already: then says so and changes nothing. Durable when it returns.
    /// Of many concurrent calls with one key exactly one gets `None`.
    async fn remember(&self, remember: Remember) -> Result<Option<Seen>, StoreError>;
}
