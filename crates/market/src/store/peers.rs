//! What is kept of peers: each is one row that changes in steps, with a preview of what a pending one offers and a log of what
//! was decided.

use aip_protocol::multikey::VerifyingKey;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::peers::{Declared, Found, MarketPeer, RouteMode};

/// A change of one peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerChange {
    /// It was heard of. A peer that is known is not changed by this, with one exception: one that the settings name
    /// ([`Found::Seed`]) is let sell, unless it is blocked or frozen.
    Met {
        /// How.
        found: Found,
        /// How far away.
        depth: u32,
    },
    /// The operator lets it sell; with a key, only with that one. Else the key that is pinned stays, or the first that it
    /// shows is taken. Makes it if it is not there. A peer that shows another key than the pinned one stays as it is.
    Approved {
        /// The key that the operator knows.
        key: Option<VerifyingKey>,
    },
    /// The operator does not want it. Makes it if it is not there, so that it cannot come.
    Blocked,
    /// The operator takes this key in place of the pinned one, or the key that it shows. It becomes active if it was frozen.
    Repinned {
        /// The key; `None`: the one that it shows.
        key: Option<VerifyingKey>,
    },
    /// The operator says under which rules it is called.
    Mode(RouteMode),
    /// It is asked as soon as may be.
    CrawlAt(Timestamp),
    /// It was asked, and answered well.
    Crawled(Crawled),
    /// It was asked, and that failed.
    Failed {
        /// Why, in this hub's words.
        error: String,
        /// When it is asked next.
        next: Timestamp,
    },
    /// It shows a key that is not the pinned one.
    Mismatched {
        /// The key.
        shown: VerifyingKey,
        /// When it is asked next.
        next: Timestamp,
    },
}

/// What a good answer of a peer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crawled {
    /// The key that has signed it. It is pinned where none is; where another one is, the peer is frozen and the rest ignored.
    pub key: VerifyingKey,
    /// What it says about itself.
    pub declared: Declared,
    /// How many of its capabilities are taken up.
    pub capabilities: u64,
    /// Some of what it offers, where it is pending.
    pub preview: Vec<PreviewRow>,
    /// When it is asked next.
    pub next: Timestamp,
}

/// A capability of a peer that nobody has let sell: shown to the operator, found by nobody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewRow {
    /// Its product.
    pub product_id: String,
    /// Its capability.
    pub capability_id: String,
    /// Its name, cut to size.
    pub name: String,
    /// What it does, cut to size.
    pub description: String,
    /// What a call would cost, in millionths of a dollar.
    pub price_micros: u64,
}

/// What came of a change.
#[expect(clippy::large_enum_variant, reason = "it is looked at once, and never kept")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerChanged {
    /// As it is now.
    Done(MarketPeer),
    /// There is no such peer, and this change makes none.
    Missing,
    /// As many are pending as may be.
    Full,
    /// Another active peer has this key: one hub is one peer.
    KeyInUse {
        /// Its address.
        url: String,
    },
    /// It shows no key that could be taken.
    NoKey,
}

/// Who decided what about a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerNote {
    /// `operator` or `hub`.
    pub actor: &'static str,
    /// `add`, `approve`, `block`, `repin`, `mode`, `crawl`, `remove`, `freeze`, `thaw`, `pin`.
    pub action: &'static str,
    /// Details, for people.
    pub detail: String,
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerLine {
    /// From 1, without a gap.
    pub number: u64,
    /// The peer's address.
    pub peer: String,
    /// See [`PeerNote`].
    pub actor: String,
    /// See [`PeerNote`].
    pub action: String,
    /// See [`PeerNote`].
    pub detail: String,
    /// When.
    pub at: Timestamp,
}

/// What is kept of peers. No page is longer than [`PAGE_MAX`](crate::limits::PAGE_MAX).
#[async_trait]
pub trait MarketPeers {
    /// One peer.
    async fn market_peer(&self, url: &str) -> Result<Option<MarketPeer>, StoreError>;

    /// Peers in the order of their addresses, after `after`; at most `limit` and a page.
    async fn market_peers(&self, after: Option<&str>, limit: u32) -> Result<Vec<MarketPeer>, StoreError>;

    /// What is known of the offers of a pending peer.
    async fn peer_preview(&self, url: &str) -> Result<Vec<PreviewRow>, StoreError>;

    /// Changes one, and adds a line to the log if something came of it. A freeze and a first pin add theirs by themselves.
    async fn change_peer(
        &self,
        url: &str,
        change: PeerChange,
        note: Option<PeerNote>,
        now: Timestamp,
    ) -> Result<PeerChanged, StoreError>;

    /// Takes up to `limit` peers whose time to be asked has come, the longest waiting first, for this process: they are not
    /// due again before `until`. Blocked ones are never due, and pending ones come after all others: strangers name as many
    /// slow ones as they like, and nobody who sells waits for them.
    async fn due_peers(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<MarketPeer>, StoreError>;

    /// Forgets a peer; whether it was there. Its log stays.
    async fn forget_peer(
        &self,
        url: &str,
        note: Option<PeerNote>,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Forgets pending peers that strangers named, that were first heard of before `before` and gave no good answer since; how
    /// many, at most `limit`.
    async fn forget_silent_peers(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;

    /// The log, the newest first, before `before` (`None`: from the end); at most `limit` and a page.
    async fn peer_lines(&self, before: Option<u64>, limit: u32) -> Result<Vec<PeerLine>, StoreError>;
}
