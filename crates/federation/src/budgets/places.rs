//! How many requests of peers are worked on at once: each may hold a whole body.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{KNOWN_AT_ONCE, PER_PEER_AT_ONCE, STRANGERS_AT_ONCE};

/// The places of all requests. Strangers have their own, so that they take none from peers.
#[derive(Debug)]
pub(super) struct Places {
    strangers: Arc<Semaphore>,
    known: Arc<Semaphore>,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            strangers: Arc::new(Semaphore::new(STRANGERS_AT_ONCE)),
            known: Arc::new(Semaphore::new(KNOWN_AT_ONCE)),
        }
    }
}

/// The place of one request, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _among_all: OwnedSemaphorePermit,
    _of_peer: Option<OwnedSemaphorePermit>,
    /// Whether the request was charged to the peer that it says it is from.
    pub(super) is_charged: bool,
}

impl Places {
    /// A place for somebody of whom nothing was verified; `None` when all are taken.
    pub(super) fn stranger(&self) -> Option<Place> {
        Some(Place {
            _among_all: Arc::clone(&self.strangers).try_acquire_owned().ok()?,
            _of_peer: None,
            is_charged: false,
        })
    }

    /// A place for a peer that comes from where it came from before.
    pub(super) fn known(&self, own: &Arc<Semaphore>) -> Option<Place> {
        let of_peer = Arc::clone(own).try_acquire_owned().ok()?;
        Some(Place {
            _among_all: Arc::clone(&self.known).try_acquire_owned().ok()?,
            _of_peer: Some(of_peer),
            is_charged: true,
        })
    }
}

/// The places of one peer.
pub(super) fn of_one_peer() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(PER_PEER_AT_ONCE))
}
