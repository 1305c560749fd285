//! What each peer uses, while it is heard of.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use tokio::sync::Semaphore;

use super::{Bucket, places};
use crate::limits::{
    PEERS_FORGOTTEN_AT_ONCE, PEERS_TRACKED_MAX, PROVEN_ADDRESSES_MAX, PROVEN_SECS, SENDERS_WINDOW_SECS,
};
use crate::policy::Allowance;

/// A peer of which a request was verified since this process began.
#[derive(Debug)]
pub(super) struct Entry {
    /// What it may use, as of its last verified request.
    pub(super) allowance: Allowance,
    pub(super) own_places: Arc<Semaphore>,
    /// Of its requests.
    pub(super) requests: Bucket,
    /// Of their bodies, and of the mail that they fetch.
    pub(super) bytes: Bucket,
    pub(super) items: Bucket,
    /// Of requests that say that they are from it, but come from elsewhere than before.
    pub(super) claims: Bucket,
    /// Of new epochs.
    pub(super) epochs: Bucket,
    /// The epoch that its last items were taken in.
    pub(super) epoch: Option<String>,
    /// Items that were stored and are not noted in the store of peers yet.
    pub(super) good_items: u64,
    /// When it was last noted there.
    pub(super) noted_at: Option<Timestamp>,
    pub(super) senders: Senders,
    pub(super) load: PeerLoad,
    proven: Vec<(IpAddr, Timestamp)>,
    touched_at: Timestamp,
}

impl Entry {
    fn new(domain: &Domain, allowance: Allowance, now: Timestamp) -> Self {
        Self {
            allowance,
            own_places: places::of_one_peer(),
            requests: Bucket::default(),
            bytes: Bucket::default(),
            items: Bucket::default(),
            claims: Bucket::default(),
            epochs: Bucket::default(),
            epoch: None,
            good_items: 0,
            noted_at: None,
            senders: Senders::new(now),
            load: PeerLoad::new(domain.clone()),
            proven: Vec::new(),
            touched_at: now,
        }
    }

    /// Whether its requests came from there of late. Where a door cannot tell, they all do.
    pub(super) fn is_proven(&self, address: Option<IpAddr>, now: Timestamp) -> bool {
        let is_recent = |since: Timestamp| now.millis_since(since) < PROVEN_SECS.saturating_mul(1_000);
        address.is_none_or(|address| {
            let mut proven = self.proven.iter();
            proven.any(|(other, since)| *other == address && is_recent(*since))
        })
    }

    pub(super) fn prove(&mut self, address: Option<IpAddr>, now: Timestamp) {
        self.touched_at = now;
        self.load.last_in = Some(now);
        let Some(address) = address else { return };
        self.proven.retain(|(other, _)| *other != address);
        if self.proven.len() >= PROVEN_ADDRESSES_MAX {
            self.proven.remove(0);
        }
        self.proven.push((address, now));
    }
}

/// All of them, at most [`PEERS_TRACKED_MAX`].
#[derive(Debug, Default)]
pub(super) struct Peers {
    entries: HashMap<Domain, Entry>,
}

impl Peers {
    pub(super) fn get(&mut self, domain: &Domain) -> Option<&mut Entry> {
        self.entries.get_mut(domain)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// The entry of a peer that was just verified. Where there is no room for another one, those that were not heard of for
    /// the longest time are forgotten, so that many names of one owner keep nobody out.
    pub(super) fn enter(&mut self, domain: &Domain, allowance: Allowance, now: Timestamp) -> &mut Entry {
        if self.entries.len() >= PEERS_TRACKED_MAX && !self.entries.contains_key(domain) {
            self.forget_some();
        }
        let new = || Entry::new(domain, allowance, now);
        let entry = self.entries.entry(domain.clone()).or_insert_with(new);
        entry.allowance = allowance;
        entry
    }

    /// Forgets a part at once: it takes a look at all of them.
    fn forget_some(&mut self) {
        let mut by_age: Vec<(Timestamp, Domain)> = self
            .entries
            .iter()
            .map(|(domain, entry)| (entry.touched_at, domain.clone()))
            .collect();
        by_age.sort_unstable();
        for (_, domain) in by_age.into_iter().take(PEERS_FORGOTTEN_AT_ONCE) {
            self.entries.remove(&domain);
        }
    }
}

/// The distinct senders of a peer, for as long as a window lasts. At most as many as it may have are kept.
#[derive(Debug)]
pub(super) struct Senders {
    since: Timestamp,
    /// Hashes of their DIDs. Two that fall together count as one, which nobody can make use of.
    met: HashSet<u64>,
}

impl Senders {
    fn new(now: Timestamp) -> Self {
        Self {
            since: now,
            met: HashSet::new(),
        }
    }

