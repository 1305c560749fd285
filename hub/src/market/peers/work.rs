//! The regular work with other hubs: asking those that are due, following what other processes decided, forgetting who never
//! answered, telling who sells here that something has changed.

use std::sync::PoisonError;

use aip_market::peers::MarketPeer;
use aip_market::store::StoreError;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::PeerRoom;
use crate::market::limits::{
    CRAWL_TAKEN, CRAWL_TICK, CRAWLS_AT_ONCE_MAX, CRAWLS_TAKEN_MAX, FORGET_PEERS_INTERVAL,
    PEERS_POLL_INTERVAL, SILENT_PEER_KEPT, SILENT_PEERS_FORGOTTEN_MAX,
};

impl PeerRoom {
    /// Asks peers that are due, until it is dropped.
    pub async fn crawl_regularly(&self) {
        loop {
            match self.crawl_due().await {
                Ok(0) => tokio::select! {
                    () = self.due.notified() => {}
                    () = tokio::time::sleep(CRAWL_TICK) => {}
                },
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "Which hubs are due cannot be read");
                    tokio::time::sleep(CRAWL_TICK).await;
                }
            }
        }
    }

    /// Asks those that are due now, a few at once; how many.
    ///
    /// # Errors
    /// The store.
    pub async fn crawl_due(&self) -> Result<usize, StoreError> {
        let now = self.now();
        let due = self
            .store()
            .due_peers(now, now + CRAWL_TAKEN, CRAWLS_TAKEN_MAX)
            .await?;
        let count = due.len();
        let mut waiting = due.iter();
        let mut running: FuturesUnordered<_> = waiting
            .by_ref()
            .take(CRAWLS_AT_ONCE_MAX)
            .map(|peer| self.crawl_one(peer))
            .collect();
        while running.next().await.is_some() {
            running.extend(waiting.next().map(|peer| self.crawl_one(peer)));
        }
        Ok(count)
    }

    async fn crawl_one(&self, peer: &MarketPeer) {
        let result = self.crawler.crawl(peer).await;
        let mut crawls = self.crawls.lock().unwrap_or_else(PoisonError::into_inner);
        *crawls.entry(result).or_default() += 1;
    }

    /// Looks at the store again and again, which other processes change, too; until it is dropped.
    pub async fn follow(&self) {
        loop {
            tokio::time::sleep(PEERS_POLL_INTERVAL).await;
            self.refresh().await;
        }
    }

    /// Forgets strangers that were named and never answered; until it is dropped.
    pub async fn forget_regularly(&self) {
        loop {
            tokio::time::sleep(FORGET_PEERS_INTERVAL).await;
            let before = self.now() - SILENT_PEER_KEPT;
            let forgotten = self
                .store()
                .forget_silent_peers(before, SILENT_PEERS_FORGOTTEN_MAX)
                .await;
            if let Err(error) = forgotten {
                tracing::warn!(%error, "Hubs that never answered were not forgotten; the next round tries again");
            }
        }
    }

    /// All of its regular work, until it is dropped. Where the settings let no hub be asked, it only looks at the store.
    pub async fn run(&self) {
        if !self.is_enabled {
            return self.follow().await;
        }
        tokio::join!(
            self.follow(),
            self.crawl_regularly(),
            self.forget_regularly(),
            async {
                if let Some(announcer) = &self.announcer {
                    announcer.run(&self.crawler.pace).await;
                }
            }
        );
    }
}
