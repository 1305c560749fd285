//! The outbox seam: mail of our agents that waits for a peer, in the relay's store.
//!
//! A peer's outbox is a mailbox of the store whose owner is the peer: its places are the `peer_seq` of spec §8, its epoch
//! is the one in our discovery document. The hub plugs the store in.

#[cfg(any(test, feature = "testsuite"))]
pub mod fake;

use std::fmt::Debug;

use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use uuid::Uuid;

/// The store failed.
#[derive(Debug, thiserror::Error)]
#[error("the outbox does not answer")]
pub struct OutboxError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// One message that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxItem {
    /// Its place in this peer's outbox; from 1.
    pub peer_seq: u64,
    /// When we accepted it.
    pub accepted_at: Timestamp,
    /// Who sent it.
    pub sender: Did,
    /// For whom: an agent of the peer.
    pub recipient: Did,
    /// The envelope's id.
    pub id: Uuid,
    /// The envelope as its sender signed it.
    pub wire: Bytes,
}

/// How a message leaves the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// The peer has it: `delivered`.
    Delivered,
    /// The peer refused it for good, with this code: `refused`.
    Refused(String),
    /// Given up, with the code of the last attempt: `dead`.
    Dead(String),
    /// Its own expiry came first: `expired`.
    Expired,
}

/// What an outbox holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutboxState {
    /// Everything up to here has left.
    pub floor: u64,
    /// The last place given out; 0 before the first.
    pub head: u64,
    /// Messages that wait.
    pub pending: u64,
    /// Bytes of their envelopes.
    pub bytes: u64,
}

/// The outboxes of all peers.
#[async_trait]
pub trait Outbox: Debug + Send + Sync {
    /// The life of the store that the places belong to.
    fn epoch(&self) -> String;

    /// What waits for a peer.
    async fn state(&self, peer: &Domain) -> Result<OutboxState, OutboxError>;

    /// Waiting messages with a place above `after`, in order; at most `items_max`, and about `bytes_max` bytes of envelopes,
    /// but one at least.
    async fn after(
        &self,
        peer: &Domain,
        after: u64,
        items_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<OutboxItem>, OutboxError>;

    /// Those of these messages that still wait, in order.
    async fn items(&self, peer: &Domain, seqs: &[u64]) -> Result<Vec<OutboxItem>, OutboxError>;

    /// Takes messages out, each with its fate, and tells their senders. Durable when it returns; what has left already is
    /// passed over.
    async fn settle(&self, peer: &Domain, fates: &[(u64, Fate)]) -> Result<(), OutboxError>;
}
