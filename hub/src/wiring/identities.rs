//! The relay asks who an agent is; the registry answers.

use std::sync::Arc;

use aip_protocol::name::Did;
use aip_registry::{QuotaOverride, Registry, Standing};
use aip_relay::admission::LocalAgent;
use aip_relay::mailbox::Quota;
use aip_relay::relay::{IdentitySource, SourceError};
use async_trait::async_trait;

/// The agents of the registry, as admission needs them.
#[derive(Debug)]
pub(super) struct RegistryIdentities {
    registry: Arc<Registry>,
    /// The hub's own quota, for what the operator left open.
    quota: Quota,
}

impl RegistryIdentities {
    pub(super) fn new(registry: Arc<Registry>, quota: Quota) -> Self {
        Self { registry, quota }
    }

    /// The agent's own quota; `None` where it is the hub's.
    fn quota(&self, set: QuotaOverride) -> Option<Quota> {
        if set == QuotaOverride::default() {
            return None;
        }
        let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Some(Quota {
            mailbox_messages: set.mailbox_messages.map_or(self.quota.mailbox_messages, count),
            mailbox_bytes: set.mailbox_bytes.unwrap_or(self.quota.mailbox_bytes),
            sender_messages: set.sender_messages.map_or(self.quota.sender_messages, count),
        })
    }
}

#[async_trait]
impl IdentitySource for RegistryIdentities {
    async fn agent(&self, did: &Did) -> Result<Option<LocalAgent>, SourceError> {
        let agent = self
            .registry
            .resolve(did)
            .await
            .map_err(|error| SourceError(error.into()))?;
        Ok(agent.map(|agent| LocalAgent {
            identity: agent.identity.clone(),
            suspended: agent.standing == Standing::Suspended,
            quota: self.quota(agent.quota),
        }))
    }
}
