//! `GET /ai-market/v2/federation/peers`: the hubs that sell here, and those that wait to be let in.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::peers::{Declared, Found, MarketPeer, PeerStatus};
use aip_protocol::market::{signature, time_text};
use aip_protocol::multikey::VerifyingKey;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::MarketError;
use crate::market::limits::PEERS_TOLD_MAX;
use crate::routes::market::{PROTOCOL, room};
use crate::throttle::Cost;

/// Hubs that sell here, and others.
#[derive(Debug, Serialize, ToSchema)]
pub struct Peers {
    /// Always true.
    pub success: bool,
    /// Those that sell here, and those that did and show another key now.
    pub peers: Vec<Peer>,
    /// How many there are.
    pub count: usize,
    /// Those that nobody has decided about: nothing of them is found or sold here. The last that were heard of.
    pub pending: Vec<Peer>,
    /// How many there are.
    pub pending_count: usize,
    /// Whether anybody may announce a hub.
    pub open_federation: bool,
    /// `v2`.
    pub protocol_version: &'static str,
}

/// Another hub: what this one found out about it, and under `declared` what it says about itself, where somebody has decided
/// about it: the words of a stranger are not published before.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MarketPeerView)]
pub struct Peer {
    /// Its address.
    pub url: String,
    /// What it calls itself, or its address; of one that is pending its address.
    pub name: String,
    /// `active`, `key_mismatch` or `pending`.
    pub status: &'static str,
    /// Whether what it sells is sold here.
    pub trusted: bool,
    /// How many of its capabilities are taken up here.
    pub capabilities_count: u64,
    /// Where its discovery document is.
    pub well_known_url: String,
    /// Its key as it is pinned here, in base64.
    pub public_key: Option<String>,
    /// The other one that it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advertised_public_key: Option<String>,
    /// Why it is frozen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin_reject_reason: Option<&'static str>,
    /// When it was first heard of.
    pub first_seen: String,
    /// When its manifest was last good.
    pub last_crawl: Option<String>,
    /// How many hubs are between it and those that the operator named.
    pub depth: u32,
    /// The hub that named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discoverer: Option<String>,
    /// What it says about itself; of one that is pending nothing.
    #[schema(value_type = Object)]
    pub declared: Declared,
}

impl Peer {
    fn of(peer: &MarketPeer) -> Self {
        let key = |key: &VerifyingKey| signature::key_text(key);
        let is_frozen = peer.status == PeerStatus::KeyMismatch;
        // Models read this: what nobody has read before does not reach them.
        let (name, declared) = match peer.status {
            PeerStatus::Pending => (peer.url.clone(), Declared::default()),
            _ => (peer.name().to_owned(), peer.declared.clone()),
        };
        Self {
            name,
            status: peer.status.as_str(),
            trusted: peer.is_routable(),
            capabilities_count: peer.capabilities,
            well_known_url: format!("{}/.well-known/ai-market.json", peer.url),
            public_key: peer.key.as_ref().map(key),
            advertised_public_key: peer.advertised_key.as_ref().map(key),
            pin_reject_reason: is_frozen.then_some("it shows another key than the one that is pinned"),
            first_seen: time_text(peer.first_seen),
            last_crawl: peer.last_crawl.map(time_text),
            depth: peer.depth,
            discoverer: match &peer.found {
                Found::Named(by) => Some(by.clone()),
                _ => None,
            },
            declared,
            url: peer.url.clone(),
        }
    }
}

/// Shows the hubs that sell here.
#[utoipa::path(
    get,
    path = "/ai-market/v2/federation/peers",
    operation_id = "market_peers",
    tag = "market",
    summary = "Hubs that sell here",
    responses(
        (status = 200, description = "At most 200 of each kind", body = Peers),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "This hub has no market"),
    )
)]
pub async fn peers(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Request, &req)?;
    let room = &room(&app)?.peers;
    let all = room.book.all();
    let with =
        |statuses: &'static [PeerStatus]| all.iter().filter(move |peer| statuses.contains(&peer.status));
    let decided = || with(&[PeerStatus::Active, PeerStatus::KeyMismatch]);
    let mut pending: Vec<_> = with(&[PeerStatus::Pending]).collect();
    pending.sort_by_key(|peer| std::cmp::Reverse(peer.first_seen));
    Ok(HttpResponse::Ok().json(Peers {
        success: true,
        peers: decided()
            .take(PEERS_TOLD_MAX)
            .map(|peer| Peer::of(peer))
            .collect(),
        count: decided().count(),
        pending_count: pending.len(),
        pending: pending
            .into_iter()
            .take(PEERS_TOLD_MAX)
            .map(|peer| Peer::of(peer))
            .collect(),
        open_federation: room.is_enabled && room.is_open,
        protocol_version: PROTOCOL,
    }))
}
