//! Looking agents up (spec §3).

use std::sync::Arc;

use aip_protocol::error::ErrorCode;
use aip_protocol::name::{Did, Handle, Name};

use super::Registry;
use crate::agent::Agent;
use crate::error::{RegistryError, refuse};

impl Registry {
    /// The agent with this DID, from memory where possible; `None` if there is none here. Suspended
    /// and deactivated agents resolve too: what follows from that is the caller's to decide.
    pub async fn resolve(&self, did: &Did) -> Result<Option<Arc<Agent>>, RegistryError> {
        Ok(self.agents.get(did).await?)
    }

    /// Agents, and absences of agents, that are in memory now; for metrics.
    pub async fn cached_agents(&self) -> u64 {
        self.agents.len().await
    }

    /// The DID that this name has here.
    pub fn did_of(&self, name: &Name) -> Did {
        Handle {
            name: name.clone(),
            domain: self.domain.clone(),
        }
        .did()
    }

    /// The agent with this name, or 404.
    pub(super) async fn known(&self, name: &Name) -> Result<Arc<Agent>, RegistryError> {
        let agent = self.agents.get(&self.did_of(name)).await?;
        agent.ok_or_else(|| refuse(ErrorCode::NotFound, "no agent has this name here"))
    }
}
