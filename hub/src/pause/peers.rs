//! What is kept of peers, behind the gate.

use std::sync::Arc;

use aip_federation::peers::{
    AuditEntry, Evidence, FederationStore, HistoryCaps, HistoryStore, KnownHistory, Noted, PeerChange,
    PeerRecord, PeerStore, ReceivedStore, RecordStore, StoreError,
};
use aip_protocol::json::Json;
use aip_protocol::name::{Did, Domain};
use aip_protocol::peer::Known;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use super::{Change, Pause, SENTENCE};

/// Peers, windows, histories and decisions that do not change while the hub stands still.
#[derive(Debug)]
pub struct PausablePeers {
    peers: Arc<dyn FederationStore>,
    pause: Arc<Pause>,
}

impl PausablePeers {
    /// Wraps a store.
    pub fn new(peers: Arc<dyn FederationStore>, pause: Arc<Pause>) -> Self {
        Self { peers, pause }
    }

    async fn begin(&self) -> Result<Change<'_>, StoreError> {
        self.pause
            .begin()
            .await
            .ok_or_else(|| StoreError(Box::<dyn std::error::Error + Send + Sync>::from(SENTENCE)))
    }
}

#[async_trait]
impl PeerStore for PausablePeers {
    async fn peer(&self, domain: &Domain) -> Result<Option<PeerRecord>, StoreError> {
        self.peers.peer(domain).await
    }

    async fn peers(&self, after: Option<&Domain>, limit: u32) -> Result<Vec<PeerRecord>, StoreError> {
        self.peers.peers(after, limit).await
    }

    async fn change(
        &self,
        domain: &Domain,
        change: PeerChange,
        now: Timestamp,
    ) -> Result<PeerRecord, StoreError> {
        let _change = self.begin().await?;
        self.peers.change(domain, change, now).await
    }

    async fn forget_dead(&self, before: Timestamp, limit: u32) -> Result<Vec<Domain>, StoreError> {
        let _change = self.begin().await?;
        self.peers.forget_dead(before, limit).await
    }

    async fn forget_strangers(&self, keep: u32, limit: u32) -> Result<Vec<Domain>, StoreError> {
        let _change = self.begin().await?;
        self.peers.forget_strangers(keep, limit).await
    }

    async fn lease(
        &self,
        domain: &Domain,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let _change = self.begin().await?;
        self.peers.lease(domain, holder, now, until).await
    }

    async fn release(&self, domain: &Domain, holder: &str) -> Result<(), StoreError> {
        let _change = self.begin().await?;
        self.peers.release(domain, holder).await
    }
}

#[async_trait]
impl ReceivedStore for PausablePeers {
    async fn known(&self, peer: &Domain, epoch: &str, seqs: &[u64]) -> Result<Vec<Known>, StoreError> {
        self.peers.known(peer, epoch, seqs).await
    }

    async fn note(&self, peer: &Domain, epoch: &str, noted: &[Noted]) -> Result<u64, StoreError> {
        let _change = self.begin().await?;
        self.peers.note(peer, epoch, noted).await
    }

    async fn pass_over(&self, peer: &Domain, epoch: &str, through: u64) -> Result<u64, StoreError> {
        let _change = self.begin().await?;
        self.peers.pass_over(peer, epoch, through).await
    }

    async fn window(&self, peer: &Domain, epoch: &str) -> Result<(u64, u64), StoreError> {
        self.peers.window(peer, epoch).await
    }

    async fn use_nonce(
        &self,
        peer: &Domain,
        nonce: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let _change = self.begin().await?;
        self.peers.use_nonce(peer, nonce, now, until).await
    }
}

#[async_trait]
impl HistoryStore for PausablePeers {
    async fn history(&self, did: &Did) -> Result<Option<KnownHistory>, StoreError> {
        self.peers.history(did).await
    }

    async fn keep_history(&self, history: &KnownHistory, caps: HistoryCaps) -> Result<(), StoreError> {
        let _change = self.begin().await?;
        self.peers.keep_history(history, caps).await
    }

    async fn forget_history(&self, did: &Did) -> Result<bool, StoreError> {
        let _change = self.begin().await?;
        self.peers.forget_history(did).await
    }
}

#[async_trait]
impl RecordStore for PausablePeers {
    async fn add_evidence(
        &self,
        peer: &Domain,
        code: &str,
        subject: &str,
        objects: &[Json],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let _change = self.begin().await?;
        self.peers.add_evidence(peer, code, subject, objects, now).await
    }

    async fn evidence(
        &self,
        peer: Option<&Domain>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Evidence>, StoreError> {
        self.peers.evidence(peer, after, limit).await
    }

    async fn audit(
        &self,
        peer: &Domain,
        actor: &str,
        action: &str,
        detail: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let _change = self.begin().await?;
        self.peers.audit(peer, actor, action, detail, now).await
    }

    async fn audit_log(
        &self,
        peer: Option<&Domain>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        self.peers.audit_log(peer, after, limit).await
    }
}
