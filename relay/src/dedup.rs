//! The dedup window of spec §5: one envelope is accepted once, however often it is sent.
//!
//! A record lives until `created_at + W + S` (inclusive). Admission refuses a retry after that moment, so a
//! retry inside the legal interval always meets its record. Records lie in *buckets* as long as a record's
//! longest life: a look-up touches two of them, and a whole bucket is dropped at once when its time has
//! passed.

use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use crate::mailbox::{Route, StoreError};

pub use self::shared::{Accepted, SharedWindow, Unshared};

pub(crate) mod book;
pub mod shared;
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
