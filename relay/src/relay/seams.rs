//! What the relay needs from its neighbours. The hub plugs the registry in, tests a map.

use std::error::Error;
use std::fmt::Debug;

use aip_protocol::error::Refusal;
use aip_protocol::name::{Did, Domain};
use async_trait::async_trait;

use crate::admission::LocalAgent;
use crate::inbox::Terms;

/// Looks up the agents of this hub.
#[async_trait]
pub trait IdentitySource: Send + Sync + Debug {
    /// The agent, or `None` when nobody of that name is registered. Only asked for DIDs of this hub's domain.
    async fn agent(&self, did: &Did) -> Result<Option<LocalAgent>, SourceError>;
}

/// What may wait for a peer (in all, and of one sender), and for how long; see [`Terms::of_outbox`].
pub type PeerTerms = Terms;

/// The hubs of other domains, on their way out (spec §8).
#[async_trait]
pub trait Peers: Send + Sync + Debug {
    /// Whether this agent of ours may send to agents of `peer`, and what may wait for it. Asked after the sender's
    /// signature was checked; leaves nothing behind. A refusal (`peer_blocked`) is what the sender is told.
    async fn admit(&self, peer: &Domain, sender: &Did) -> Result<PeerTerms, Refusal>;

    /// A message of `sender` that was admitted is about to wait for `peer`: from now on its outbox is looked after. A refusal
    /// (`rate_limited`) is what the sender is told.
    async fn meet(&self, peer: &Domain, sender: &Did) -> Result<(), Refusal>;

    /// A message waits for `peer`, durably: whoever sends is woken. Returns at once.
    fn queued(&self, peer: &Domain);
}

/// Identities could not be read, for now.
#[derive(Debug, thiserror::Error)]
#[error("the agent cannot be looked up")]
pub struct SourceError(#[source] pub Box<dyn Error + Send + Sync>);
