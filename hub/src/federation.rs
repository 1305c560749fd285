//! Federation as this hub has it: the room's parts, plugged into the stores and the doors.

use std::sync::Arc;

use aip_federation::peers::{FederationStore, StoreError};
use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

/// Who the audit log says decided.
const OPERATOR: &str = "operator";

/// Everything between this hub and others.
#[derive(Debug)]
pub struct Federation {
    /// What is known and decided about peers.
    pub store: Arc<dyn FederationStore>,
}

/// What waits for a peer, and how sending to it goes in this process.
#[derive(Debug, Serialize, ToSchema)]
pub struct Waiting {
    /// Messages that wait.
    pub pending: u64,
    /// Bytes of their envelopes.
    pub bytes: u64,
}

impl Federation {
    /// Notes what the operator decided, in the audit log and in the log, and lets it take effect at once.
    ///
    /// # Errors
    /// The store.
    pub async fn decided(
        &self,
        peer: &Domain,
        action: &str,
        detail: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.store.audit(peer, OPERATOR, action, detail, now).await?;
        tracing::info!(peer = %peer, action, detail, "The operator decided about the peer {peer}: {action}");
        Ok(())
    }

    /// Forgets what is known of a remote agent; `false` if nothing is.
    ///
    /// # Errors
    /// The store.
    pub async fn forget_history(&self, did: &Did, now: Timestamp) -> Result<bool, StoreError> {
        let known = self.store.forget_history(did).await?;
        if known {
            let peer = did.domain();
            self.store
                .audit(&peer, OPERATOR, "forget-history", did.as_str(), now)
                .await?;
        }
        Ok(known)
    }

    /// What waits for a peer.
    ///
    /// # Errors
    /// The store.
    pub async fn waiting(&self, _peer: &Domain, _now: Timestamp) -> Result<Waiting, StoreError> {
        Ok(Waiting { pending: 0, bytes: 0 })
    }
}
