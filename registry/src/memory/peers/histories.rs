//! Histories of agents elsewhere, in memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use aip_federation::peers::{HistoryCap, HistoryCaps, KnownHistory};
use aip_protocol::name::{Did, Domain};

use crate::peers::{list_text, whole};

/// Histories, by the domains of their agents.
#[derive(Debug, Default)]
pub(super) struct Histories(BTreeMap<Domain, BTreeMap<Did, Kept>>);

#[derive(Debug)]
struct Kept {
    history: KnownHistory,
    bytes: u64,
}

impl Histories {
    pub(super) fn get(&self, did: &Did) -> Option<&KnownHistory> {
        let kept = self.0.get(&did.domain())?.get(did)?;
        Some(&kept.history)
    }

    pub(super) fn keep(
        &mut self,
        history: &KnownHistory,
        caps: HistoryCaps,
        is_stranger: impl Fn(&Domain) -> bool,
    ) {
        let history = KnownHistory {
            fetched_at: whole(history.fetched_at),
            ..history.clone()
        };
        let age = |history: &KnownHistory| (history.operations.len(), history.fetched_at);
        if self
            .get(&history.did)
            .is_some_and(|known| age(known) > age(&history))
        {
            return;
        }
        let (peer, bytes) = (history.did.domain(), list_text(&history.operations).len() as u64);
        let of_peer = self.0.entry(peer.clone()).or_default();
        of_peer.insert(history.did.clone(), Kept { history, bytes });
        self.clear(caps.per_peer, |of| *of == peer, &is_stranger);
        if !caps.all.holds(self.filled()) {
            self.clear(caps.all.cleared(), |_| true, &is_stranger);
        }
    }

    pub(super) fn forget(&mut self, did: &Did) -> bool {
        let peer = did.domain();
        let Some(of_peer) = self.0.get_mut(&peer) else {
            return false;
        };
        let is_known = of_peer.remove(did).is_some();
        if of_peer.is_empty() {
            self.0.remove(&peer);
        }
        is_known
    }

    fn filled(&self) -> HistoryCap {
        let all = || self.0.values().flat_map(BTreeMap::values);
        HistoryCap {
            histories: all().count() as u64,
            bytes: all().map(|kept| kept.bytes).sum(),
        }
    }

    /// Forgets those of some peers that have no room: of strangers first, and then what was not fetched for longest.
    fn clear(
        &mut self,
        cap: HistoryCap,
        is_of: impl Fn(&Domain) -> bool,
        is_stranger: impl Fn(&Domain) -> bool,
    ) {
        let mut ordered = Vec::new();
        for (peer, kept) in self.0.iter().filter(|(peer, _)| is_of(peer)) {
            let is_stranger = is_stranger(peer);
            ordered.extend(kept.values().map(|kept| {
                let newest = Reverse(kept.history.fetched_at);
                (is_stranger, newest, &kept.history.did, kept.bytes)
            }));
        }
        ordered.sort_unstable();
        let mut filled = HistoryCap {
            histories: 0,
            bytes: 0,
        };
        let mut over = Vec::new();
        for (_, _, did, bytes) in ordered {
            filled.histories += 1;
            filled.bytes += bytes;
            if !cap.holds(filled) {
                over.push(did.clone());
            }
        }
        for did in &over {
            self.forget(did);
        }
    }
}
