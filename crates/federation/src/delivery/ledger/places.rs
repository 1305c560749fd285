//! How many messages may wait: some of each peer, and more as long as all peers together have not too many.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::{WAITING_MAX, WAITING_OWN, WAITING_SHARED_MAX};

/// The places that all peers share: so many are taken.
#[derive(Debug, Default)]
pub(in super::super) struct Places(AtomicUsize);

/// The places of one peer. Those that it shares are given back when it is forgotten.
#[derive(Debug)]
pub(super) struct Held {
    count: usize,
    shared: Arc<Places>,
}

impl Held {
    pub(super) fn new(places: &Arc<Places>) -> Self {
        Self {
            count: 0,
            shared: Arc::clone(places),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// How many more there are for this peer.
    pub(super) fn room(&self) -> usize {
        let own = WAITING_OWN.saturating_sub(self.count);
        let shared = WAITING_SHARED_MAX.saturating_sub(self.shared.0.load(Ordering::Relaxed));
        (own + shared).min(WAITING_MAX.saturating_sub(self.count))
    }

    /// So many are taken from now on.
    pub(super) fn hold(&mut self, count: usize) {
        let [before, after] = [self.count, count].map(|count| count.saturating_sub(WAITING_OWN));
        self.count = count;
        if after > before {
            self.shared.0.fetch_add(after - before, Ordering::Relaxed);
        } else if before > after {
            self.shared.0.fetch_sub(before - after, Ordering::Relaxed);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.hold(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_has_places_of_its_own_and_all_share_the_others() {
        let places = Arc::new(Places::default());
        let greedy = WAITING_SHARED_MAX / (WAITING_MAX - WAITING_OWN);
        let mut held: Vec<Held> = (0..=greedy).map(|_| Held::new(&places)).collect();
        for peer in &mut held {
            assert!(peer.room() >= WAITING_OWN);
            peer.hold(peer.room());
            assert_eq!(peer.room(), 0);
        }
        let mut last = Held::new(&places);
        assert_eq!(last.room(), WAITING_OWN, "nothing is left but its own");
        last.hold(WAITING_OWN);
        assert_eq!(last.room(), 0);
        held.pop();
        held.pop();
        assert!(last.room() > 0, "what was forgotten gives its places back");
        drop(held);
        assert_eq!(places.0.load(Ordering::Relaxed), 0);
        assert_eq!(last.room(), WAITING_MAX - WAITING_OWN);
    }
}
