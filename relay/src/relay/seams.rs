//! What the relay needs from its neighbours. The hub plugs the registry in, tests a map.

use std::error::Error;
use std::fmt::Debug;

use aip_protocol::name::Did;
use async_trait::async_trait;

use crate::admission::LocalAgent;

/// Looks up the agents of this hub.
#[async_trait]
pub trait IdentitySource: Send + Sync + Debug {
    /// The agent, or `None` when nobody of that name is registered. Only asked for DIDs of this hub's domain.
    async fn agent(&self, did: &Did) -> Result<Option<LocalAgent>, SourceError>;
}

/// Identities could not be read, for now.
#[derive(Debug, thiserror::Error)]
#[error("the agent cannot be looked up")]
pub struct SourceError(#[source] pub Box<dyn Error + Send + Sync>);
