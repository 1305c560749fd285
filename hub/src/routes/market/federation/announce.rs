//! `POST /ai-market/v2/federation/announce`: a hub says that it is there, or that it sells something else than before. It is an
//! invitation to look: it has neither a time nor a nonce, so that anybody can say it again, and nothing that it says is believed.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::peers::{MarketPeer, PeerBook as _, PeerStatus, peer_url};
use aip_market::refusal::{MarketCode, MarketRefusal};
use aip_market::store::PeerChanged;
use aip_protocol::market::{Members, Value, announce};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::MarketError;
use crate::market::limits::ANNOUNCE_BYTES_MAX;
use crate::market::peers::PeerRoom;
use crate::routes::market::{PROTOCOL, read_within, room, text};
use crate::throttle::Cost;

/// Where a hub's discovery document is, below its address.
const DISCOVERY_PATH: &str = "/.well-known/ai-market.json";

/// What becomes of it.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "AIMarket's answer has so many")]
pub struct Announced {
    /// Always true.
    pub success: bool,
    /// Always true.
    pub acknowledged: bool,
    /// The hub's address in its one spelling.
    pub hub_url: String,
    /// Whether this hub had not heard of it.
    pub peer_added: bool,
    /// `pending`: it waits for the operator. `known`: nothing has changed.
    #[schema(example = "pending")]
    pub status: &'static str,
    /// Whether what it sells is sold here, too.
    pub trusted: bool,
    /// Whether it is looked at soon: of a hub that sells here, if it has signed this.
    pub crawl_scheduled: bool,
    /// `v2`.
    pub protocol_version: &'static str,
}

/// Takes an announcement.
#[utoipa::path(
    post,
    path = "/ai-market/v2/federation/announce",
    operation_id = "market_announce",
    tag = "market",
    summary = "Say that a hub is there",
    description = "A hub that is not known waits for the operator of this one: nothing of it is found or sold. One that is known is \
                   not changed; if it sells here and has signed this, it is looked at soon.",
    request_body(content = Object, content_type = "application/json",
                 description = "`hub_url`, and perhaps `well_known_url`, `capabilities_count`, `hub_name`, \
                                `signer_public_key` and `signature`"),
    responses(
        (status = 200, description = "Heard", body = Announced),
        (status = 400, description = "`hub_url` is not the address of another hub that could be asked"),
        (status = 403, description = "This hub lets nobody name others"),
        (status = 422, description = "There is no `hub_url`"),
        (status = 429, description = "Too many requests from one address, or too many hubs wait"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn announce(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Purse, &req)?;
    let peers = &room(&app)?.peers;
    let body = read_within(&app, &req, payload, ANNOUNCE_BYTES_MAX).await?;
    let url = hub_url(peers, &body)?;
    let answer = match peers.book.peer(&url) {
        Some(known) => known_peer(peers, &known, body).await?,
        None => new_peer(peers, &url).await?,
    };
    Ok(HttpResponse::Ok().json(answer))
}

/// The address that is announced, which this hub could ask.
fn hub_url(peers: &PeerRoom, body: &Members) -> Result<String, MarketError> {
    let named = text(body, "hub_url")?;
    let invalid =
        |detail: String| MarketRefusal::new(MarketCode::HubUrlInvalid, detail).with("member", "hub_url");
    let url = peer_url(named).ok_or_else(|| {
        invalid(
            "`hub_url` is the http or https address of a hub, without credentials, query and fragment."
                .to_owned(),
        )
    })?;
    peers
        .check(&url)
        .map_err(|error| invalid(format!("This hub does not ask that address: {error}.")))?;
    if url == peers.own_url {
        return Err(invalid("That is this hub.".to_owned()).into());
    }
    // The reference sends it empty where it is at its usual place.
    let said = body
        .get("well_known_url")
        .and_then(Value::as_str)
        .filter(|said| !said.is_empty());
    if said.is_some_and(|said| !is_discovery(said, &url)) {
        let detail =
            format!("`well_known_url` is {url}{DISCOVERY_PATH}: a hub's document is below its address.");
        return Err(invalid(detail).with("member", "well_known_url").into());
    }
    Ok(url)
}

fn is_discovery(said: &str, url: &str) -> bool {
    let base = said.strip_suffix(DISCOVERY_PATH).and_then(peer_url);
    base.is_some_and(|base| base == url)
}

async fn new_peer(peers: &PeerRoom, url: &str) -> Result<Announced, MarketError> {
    if !peers.is_enabled || !peers.is_open {
        let detail = "This hub takes no announcements: ask its operator to add yours.";
        return Err(MarketError::refused(MarketCode::AnnouncementsClosed, detail));
    }
    if let PeerChanged::Done(peer) = peers.announced(url).await? {
        return Ok(answered(&peer, true, false));
    }
    let detail = "As many hubs wait for the operator of this one as there may be.";
    Err(MarketError::refused(MarketCode::TooManyHubs, detail))
}

/// Whatever it says, nothing is changed by it: a stranger could have said it.
async fn known_peer(peers: &PeerRoom, peer: &MarketPeer, body: Members) -> Result<Announced, MarketError> {
    let is_its_own = || {
        announce::verify(&Value::from(body), peer.key.as_slice())
            .verdict
            .is_true()
    };
    let is_looked_at = peers.is_enabled && peer.status == PeerStatus::Active && is_its_own();
    let is_scheduled = is_looked_at && peers.crawl_early(peer).await?;
    Ok(answered(peer, false, is_scheduled))
}

fn answered(peer: &MarketPeer, peer_added: bool, crawl_scheduled: bool) -> Announced {
    Announced {
        success: true,
        acknowledged: true,
        hub_url: peer.url.clone(),
        peer_added,
        status: if peer_added { "pending" } else { "known" },
        trusted: peer.status == PeerStatus::Active,
        crawl_scheduled,
        protocol_version: PROTOCOL,
    }
}
