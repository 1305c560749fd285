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

    /// Forgets peers that have been dead for long. One for which mail waits after all, or may, is met again.
    async fn forget_dead(&self, now: Timestamp) -> Result<(), StoreError> {
        let before = now - self.config.forget_after;
        loop {
            let forgotten = self.seams.store.forget_dead(before, PEERS_PAGE_MAX).await?;
            if forgotten.is_empty() {
                return Ok(());
            }
            for domain in &forgotten {
                if self.look_at(domain).await {
                    self.seams.store.change(domain, PeerChange::Met, now).await?;
                } else {
                    tracing::info!(peer = %domain, "A peer that has been dead for long is forgotten");
                }
            }
            sleep(SWEEP_PAGE_PAUSE).await;
        }
    }
}
