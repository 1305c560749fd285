//! Who the hub's own agent writes to: agents of this hub, and of others.

use std::sync::{Arc, OnceLock, Weak};

use aip_protocol::error::ErrorCode;
use aip_protocol::identity::Identity;
use aip_protocol::name::Did;
use aip_registry::Registry;
use aip_relay::relay::SourceError;
use async_trait::async_trait;

use super::Federation;
use crate::agent;

/// Agents of this hub, and of others where it federates.
#[derive(Debug)]
pub struct Recipients {
    registry: Arc<Registry>,
    /// Set once federation exists, which needs the agent first.
    federation: OnceLock<Weak<Federation>>,
}

impl Recipients {
    /// The agents of this hub alone.
    pub fn new(registry: Arc<Registry>) -> Self {
        Self {
            registry,
            federation: OnceLock::new(),
        }
    }

    /// Asks other hubs for their agents, from now on.
    pub fn ask(&self, federation: &Arc<Federation>) {
        // Set once, at start.
        self.federation.get_or_init(|| Arc::downgrade(federation));
    }
}

#[async_trait]
impl agent::Recipients for Recipients {
    async fn identity(&self, did: &Did) -> Result<Option<Identity>, SourceError> {
        let federation = self.federation.get().and_then(Weak::upgrade);
        match federation.filter(|federation| did.domain() != *federation.signer.domain()) {
            None => agent::Recipients::identity(&*self.registry, did).await,
            Some(federation) => match federation.find(did, None).await {
                Ok((identity, _hub)) => Ok(Some(identity)),
                Err(refusal) if refusal.code == ErrorCode::NotFound => Ok(None),
                Err(refusal) => Err(SourceError(Box::new(refusal))),
            },
        }
    }
}
