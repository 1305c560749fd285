//! How many requests of peers are worked on at once: each may hold a whole body.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::addresses::Network;
use crate::limits::{KNOWN_AT_ONCE, PER_PEER_AT_ONCE, STRANGERS_AT_ONCE, STRANGERS_PER_NETWORK_AT_ONCE};

/// The places of all requests. Strangers have their own, so that they take none from peers.
#[derive(Debug)]
pub(super) struct Places {
    strangers: Arc<Semaphore>,
    /// Where those who have a place come from: once for each place.
    networks: Networks,
    known: Arc<Semaphore>,
}

type Networks = Arc<Mutex<Vec<Network>>>;

impl Default for Places {
    fn default() -> Self {
        Self {
            strangers: Arc::new(Semaphore::new(STRANGERS_AT_ONCE)),
            networks: Networks::default(),
            known: Arc::new(Semaphore::new(KNOWN_AT_ONCE)),
        }
    }
}

/// The place of one request, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _among_all: OwnedSemaphorePermit,
    _of_peer: Option<OwnedSemaphorePermit>,
    _of_network: Option<OfNetwork>,
    /// Whether the request was charged to the peer that it says it is from.
    pub(super) is_charged: bool,
}

impl Places {
    /// A place for somebody of whom nothing was verified; `None` when all are taken, or all that its network may have.
    pub(super) fn stranger(&self, address: Option<IpAddr>) -> Option<Place> {
        let of_network = match address {
            Some(address) => Some(OfNetwork::take(&self.networks, Network::of(address))?),
            None => None,
        };
        Some(Place {
            _among_all: Arc::clone(&self.strangers).try_acquire_owned().ok()?,
            _of_peer: None,
            _of_network: of_network,
            is_charged: false,
        })
    }

    /// A place for a peer that comes from where it came from before.
    pub(super) fn known(&self, own: &Arc<Semaphore>) -> Option<Place> {
        let of_peer = Arc::clone(own).try_acquire_owned().ok()?;
        Some(Place {
            _among_all: Arc::clone(&self.known).try_acquire_owned().ok()?,
            _of_peer: Some(of_peer),
            _of_network: None,
            is_charged: true,
        })
    }
}

/// One of the places that a network may have.
#[derive(Debug)]
struct OfNetwork {
    network: Network,
    taken: Networks,
}

impl OfNetwork {
    fn take(networks: &Networks, network: Network) -> Option<Self> {
        let mut taken = lock(networks);
        let of_it = taken.iter().filter(|other| **other == network).count();
        if of_it >= STRANGERS_PER_NETWORK_AT_ONCE {
            return None;
        }
        taken.push(network);
        Some(Self {
            network,
            taken: Arc::clone(networks),
        })
    }
}

impl Drop for OfNetwork {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        if let Some(index) = taken.iter().position(|other| *other == self.network) {
            taken.swap_remove(index);
        }
    }
}

fn lock(networks: &Networks) -> MutexGuard<'_, Vec<Network>> {
    networks.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The places of one peer.
pub(super) fn of_one_peer() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(PER_PEER_AT_ONCE))
}
