//! Hubs that sell here, as the operator sees them, and what the operator decides about them. An address of one is in the body or in
//! the query: it has slashes.

use aip_market::peers::{Declared, Found, MarketPeer, PeerKeys as _, RouteMode, peer_url};
use aip_market::store::PeerChanged;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::market::signature::{key_text, parse_key};
use aip_protocol::multikey::VerifyingKey;
use aip_protocol::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::accounts::room;
use crate::app::App;
use crate::error::ApiError;
use crate::market::peers::PeerRoom;

pub mod approve;
pub mod block;
pub mod crawl;
pub mod list;
pub mod log;
pub mod mode;
pub mod remove;
pub mod repin;
pub mod show;

/// A hub that sells here, or would.
#[derive(Debug, Serialize, ToSchema)]
pub struct MarketPeerLine {
    /// Its address.
    #[schema(example = "https://two.example")]
    pub url: String,
    /// What it calls itself, or its address.
    pub name: String,
    /// `pending`, `active`, `key_mismatch` or `blocked`.
    #[schema(example = "active")]
    pub status: &'static str,
    /// Under which rules it is called: `broker`, `sells_for` or `reseller`.
    #[schema(example = "broker")]
    pub mode: &'static str,
    /// Its key as it is pinned, in base64; `null` before it was first asked with success.
    pub public_key: Option<String>,
    /// The other key that it shows.
    pub advertised_public_key: Option<String>,
    /// Whether this hub has a key of an account there.
    pub has_payment_key: bool,
    /// How it came to be known: `seed`, `operator`, `announced`, or the address of the hub that named it.
    #[schema(example = "announced")]
    pub found: String,
    /// How many hubs are between it and those that the operator named.
    pub depth: u32,
    /// How many of its capabilities are taken up here; of a pending one, how many are in its preview.
    pub capabilities: u64,
    /// When it was first heard of.
    #[schema(value_type = String, format = "date-time")]
    pub first_seen: Timestamp,
    /// When it is asked next.
    #[schema(value_type = String, format = "date-time")]
    pub crawl_at: Timestamp,
    /// When it was last asked.
    #[schema(value_type = Option<String>, format = "date-time")]
    pub last_try: Option<Timestamp>,
    /// When its manifest was last good.
    #[schema(value_type = Option<String>, format = "date-time")]
    pub last_crawl: Option<Timestamp>,
    /// How often in a row asking it failed.
    pub failures: u32,
    /// Why the last time failed.
    pub last_error: Option<String>,
    /// What it says about itself; nobody has checked it.
    #[schema(value_type = Object)]
    pub declared: Declared,
}

impl MarketPeerLine {
    fn of(peer: MarketPeer, peers: &PeerRoom) -> Self {
        let key = |key: &VerifyingKey| key_text(key);
        Self {
            name: peer.name().to_owned(),
            status: peer.status.as_str(),
            mode: peer.mode.as_str(),
            public_key: peer.key.as_ref().map(key),
            advertised_public_key: peer.advertised_key.as_ref().map(key),
            has_payment_key: peers.keys.key(&peer.url).is_some(),
            found: match peer.found {
                Found::Seed => "seed".to_owned(),
                Found::Operator => "operator".to_owned(),
                Found::Announced => "announced".to_owned(),
                Found::Named(by) => by,
            },
            depth: peer.depth,
            capabilities: peer.capabilities,
            first_seen: peer.first_seen,
            crawl_at: peer.crawl_at,
            last_try: peer.last_try,
            last_crawl: peer.last_crawl,
            failures: peer.failures,
            last_error: peer.last_error,
            declared: peer.declared,
            url: peer.url,
        }
    }
}

fn peers(app: &App) -> Result<&PeerRoom, ApiError> {
    Ok(&room(app)?.peers)
}

/// The address of another hub, in its one spelling.
fn address(peers: &PeerRoom, text: &str) -> Result<String, ApiError> {
    let url = peer_url(text).ok_or_else(|| {
        invalid(
            "url",
            "is the http or https address of a hub, without credentials, query and fragment",
        )
    })?;
    if url == peers.own_url {
        return Err(invalid("url", "is that of another hub, and this is this one's"));
    }
    Ok(url)
}

/// A key in base64, if there is one.
fn key(text: Option<&str>) -> Result<Option<VerifyingKey>, ApiError> {
    let parsed = text.map(parse_key).transpose();
    parsed.map_err(|_refusal| invalid("key", "is the base64 of an Ed25519 key"))
}

fn mode(text: &str) -> Result<RouteMode, ApiError> {
    RouteMode::parse(text).ok_or_else(|| invalid("mode", "is `broker`, `sells_for` or `reseller`"))
}

fn invalid(member: &'static str, should: &str) -> ApiError {
    let detail = format!("The member `{member}` {should}.");
    Refusal::new(ErrorCode::MemberInvalid, detail)
        .with("member", member)
        .into()
}

fn unknown() -> ApiError {
    ApiError::refused(
        ErrorCode::NotFound,
        "This hub knows no other one at that address; `aip-hub market peers list` shows them.",
    )
}

/// What came of a decision.
fn done(changed: PeerChanged, peers: &PeerRoom) -> Result<MarketPeerLine, ApiError> {
    match changed {
        PeerChanged::Done(peer) => Ok(MarketPeerLine::of(peer, peers)),
        PeerChanged::Missing | PeerChanged::Full => Err(unknown()),
        PeerChanged::KeyInUse { url } => {
            let detail = format!(
                "The hub at {url} sells here with that key: one hub is one peer. Block that one first."
            );
            Err(Refusal::new(ErrorCode::IdReused, detail).with("url", url).into())
        }
        PeerChanged::NoKey => Err(invalid(
            "key",
            "must be there: that hub shows no other key than the pinned one",
        )),
    }
}