    /// Whether this one may be among them; it is from then on.
    pub(super) fn admit(&mut self, sender: u64, senders_max: Option<usize>, now: Timestamp) -> bool {
        let Some(senders_max) = senders_max else {
            self.met = HashSet::new();
            return true;
        };
        // Whichever way: a clock that was set back does not make the window last for ever.
        let window_ms = SENDERS_WINDOW_SECS.saturating_mul(1_000);
        if now.millis_since(self.since).saturating_abs() >= window_ms {
            *self = Self::new(now);
        }
        let is_admitted = self.met.contains(&sender) || self.met.len() < senders_max;
        if is_admitted {
            self.met.insert(sender);
        }
        is_admitted
    }
}

/// What one peer has handed in since this process began, or since it was last forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerLoad {
    /// Whose.
    pub domain: Domain,
    /// Verified requests.
    pub requests: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// What became of its items.
    pub items: Tally,
    /// Requests that said that they were from it and were not, or could not be shown to be.
    pub unauthentic: u64,
    /// Requests that were turned away because it had used up its budget.
    pub slowed: u64,
    /// How far its clock is behind this hub's, by its last request, in milliseconds; the time on the way is in it.
    pub skew_ms: Option<i64>,
    /// When a request of it was last verified.
    pub last_in: Option<Timestamp>,
}

impl PeerLoad {
    fn new(domain: Domain) -> Self {
        Self {
            domain,
            requests: 0,
            bytes: 0,
            items: Tally::default(),
            unauthentic: 0,
            slowed: 0,
            skew_ms: None,
            last_in: None,
        }
    }
}

/// Items by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Stored.
    pub stored: u64,
    /// Met before.
    pub duplicate: u64,
    /// Refused for good.
    pub refused: u64,
    /// To come again.
    pub retry: u64,
}

impl Tally {
    /// Adds another one.
    pub fn add(&mut self, other: Self) {
        self.stored = self.stored.saturating_add(other.stored);
        self.duplicate = self.duplicate.saturating_add(other.duplicate);
        self.refused = self.refused.saturating_add(other.refused);
        self.retry = self.retry.saturating_add(other.retry);
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.stored
            .saturating_add(self.duplicate)
            .saturating_add(self.refused)
            .saturating_add(self.retry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{ITEMS_BURST_MIN, REQUESTS};
    use crate::policy::Rate;

    const ALLOWANCE: Allowance = Allowance {
        items: Rate::per_sec(1, ITEMS_BURST_MIN),
        bytes: Rate::per_sec(1, 1),
        requests: REQUESTS,
        senders_max: Some(1),
    };

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_unix_secs(1_796_000_000 + secs)
    }

    fn domain(index: usize) -> Domain {
        Domain::parse(&format!("peer-{index}.example")).unwrap()
    }

    #[test]
    fn who_was_not_heard_of_longest_makes_room() {
        let mut peers = Peers::default();
        let hear = |peers: &mut Peers, index: usize, now: Timestamp| {
            peers.enter(&domain(index), ALLOWANCE, now).prove(None, now);
        };
        for index in 0..PEERS_TRACKED_MAX {
            hear(&mut peers, index, at(i64::try_from(index).unwrap() / 100));
        }
        // The first one speaks again; then come others, one after the other.
        hear(&mut peers, 0, at(300));
        for index in PEERS_TRACKED_MAX..PEERS_TRACKED_MAX + 10 {
            hear(&mut peers, index, at(300));
            assert!(peers.get(&domain(index)).is_some());
        }
        assert!(peers.get(&domain(0)).is_some());
        assert!(peers.get(&domain(1)).is_none());
        assert!(peers.get(&domain(PEERS_TRACKED_MAX - 1)).is_some());
        assert_eq!(
            peers.iter().count(),
            PEERS_TRACKED_MAX - PEERS_FORGOTTEN_AT_ONCE + 10
        );
    }

    #[test]
    fn a_clock_that_was_set_back_begins_another_window() {
        let mut senders = Senders::new(at(0));
        assert!(senders.admit(1, Some(1), at(0)));
        assert!(!senders.admit(2, Some(1), at(1)));
        assert!(senders.admit(2, Some(1), at(-3_600)));
    }
}
