//! How much memory the bodies of all requests may take together.
//!
//! Each body has its own limit, but thousands of connections could hold one each, for as long as the least rate allows.
//! Each network address may hold a part of the room only: a stranger whose bodies never end leaves the rest to others.
//! A body takes its share while it arrives and keeps it until its last byte is let go, wherever that is. The first bytes
//! of each are free: what most bodies are made of always gets through.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use crate::limits::{BODIES_BYTES_MAX, BODIES_PARTS, BODY_FREE_BYTES};
use crate::throttle::{Hold, Holdings, Network};

/// The memory for bodies. Cheap to clone; all clones are the same memory.
#[derive(Clone, Debug)]
pub struct BodyRoom(Arc<Room>);

#[derive(Debug)]
struct Room {
    bytes_max: usize,
    taken: AtomicUsize,
    by_network: Holdings,
}

impl BodyRoom {
    /// Room for some bodies of `largest` bytes at least.
    pub fn for_bodies_of(largest: usize) -> Self {
        let bytes_max = BODIES_BYTES_MAX.max(largest.saturating_mul(4));
        Self(Arc::new(Room {
            bytes_max,
            taken: AtomicUsize::new(0),
            by_network: Holdings::new((bytes_max / BODIES_PARTS).max(largest.saturating_mul(2))),
        }))
    }

    /// The share of a body that has not begun, and comes from `network`.
    pub(super) fn share(&self, network: Option<Network>) -> Share {
        Share {
            room: self.clone(),
            hold: self.0.by_network.hold(network),
            taken: 0,
        }
    }

    /// Bytes that are taken now.
    pub fn taken_bytes(&self) -> usize {
        self.0.taken.load(Ordering::Relaxed)
    }
}

/// What one body takes, until it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    room: BodyRoom,
    hold: Hold,
    taken: usize,
}

impl Share {
    /// Makes it fit a body of `bytes` so far; `false` when there is no room.
    pub(super) fn grow_to(&mut self, bytes: usize) -> bool {
        let Room { bytes_max, taken, .. } = &*self.room.0;
        let more = bytes.saturating_sub(BODY_FREE_BYTES).saturating_sub(self.taken);
        let fits = |taken: usize| taken.checked_add(more).filter(|sum| sum <= bytes_max);
        // What the address may have goes first: the room of all is not taken for a body that is refused.
        let has_grown = more == 0
            || self.hold.grow(more)
                && taken
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
                    .is_ok();
        if has_grown {
            self.taken += more;
        }
        has_grown
    }

    /// Keeps the share for as long as anybody has a part of `body`.
    pub(super) fn keep_with(self, body: Bytes) -> Bytes {
        if self.taken == 0 {
            body
        } else {
            Bytes::from_owner(Kept { body, _share: self })
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.0.taken.fetch_sub(self.taken, Ordering::Relaxed);
    }
}

/// A body with its share.
struct Kept {
    body: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_lives_as_long_as_a_part_of_its_body() {
        let room = BodyRoom::for_bodies_of(1);
        let mut share = room.share(None);
        assert!(share.grow_to(BODY_FREE_BYTES) && room.taken_bytes() == 0);
        assert!(share.grow_to(BODY_FREE_BYTES + 10) && share.grow_to(BODY_FREE_BYTES + 30));
        assert_eq!(room.taken_bytes(), 30);
        let body = share.keep_with(Bytes::from_static(b"some text"));
        let part = body.slice(5..);
        drop(body);
        assert_eq!((&part[..], room.taken_bytes()), (&b"text"[..], 30));
        drop(part);
        assert_eq!(room.taken_bytes(), 0);
    }

    #[test]
    fn one_address_has_a_part_of_the_room() {
        use actix_web::test::TestRequest;
        let throttle = crate::throttle::Throttle::new(&crate::config::Settings::default());
        let from = |peer: &str| {
            let request = TestRequest::default().peer_addr(peer.parse().unwrap());
            throttle.network(&request.to_http_request())
        };
        let room = BodyRoom::for_bodies_of(1);
        let part = BODIES_BYTES_MAX / BODIES_PARTS;
        let mut first = room.share(from("192.0.2.1:1"));
        let mut second = room.share(from("192.0.2.1:2"));
        assert!(first.grow_to(BODY_FREE_BYTES + part) && !second.grow_to(BODY_FREE_BYTES + 1));
        assert_eq!(room.taken_bytes(), part);
        assert!(room.share(from("198.51.100.7:1")).grow_to(BODY_FREE_BYTES + part));
        drop(first);
        assert!(second.grow_to(BODY_FREE_BYTES + part));
    }

    #[test]
    fn what_does_not_fit_takes_nothing() {
        let room = BodyRoom::for_bodies_of(1);
        let (mut first, mut second) = (room.share(None), room.share(None));
        assert!(first.grow_to(BODY_FREE_BYTES + BODIES_BYTES_MAX));
        assert!(second.grow_to(BODY_FREE_BYTES) && !second.grow_to(BODY_FREE_BYTES + 1));
        drop(first);
        assert!(second.grow_to(BODY_FREE_BYTES + 1));
        assert_eq!(room.taken_bytes(), 1);
    }
}
