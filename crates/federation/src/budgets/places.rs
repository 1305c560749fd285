//! How many requests of peers are worked on at once: each may hold a whole body.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::addresses::Network;
use crate::limits::{
    KNOWN_AT_ONCE, KNOWN_PER_NETWORK_AT_ONCE, PER_PEER_AT_ONCE, STRANGERS_AT_ONCE,
    STRANGERS_PER_NETWORK_AT_ONCE,
};

/// The places of all requests. Strangers have their own, so that they take none from peers.
#[derive(Debug)]
pub(super) struct Places {
    strangers: Room,
    known: Room,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            strangers: Room::new(STRANGERS_AT_ONCE, STRANGERS_PER_NETWORK_AT_ONCE),
            known: Room::new(KNOWN_AT_ONCE, KNOWN_PER_NETWORK_AT_ONCE),
        }
    }
}

/// The place of one request, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _among_all: Seat,
    _of_peer: Option<OwnedSemaphorePermit>,
    /// Whether the request was charged to the peer that it says it is from.
    pub(super) is_charged: bool,
}

impl Places {
    /// A place for somebody of whom nothing was verified; `None` when all are taken, or all that its network may have.
    pub(super) fn stranger(&self, address: Option<IpAddr>) -> Option<Place> {
        Some(Place {
            _among_all: self.strangers.enter(address)?,
            _of_peer: None,
            is_charged: false,
        })
    }

    /// A place for a peer that comes from where it came from before.
    pub(super) fn known(&self, own: &Arc<Semaphore>, address: Option<IpAddr>) -> Option<Place> {
        let of_peer = Arc::clone(own).try_acquire_owned().ok()?;
        Some(Place {
            _among_all: self.known.enter(address)?,
            _of_peer: Some(of_peer),
            is_charged: true,
        })
    }
}

/// The places of one peer.
pub(super) fn of_one_peer() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(PER_PEER_AT_ONCE))
}

/// Places of which one network has only a part: names are cheap, and who has many of them could take all.
#[derive(Debug)]
struct Room {
    places: Arc<Semaphore>,
    network_max: usize,
    /// Where those who are in it come from: once for each place.
    networks: Networks,
}

type Networks = Arc<Mutex<Vec<Network>>>;

/// A place in it.
#[derive(Debug)]
struct Seat {
    _place: OwnedSemaphorePermit,
    /// `None`: it came from nowhere in particular.
    network: Option<Network>,
    networks: Networks,
}

impl Room {
    fn new(places: usize, network_max: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(places)),
            network_max,
            networks: Networks::default(),
        }
    }

    fn enter(&self, address: Option<IpAddr>) -> Option<Seat> {
        let network = address.map(Network::of);
        let mut networks = lock(&self.networks);
        if let Some(network) = network {
            let of_it = networks.iter().filter(|other| **other == network).count();
            if of_it >= self.network_max {
                return None;
            }
        }
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        networks.extend(network);
        Some(Seat {
            _place: place,
            network,
            networks: Arc::clone(&self.networks),
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Some(network) = self.network else { return };
        let mut networks = lock(&self.networks);
        if let Some(index) = networks.iter().position(|other| *other == network) {
            networks.swap_remove(index);
        }
    }
}

fn lock(networks: &Networks) -> MutexGuard<'_, Vec<Network>> {
    networks.lock().unwrap_or_else(PoisonError::into_inner)
}
