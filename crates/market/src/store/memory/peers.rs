//! Peers in memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use aip_protocol::multikey::VerifyingKey;
use aip_protocol::time::Timestamp;

use crate::limits::PAGE_MAX;
use crate::peers::{Found, MarketPeer, PeerStatus};
use crate::store::{PeerLine, PreviewRow};

/// All of them, and their log.
#[derive(Debug, Default)]
pub(super) struct PeerState {
    peers: BTreeMap<String, MarketPeer>,
    previews: BTreeMap<String, Vec<PreviewRow>>,
    lines: Vec<PeerLine>,
}

impl PeerState {
    pub(super) fn one(&self, url: &str) -> Option<MarketPeer> {
        self.peers.get(url).cloned()
    }

    pub(super) fn page(&self, after: Option<&str>, limit: u32) -> Vec<MarketPeer> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.peers.range::<str, _>((start, Bound::Unbounded));
        let limit = limit.min(PAGE_MAX) as usize;
        later.take(limit).map(|(_, peer)| peer.clone()).collect()
    }

    pub(super) fn preview(&self, url: &str) -> Vec<PreviewRow> {
        self.previews.get(url).cloned().unwrap_or_default()
    }

    pub(super) fn lines(&self, before: Option<u64>, limit: u32) -> Vec<PeerLine> {
        let older = self.lines.iter().rev();
        let older = older.filter(|line| before.is_none_or(|before| line.number < before));
        older.take(limit.min(PAGE_MAX) as usize).cloned().collect()
    }

    pub(super) fn with_key(&self, key: &VerifyingKey, limit: u32) -> Vec<MarketPeer> {
        let sells = |peer: &&MarketPeer| matches!(peer.status, PeerStatus::Active | PeerStatus::KeyMismatch);
        let holders = self.peers.values().filter(sells);
        let holders = holders.filter(|peer| peer.key.as_ref() == Some(key));
        holders.take(limit as usize).cloned().collect()
    }

    pub(super) fn pending(&self) -> u64 {
        let pending = self.peers.values();
        pending.filter(|peer| peer.status == PeerStatus::Pending).count() as u64
    }

    pub(super) fn due(&self, now: Timestamp, limit: u32) -> Vec<MarketPeer> {
        let is_due = |peer: &&MarketPeer| peer.crawl_at <= now && peer.status != PeerStatus::Blocked;
        let mut due: Vec<_> = self.peers.values().filter(is_due).cloned().collect();
        let turn = |peer: &MarketPeer| {
            (
                peer.status == PeerStatus::Pending,
                peer.crawl_at,
                peer.url.clone(),
            )
        };
        due.sort_by_cached_key(turn);
        due.truncate(limit as usize);
        due
    }

    pub(super) fn silent(&self, before: Timestamp, limit: u32) -> Vec<MarketPeer> {
        let is_silent = |peer: &&MarketPeer| {
            let is_strangers = matches!(peer.found, Found::Announced | Found::Named(_));
            let has_answered = peer.last_crawl.is_some_and(|at| at >= before);
            peer.status == PeerStatus::Pending && is_strangers && peer.first_seen < before && !has_answered
        };
        let mut silent: Vec<_> = self.peers.values().filter(is_silent).cloned().collect();
        silent.sort_by(|one, next| (one.first_seen, &one.url).cmp(&(next.first_seen, &next.url)));
        silent.truncate(limit as usize);
        silent
    }

    pub(super) fn put(&mut self, peer: &MarketPeer, preview: Option<&[PreviewRow]>) {
        if let Some(preview) = preview {
            self.previews.insert(peer.url.clone(), preview.to_vec());
        }
        self.peers.insert(peer.url.clone(), peer.clone());
    }

    pub(super) fn drop(&mut self, url: &str) -> bool {
        self.previews.remove(url);
        self.peers.remove(url).is_some()
    }

    pub(super) fn last_line(&self) -> u64 {
        self.lines.last().map_or(0, |line| line.number)
    }

    pub(super) fn add_line(&mut self, line: &PeerLine) {
        self.lines.push(line.clone());
    }
}
