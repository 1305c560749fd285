//! What reception needs from its neighbours.

use std::fmt::Debug;
use std::sync::Arc;

use aip_protocol::clock::Clock;
use aip_protocol::error::Refusal;
use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use uuid::Uuid;

use super::Local;
use crate::directory::{Directory, Freshness, Peer, PeerError};
use crate::identities::{IdentityError, RemoteIdentities, Resolved};
use crate::outbox::Outbox;
use crate::peers::FederationStore;

/// The documents of peers, with one look-up at a time for each, and failures kept for a while.
#[async_trait]
pub trait Documents: Debug + Send + Sync {
    /// The peer that its document shows. Whoever answers bounds how often it is looked at past the cache.
    async fn peer(&self, domain: &Domain, freshness: Freshness) -> Result<Arc<Peer>, PeerError>;

    /// Forgets what is held of a peer that has itself said, in a verified request, that it is not so any more: the next look
    /// is a new one, however long ago the last one was.
    fn forget(&self, domain: &Domain);
}

#[async_trait]
impl Documents for Arc<Directory> {
    async fn peer(&self, domain: &Domain, freshness: Freshness) -> Result<Arc<Peer>, PeerError> {
        Directory::peer(self, domain, freshness).await
    }

    fn forget(&self, domain: &Domain) {
        Directory::forget(self, domain);
    }
}

/// The identities of agents of peers, as their histories prove them.
#[async_trait]
pub trait Senders: Debug + Send + Sync {
    /// The identity of an agent of a peer, and when its hub was asked; also one that has ended.
    async fn identity(&self, did: &Did, freshness: Freshness) -> Result<Resolved, IdentityError>;
}

#[async_trait]
impl Senders for Arc<RemoteIdentities> {
    async fn identity(&self, did: &Did, freshness: Freshness) -> Result<Resolved, IdentityError> {
        RemoteIdentities::identity(self, did, freshness).await
    }
}

/// What became of a message that came from a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailStatus {
    /// The word of §5: `stored`, `delivered`, `acked`, `expired`, `dead`, ….
    pub status: String,
    /// Why, where there is a why.
    pub code: Option<String>,
    /// When it was accepted here.
    pub accepted_at: Timestamp,
    /// When the status became so.
    pub at: Timestamp,
}

/// This hub's records of what became of messages.
#[async_trait]
pub trait Statuses: Debug + Send + Sync {
    /// The newest status of one message, while it is kept.
    ///
    /// # Errors
    ///
    /// `unavailable`: the records cannot be read.
    async fn status(&self, from: &Did, to: &Did, id: Uuid) -> Result<Option<MailStatus>, Refusal>;
}

/// Who is told that a peer is alive: the sending side, which may try it again.
pub trait Heard: Debug + Send + Sync {
    /// A request of this peer was verified.
    fn heard(&self, peer: &Domain);
}

/// Nobody is told.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unheard;

impl Heard for Unheard {
    fn heard(&self, _peer: &Domain) {}
}

/// Everything that reception is plugged into.
#[derive(Debug, Clone)]
pub struct Seams {
    /// The documents of peers.
    pub documents: Arc<dyn Documents>,
    /// The identities of their agents.
    pub senders: Arc<dyn Senders>,
    /// What is known of peers, and what came in.
    pub store: Arc<dyn FederationStore>,
    /// This hub's own agents.
    pub local: Arc<dyn Local>,
    /// What waits for peers: backfill reads it.
    pub outbox: Arc<dyn Outbox>,
    /// What became of their messages.
    pub statuses: Arc<dyn Statuses>,
    /// Who is told of a peer that is alive.
    pub heard: Arc<dyn Heard>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}
