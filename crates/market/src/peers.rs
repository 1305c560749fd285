//! Peers: other hubs that sell, what is known and was decided about each, and under which rules it is dealt with.
//!
//! A peer is named by the address that this hub asks, in one spelling ([`peer_url`]). What it says about itself stays in
//! [`Declared`], apart from what this hub found out; nothing that it says changes its status, its mode or its pinned key.

use std::fmt::Debug;
use std::sync::Arc;

use aip_protocol::market::origin::Origin;
use aip_protocol::multikey::VerifyingKey;
use aip_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::credential::Secret;
use crate::limits::{PEER_FRESH, PEER_URL_CHARS_MAX};

/// Whether a peer is dealt with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerStatus {
    /// It was heard of, and nobody has decided: it is looked at, its capabilities are neither found nor sold.
    Pending,
    /// The operator lets it sell here.
    Active,
    /// It shows another key than the one that is pinned: nothing of it is sold until the operator decides.
    KeyMismatch,
    /// The operator does not want it: it is not even asked.
    Blocked,
}

impl PeerStatus {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Active, Self::KeyMismatch, Self::Blocked];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::KeyMismatch => "key_mismatch",
            Self::Blocked => "blocked",
        }
    }

    /// The status with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// Who sells what a peer offers, to a buyer of this hub. Set by the operator for each peer, and never inferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteMode {
    /// The peer: what the buyer shows goes through, and so does the peer's 402.
    #[default]
    Broker,
    /// This hub, by agreement with the peer: it takes the list price, and settles with the peer's operator elsewhere.
    SellsFor,
    /// This hub, which pays the peer with its own key there ([`PeerKeys`]).
    Reseller,
}

impl RouteMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Broker, Self::SellsFor, Self::Reseller];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Broker => "broker",
            Self::SellsFor => "sells_for",
            Self::Reseller => "reseller",
        }
    }

    /// The mode with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
}

/// What a peer says about itself, cut to size. Nobody has checked it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Declared {
    /// Its name.
    pub name: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Its software's version. A peer without one is a bare provider and no hub.
    pub hub_version: Option<String>,
    /// Where it is called, if not at the usual path: at its own origin, or it is not believed.
    pub invoke_url: Option<String>,
    /// What its capabilities are about.
    pub categories: Vec<String>,
    /// Whether it says that its sellers are paid directly, over x402.
    pub seller_direct: bool,
    /// How many capabilities it says that it has.
    pub capabilities: u64,
}

/// How a peer came to be known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// It is in this hub's settings.
    Seed,
    /// The operator named it.
    Operator,
    /// Somebody announced it.
    Announced,
    /// Another peer, at this address, named it.
    Named(String),
}

/// One peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarketPeer {
    /// Its address in the one spelling ([`peer_url`]); `source_hub` of what it sells.
    pub url: String,
    /// Whether it is dealt with.
    pub status: PeerStatus,
    /// Under which rules its capabilities are called.
    pub mode: RouteMode,
    /// Its key, as it was pinned; `None` before it was first seen. Everything that it signs is checked with this one.
    pub key: Option<VerifyingKey>,
    /// The other key that it shows, while that is not the pinned one.
    pub advertised_key: Option<VerifyingKey>,
    /// How it came to be known.
    pub found: Found,
    /// How many hubs are between it and those that the operator named: 0 for those.
    pub depth: u32,
    /// What it says about itself.
    pub declared: Declared,
    /// When it was first heard of.
    pub first_seen: Timestamp,
    /// When it is asked next.
    pub crawl_at: Timestamp,
    /// When it was last asked.
    pub last_try: Option<Timestamp>,
    /// When its manifest was last good.
    pub last_crawl: Option<Timestamp>,
    /// How often in a row asking it failed.
    pub failures: u32,
    /// Why the last time failed, in this hub's words; `None`: it did not.
    pub last_error: Option<String>,
    /// How many of its capabilities are taken up here; of a pending one, how many are in its preview.
    pub capabilities: u64,
}

impl MarketPeer {
    /// What people call it: the name that it gives itself, or its address.
    pub fn name(&self) -> &str {
        self.declared.name.as_deref().unwrap_or(&self.url)
    }

    /// Whether its capabilities may be called: it is active, and its key is pinned.
    pub fn is_routable(&self) -> bool {
        self.status == PeerStatus::Active && self.key.is_some()
    }

    /// Until when what it offers is sold without asking it again; `None`: it was never asked with success.
    pub fn fresh_until(&self) -> Option<Timestamp> {
        self.last_crawl.map(|at| at + PEER_FRESH)
    }

    /// Whether it is a hub, and not a bare provider: it says which version of a hub it is.
    pub fn is_hub(&self) -> bool {
        self.declared.hub_version.is_some()
    }
}

/// The peers as they are in memory: what every call looks at. It may be a moment old.
pub trait PeerBook: Send + Sync + Debug {
    /// The peer at this address ([`peer_url`]), whatever its status.
    fn peer(&self, url: &str) -> Option<Arc<MarketPeer>>;
}

/// What this hub pays peers with.
pub trait PeerKeys: Send + Sync + Debug {
    /// The key of this hub's account at the peer with this address ([`peer_url`]).
    fn key(&self, url: &str) -> Option<Secret>;
}

/// The one spelling of a peer's address: `http` or `https`, host in lower case, no default port, no `/` at the end; it may
/// have a path. `None` for one with credentials, a query, a fragment or a `|`, with spaces or control characters, that is
/// longer than [`PEER_URL_CHARS_MAX`], or that is none: what it would steer is not wanted, and not quietly left out.
pub fn peer_url(text: &str) -> Option<String> {
    let is_plain = |char: char| char.is_ascii_graphic() && !matches!(char, '?' | '#' | '@' | '|' | '\\');
    if text.len() > PEER_URL_CHARS_MAX || !text.chars().all(is_plain) || matches!(text, "" | "local") {
        return None;
    }
    let url = Origin::of(text, text).ok()?.as_str().to_owned();
    Some(url).filter(|url| url.len() <= PEER_URL_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pitfall 49: another spelling is the same peer.
    #[test]
    fn an_address_has_one_spelling() {
        for (text, url) in [
            ("https://Hub.Example/", "https://hub.example"),
            ("https://hub.example:443", "https://hub.example"),
            ("HTTP://hub.example:8080//", "http://hub.example:8080"),
            ("https://hub.example/family/", "https://hub.example/family"),
            ("https://hub.example/a/../b", "https://hub.example/b"),
            ("http://[::1]:80/", "http://[::1]"),
        ] {
            assert_eq!(peer_url(text).as_deref(), Some(url), "{text}");
            assert_eq!(peer_url(url).as_deref(), Some(url), "{url} stays as it is");
        }
        let long = format!("https://hub.example/{}", "a".repeat(PEER_URL_CHARS_MAX));
        for text in [
            "",
            "local",
            "hub.example",
            "ftp://hub.example",
            "https://user@hub.example",
            "https://hub.example?x",
            "https://hub.example#x",
            "https://hub.example/a|b",
            "https://hub.example/a b",
            "https://hub.example/\n",
            "https:\\\\hub.example",
            &long,
        ] {
            assert_eq!(peer_url(text), None, "{text}");
        }
    }

    #[test]
    fn words_come_back() {
        for status in PeerStatus::ALL {
            assert_eq!(PeerStatus::parse(status.as_str()), Some(status));
        }
        for mode in RouteMode::ALL {
            assert_eq!(RouteMode::parse(mode.as_str()), Some(mode));
        }
        assert_eq!((PeerStatus::parse(""), RouteMode::parse("Broker")), (None, None));
    }
}
