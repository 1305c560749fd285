//! The section about hubs of other domains.

use aip_protocol::name::Domain;
use serde::{Deserialize, Serialize};
use url::Url;

use super::section::section;

/// Which peers this hub has to do with, where nothing was decided about a single one (spec §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerPolicy {
    /// All, except those that were blocked.
    Open,
    /// Those that were allowed only.
    Allowlist,
    /// All, except those in `blocked` and those that were blocked.
    Blocklist,
    /// Mail with all, catalogs with those that were allowed only.
    Limited,
}

section! {
    /// Mail between this hub and hubs of other domains (spec §8). What leaves the hub also obeys `[egress]`.
    pub struct FederationSettings {
        /// Whether this hub federates at all.
        pub enabled: bool = true;
        /// Which peers it has to do with: `open`, `allowlist`, `blocklist` or `limited`. What was decided about a single one
        /// (`aip-hub peers allow|block|limit`) wins.
        pub policy: PeerPolicy = PeerPolicy::Open;
        /// Domains that count as allowed. This hub's own need not be among them.
        pub allowed: Vec<String> = Vec::new();
        /// Domains that count as blocked.
        pub blocked: Vec<String> = Vec::new();
        /// Where peers are, instead of asking their domain: `domain=https://hub.example.org`. For laboratories, and for
        /// networks without public names.
        pub static_peers: Vec<String> = Vec::new();
        /// Whether a new peer starts small, and may do more as it grows older and its mail is good.
        pub ramp: bool = true;
        /// Messages per second that a known peer may hand in, to each process of this hub.
        pub peer_items_per_sec: u32 = 500, in 1..=1_000_000;
        /// Bytes per second that a known peer may hand in, to each process of this hub.
        pub peer_bytes_per_sec: u64 = 16 * 1024 * 1024, in 65_536..=1 << 40;
        /// Messages that may wait for one peer.
        pub queue_messages_max: u32 = 100_000, in 1..=100_000_000;
        /// Bytes that may wait for one peer.
        pub queue_bytes_max: u64 = 1024 * 1024 * 1024, in 65_536..=1 << 50;
        /// Messages of one sender that may wait for one peer.
        pub queue_messages_per_sender_max: u32 = 1_000, in 1..=10_000_000;
        /// Time that a peer has to take in one batch, in seconds.
        pub push_timeout_secs: u64 = 30, in 1..=600;
        /// Requests to peers at once.
        pub requests_max: usize = 256, in 1..=10_000;
    }
}

/// Reads an entry of `static_peers`; `None` when it has another form.
pub fn static_peer(entry: &str) -> Option<(Domain, Url)> {
    let (domain, url) = entry.split_once('=')?;
    Some((Domain::parse(domain.trim()).ok()?, Url::parse(url.trim()).ok()?))
}
