//! The peers in memory, as the store has them: what calls, documents and metrics look at.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use aip_market::limits::PAGE_MAX;
use aip_market::peers::{Found, MarketPeer, PeerBook, PeerStatus, RouteMode};
use aip_market::store::{MarketPeers, StoreError};

/// All peers. It may be a moment old: other processes change the store, too.
#[derive(Debug, Default)]
pub struct Book {
    held: RwLock<Held>,
}

#[derive(Debug, Default)]
struct Held {
    peers: BTreeMap<String, Arc<MarketPeer>>,
    generation: u64,
}

impl Book {
    /// Reads them all anew.
    ///
    /// # Errors
    /// The store; what is here stays.
    pub async fn refresh(&self, store: &(impl MarketPeers + ?Sized)) -> Result<(), StoreError> {
        let before = self.generation();
        let mut peers = BTreeMap::new();
        let mut after: Option<String> = None;
        loop {
            let page = store.market_peers(after.as_deref(), PAGE_MAX).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.url.clone());
            peers.extend(page.into_iter().map(|peer| (peer.url.clone(), Arc::new(peer))));
        }
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        // What was decided here meanwhile is newer than what was read: a blocked peer does not come back. The next look is soon.
        if held.generation != before {
            return Ok(());
        }
        let is_same = peers
            .values()
            .map(|peer| told(peer))
            .eq(held.peers.values().map(|peer| told(peer)));
        if !is_same {
            held.generation += 1;
        }
        held.peers = peers;
        Ok(())
    }

    /// One of them as it is now.
    pub fn put(&self, peer: &MarketPeer) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        let before = held.peers.insert(peer.url.clone(), Arc::new(peer.clone()));
        if before.is_none_or(|before| told(&before) != told(peer)) {
            held.generation += 1;
        }
    }

    /// One of them is gone.
    pub fn remove(&self, url: &str) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if held.peers.remove(url).is_some() {
            held.generation += 1;
        }
    }

    /// Changes whenever something does that documents say of them, but for when they were asked.
    pub fn generation(&self) -> u64 {
        self.held
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .generation
    }

    /// All of them, by their addresses.
    pub fn all(&self) -> Vec<Arc<MarketPeer>> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.peers.values().cloned().collect()
    }

    /// Those that sell here.
    pub fn active(&self) -> Vec<Arc<MarketPeer>> {
        let mut all = self.all();
        all.retain(|peer| peer.status == PeerStatus::Active);
        all
    }

    /// How many wait for the operator that the hub at this address named.
    pub fn pending_named_by(&self, url: &str) -> usize {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let is_named = |found: &Found| matches!(found, Found::Named(by) if by == url);
        held.peers
            .values()
            .filter(|peer| peer.status == PeerStatus::Pending && is_named(&peer.found))
            .count()
    }
}

impl PeerBook for Book {
    fn peer(&self, url: &str) -> Option<Arc<MarketPeer>> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.peers.get(url).cloned()
    }
}

/// What documents say of a peer.
fn told(peer: &MarketPeer) -> (&str, PeerStatus, RouteMode, &str, u64) {
    (&peer.url, peer.status, peer.mode, peer.name(), peer.capabilities)
}
