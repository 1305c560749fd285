//! The gate: everything that is asked of a request before its signature costs anything, and what is charged afterwards.
//!
//! Whoever comes with the name of a peer is either at an address from which that peer was verified of late, and uses the
//! peer's own budget, or comes from elsewhere, and uses the budgets of strangers: so a flood in somebody's name uses up
//! nothing of theirs.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;

use super::addresses::Addresses;
use super::peers::{Entry, Peers};
use super::places::{Place, Places};
use super::{Bucket, PeerLoad, Rate, Tally, slow};
use crate::limits::{
    CLAIMS, EPOCHS, LOADS_MAX, LOOKUPS_ALL, NOTE_CAME_IN_SECS, STRANGERS, UNAVAILABLE_RETRY_SECS,
};
use crate::policy::Allowance;

/// All budgets of this process.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    places: Places,
}

#[derive(Debug, Default)]
struct State {
    addresses: Addresses,
    peers: Peers,
    strangers: Bucket,
    lookups: Bucket,
    /// Hashes senders so that nobody outside can make two fall together.
    hasher: RandomState,
}

/// A request whose signature was verified.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verified {
    pub(crate) address: Option<IpAddr>,
    pub(crate) body_bytes: u64,
    pub(crate) skew_ms: i64,
    pub(crate) allowance: Allowance,
}

