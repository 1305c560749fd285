//! Looking through the outboxes of all known peers: after a start, and for mail that nobody told of.

use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Delivery;
use crate::limits::{FORGET_EVERY, PEERS_PAGE_MAX, SWEEP_PAGE_PAUSE};
use crate::peers::{PeerChange, StoreError};

impl Delivery {
    pub(super) async fn sweep(&self, stop: &CancellationToken) {
        let mut forget_at = self.now();
        let sweeping = async {
            loop {
                if let Err(error) = self.look_through(&mut forget_at).await {
                    tracing::warn!(%error, "The outboxes could not be looked through; again later");
                }
                sleep(self.config.sweep_every).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = sweeping => {}
        }
    }

    async fn look_through(&self, forget_at: &mut Timestamp) -> Result<(), StoreError> {
        let mut after: Option<Domain> = None;
        loop {
            let page = self.seams.store.peers(after.as_ref(), PEERS_PAGE_MAX).await?;
            for peer in &page {
                self.look_at(&peer.domain).await;
            }
            let Some(last) = page.last() else { break };
            after = Some(last.domain.clone());
            sleep(SWEEP_PAGE_PAUSE).await;
        }
        let now = self.now();
        self.forget_strangers(now).await?;
        if *forget_at <= now {
            *forget_at = now + FORGET_EVERY;
            self.forget_dead(now).await?;
        }
        Ok(())
    }

    /// Wakes a peer for which something waits. `true`: something does, or it could not be seen.
    async fn look_at(&self, domain: &Domain) -> bool {
        match self.seams.outbox.state(domain).await {
            Ok(state) if state.pending > 0 => {
                self.wake(domain);
                true
            }
            Ok(_) => false,
            Err(error) => {
                tracing::warn!(peer = %domain, %error, "An outbox could not be looked at; again later");
                true
            }
        }
    }

    /// Forgets peers that have been dead for long.
    async fn forget_dead(&self, now: Timestamp) -> Result<(), StoreError> {
        let before = now - self.config.forget_after;
        loop {
            let dead = self.seams.store.forget_dead(before, PEERS_PAGE_MAX).await?;
            if dead.is_empty() {
                return Ok(());
            }
            self.forgotten(&dead, now).await?;
            sleep(SWEEP_PAGE_PAUSE).await;
        }
    }

    /// Forgets strangers beyond those that are kept.
    async fn forget_strangers(&self, now: Timestamp) -> Result<(), StoreError> {
        let keep = self.config.strangers_max;
        let strangers = self.seams.store.forget_strangers(keep, PEERS_PAGE_MAX).await?;
        self.forgotten(&strangers, now).await
    }

    /// Peers were forgotten. One for which mail waits after all, or may, is met again.
    async fn forgotten(&self, peers: &[Domain], now: Timestamp) -> Result<(), StoreError> {
        for domain in peers {
            if self.look_at(domain).await {
                self.seams.store.change(domain, PeerChange::Met, now).await?;
            } else {
                tracing::info!(peer = %domain, "A peer is forgotten: it has been dead for long, or was a stranger among many");
            }
        }
        Ok(())
    }
}