impl Gate {
    /// Lets a request in that says that it is from `domain`, and gives it a place.
    pub(crate) fn arrive(
        &self,
        domain: &Domain,
        address: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<Place, Refusal> {
        let mut state = self.lock();
        let state = &mut *state;
        if let Some(entry) = state.peers.get(domain) {
            if entry.is_proven(address, now) {
                return self.of_peer(entry, address, now);
            }
            check_address(&mut state.addresses, address, now)?;
            entry.claims.take(1, CLAIMS, now).map_err(too_many)?;
        } else {
            check_address(&mut state.addresses, address, now)?;
            state.strangers.take(1, STRANGERS, now).map_err(too_many)?;
        }
        self.places.stranger(address).ok_or_else(busy)
    }

    fn of_peer(&self, entry: &mut Entry, address: Option<IpAddr>, now: Timestamp) -> Result<Place, Refusal> {
        let Allowance { bytes, requests, .. } = entry.allowance;
        let looked = entry.bytes.look(bytes, now);
        let taken = looked.and_then(|()| entry.requests.take(1, requests, now));
        if let Err(after_secs) = taken {
            entry.load.slowed = entry.load.slowed.saturating_add(1);
            return Err(too_many(after_secs));
        }
        self.places.known(&entry.own_places, address).ok_or_else(busy)
    }

    /// A request came that cannot even be read: from there, and there may be too many of those.
    pub(crate) fn unreadable(&self, address: Option<IpAddr>, refusal: Refusal, now: Timestamp) -> Refusal {
        let mut state = self.lock();
        if let Err(slowed) = check_address(&mut state.addresses, address, now) {
            return slowed;
        }
        if let Some(address) = address {
            state.addresses.failed(address, now);
        }
        refusal
    }

    /// A request that said that it was from `domain` was not, or could not be shown to be.
    pub(crate) fn failed(&self, domain: &Domain, address: Option<IpAddr>, now: Timestamp) {
        let mut state = self.lock();
        if let Some(address) = address {
            state.addresses.failed(address, now);
        }
        if let Some(entry) = state.peers.get(domain) {
            entry.load.unauthentic = entry.load.unauthentic.saturating_add(1);
        }
    }

    /// A request was verified: from now on the peer is known by where it comes from, and pays for it.
    pub(crate) fn verified(&self, domain: &Domain, place: &Place, request: Verified, now: Timestamp) {
        let mut state = self.lock();
        let entry = state.peers.enter(domain, request.allowance, now);
        entry.prove(request.address, now);
        let Allowance { bytes, requests, .. } = request.allowance;
        if !place.is_charged {
            entry.requests.charge(1, requests, now);
        }
        entry.bytes.charge(request.body_bytes, bytes, now);
        entry.load.requests = entry.load.requests.saturating_add(1);
        entry.load.bytes = entry.load.bytes.saturating_add(request.body_bytes);
        entry.load.skew_ms = Some(request.skew_ms);
    }

    /// A peer is given so many bytes, which count like those that it hands in.
    pub(crate) fn give(&self, domain: &Domain, bytes: u64, now: Timestamp) {
        self.of(domain, |entry| {
            entry.bytes.charge(bytes, entry.allowance.bytes, now);
        });
    }

    /// Whether a request of this peer was verified since this process began.
    pub(crate) fn is_met(&self, domain: &Domain) -> bool {
        self.lock().peers.get(domain).is_some()
    }

    /// Whether the document of a domain that was never met may be looked up.
    pub(crate) fn look_up(&self, address: Option<IpAddr>, now: Timestamp) -> Result<(), Refusal> {
        let mut state = self.lock();
        if let Some(address) = address {
            state.addresses.lookup(address, now).map_err(too_many_new)?;
        }
        state.lookups.take(1, LOOKUPS_ALL, now).map_err(too_many_new)
    }

    /// Whether an epoch of a peer counts that is another than the last one, or that its document does not name.
    pub(crate) fn new_epoch(&self, domain: &Domain, now: Timestamp) -> Result<(), Refusal> {
        self.of(domain, |entry| entry.epochs.take(1, EPOCHS, now))
            .unwrap_or(Ok(()))
            .map_err(|after_secs| slow("Too many new epochs; come again later.", after_secs))
    }

    /// Whether `epoch` is the one that the peer's last items were taken in.
    pub(crate) fn is_epoch(&self, domain: &Domain, epoch: &str) -> bool {
        self.of(domain, |entry| entry.epoch.as_deref() == Some(epoch)) == Some(true)
    }

    /// Items of the peer are taken in this epoch from now on.
    pub(crate) fn set_epoch(&self, domain: &Domain, epoch: &str) {
        self.of(domain, |entry| entry.epoch = Some(epoch.to_owned()));
    }

    /// How many of so many new items may come in now, and after how many seconds the rest may.
    pub(crate) fn items(&self, domain: &Domain, wanted: u64, now: Timestamp) -> (u64, u64) {
        self.of(domain, |entry| {
            let rate: Rate = entry.allowance.items;
            let granted = entry.items.take_up_to(wanted, rate, now);
            // When what is left over fits.
            let missing = wanted.saturating_sub(granted);
            (granted, missing.div_ceil(rate.tokens_per_sec().max(1)).max(1))
        })
        .unwrap_or((wanted, 1))
    }

    /// Whether a peer may hand in mail of this agent, too.
    pub(crate) fn sender(&self, domain: &Domain, sender: &Did, now: Timestamp) -> bool {
        let mut state = self.lock();
        let sender = state.hasher.hash_one(sender.as_str());
        let entry = state.peers.get(domain);
        entry.is_none_or(|entry| entry.senders.admit(sender, entry.allowance.senders_max, now))
    }

    /// Counts what became of a peer's items. The good items to be noted in the store now, if it is time for that: each time
    /// while the peer grows by them, seldom later.
    pub(crate) fn settled(&self, domain: &Domain, tally: Tally, now: Timestamp) -> Option<u64> {
        self.of(domain, |entry| {
            entry.load.items.add(tally);
            entry.good_items = entry.good_items.saturating_add(tally.stored);
            let is_growing = entry.allowance.senders_max.is_some() && entry.good_items > 0;
            let noted_ms = entry
                .noted_at
                .map_or(i64::MAX, |noted_at| now.millis_since(noted_at));
            if !is_growing && noted_ms < NOTE_CAME_IN_SECS.saturating_mul(1_000) {
                return None;
            }
            entry.noted_at = Some(now);
            Some(std::mem::take(&mut entry.good_items))
        })
        .flatten()
    }

    /// The peers that handed in most items, at most `top`, and never more than [`LOADS_MAX`].
    pub(crate) fn loads(&self, top: usize) -> Vec<PeerLoad> {
        let mut loads: Vec<PeerLoad> = self.lock().peers.iter().map(|entry| entry.load.clone()).collect();
        loads.sort_by(|a, b| {
            let by_items = b.items.total().cmp(&a.items.total());
            by_items.then_with(|| a.domain.cmp(&b.domain))
        });
        loads.truncate(top.min(LOADS_MAX));
        loads
    }

    /// What one peer has handed in, if it was heard of.
    pub(crate) fn load(&self, domain: &Domain) -> Option<PeerLoad> {
        self.of(domain, |entry| entry.load.clone())
    }

    fn of<T>(&self, domain: &Domain, use_it: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        self.lock().peers.get(domain).map(use_it)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_address(addresses: &mut Addresses, address: Option<IpAddr>, now: Timestamp) -> Result<(), Refusal> {
    let Some(address) = address else { return Ok(()) };
    addresses.check(address, now).map_err(|after_secs| {
        slow(
            "Too many requests from this network were not authentic; come again later.",
            after_secs,
        )
    })
}

fn too_many(after_secs: u64) -> Refusal {
    slow(
        "More requests or bytes than this hub takes from a peer; come again later.",
        after_secs,
    )
}

fn too_many_new(after_secs: u64) -> Refusal {
    slow("Too many unknown hubs at once; come again later.", after_secs)
}

/// Every place is taken.
pub(crate) fn busy() -> Refusal {
    let detail = "This hub is busy with requests of peers; come again later.";
    Refusal::new(ErrorCode::Unavailable, detail).retry_after(UNAVAILABLE_RETRY_SECS)
}
