//! `GET /.well-known/aip`: what this hub is, with which key, and within which limits; signed by the hub (§8).
//!
//! The document is signed anew when half of its life is over, and served as the same bytes until then.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use actix_web::http::header::{CACHE_CONTROL, ContentType};
use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::ErrorCode;
use aip_protocol::json::{Json, Object};
use aip_protocol::signature::{Tag, sign};
use aip_protocol::time::Timestamp;
use bytes::Bytes;

use crate::app::App;
use crate::catalog::limits::LISTING_BYTES_MAX;
use crate::config::Registration;
use crate::error::ApiError;
use crate::extract::Query;
use crate::limits::DISCOVERY_FRESH_SECS;
use crate::routes::{self, Endpoint};
use crate::throttle::Cost;

/// What a hub can do, each with the path that does it; a path that is not served here is no feature of this hub.
const FEATURES: &[(&str, &str)] = &[
    ("mail", "/api/v1/messages"),
    ("direct", "/api/v1/messages"),
    ("federation", "/federation/v1/messages"),
    ("backfill", "/federation/v1/outbox"),
    ("mail-status", "/federation/v1/status"),
    ("websocket", "/api/v1/agents/connect"),
    ("inbox", "/api/v1/inbox"),
    ("sse", "/api/v1/inbox/stream"),
    ("dead-letters", "/api/v1/inbox/dead"),
    ("did-resolution", "/1.0/identifiers/{did}"),
    ("listings", "/api/v1/listings"),
    ("search", "/api/v1/search"),
    ("ingest", "/api/v1/ingest/listings"),
    ("aimarket", "/ai-market/v2/invoke"),
    ("aimarket-search", "/ai-market/v2/search"),
];

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint::at("/.well-known/aip").get(discovery)]
}

/// Answers with the signed document.
#[utoipa::path(
    get,
    path = "/.well-known/aip",
    tag = "hub",
    summary = "What this hub is",
    description = "Signed with the tag `aip/1 hub` over the document without `sig`, `prev_kid` and `prev_sig`. \
                   Whoever sees it first pins the key.",
    responses(
        (status = 200, description = "The document", body = Object),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn discovery(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    Query::parse(&req, &[])?;
    let body = app.discovery.current(&app)?;
    let mut response = HttpResponse::Ok();
    response.insert_header(ContentType::json());
    response.insert_header((
        CACHE_CONTROL,
        format!("public, max-age={}", DISCOVERY_FRESH_SECS / 2),
    ));
    Ok(response.body(body))
}

/// The document as it was last signed.
#[derive(Debug, Default)]
pub struct Discovery(Mutex<Option<Signed>>);

#[derive(Debug)]
struct Signed {
    body: Bytes,
    fresh_until: Timestamp,
}

impl Discovery {
    fn current(&self, app: &App) -> Result<Bytes, ApiError> {
        let now = app.clock.now();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(signed) = kept.as_ref().filter(|signed| now < signed.fresh_until) {
            return Ok(signed.body.clone());
        }
        let document =
            document(app, now).map_err(|refusal| ApiError::failed(ErrorCode::Internal, refusal))?;
        let body = Bytes::from(document.to_jcs());
        let fresh_until = now + Duration::from_secs(DISCOVERY_FRESH_SECS / 2);
        *kept = Some(Signed {
            body: body.clone(),
            fresh_until,
        });
        Ok(body)
    }
}

fn document(app: &App, now: Timestamp) -> Result<Json, aip_protocol::error::Refusal> {
    let key = app.hub_key.public().as_str();
    let kid = format!("{}#{key}", app.domain);
    let keys = Json::from([
        ("kid", Json::from(kid.as_str())),
        ("key", Json::from(key)),
        ("not_after", Json::Null),
    ]);
    let software = Json::from([
        ("name", Json::from(env!("CARGO_PKG_NAME"))),
        ("version", Json::from(env!("CARGO_PKG_VERSION"))),
    ]);
    let mut document = Object::from([
        ("aip", Json::from("1")),
        ("domain", Json::from(app.domain.as_str())),
        ("hub", Json::from(app.public_url.as_str())),
        ("keys", Json::from(vec![keys])),
        ("features", Json::from(features(app.market.is_some()))),
        (
            "registration",
            Json::from(registration(app.settings.hub.registration)),
        ),
        ("limits", limits(app)?),
        ("software", software),
        ("epoch", Json::from(app.store.epoch().as_str())),
        ("generated_at", Json::from(now.to_string())),
        ("kid", Json::from(kid)),
    ]);
    let signed = Json::from(document.clone());
    document.insert("sig", sign(&app.hub_key, Tag::Hub, &signed).to_string());
    if let Some(previous) = &app.previous_hub_key {
        // Over the same bytes: neither signature covers the other.
        document.insert("prev_kid", format!("{}#{}", app.domain, previous.public()));
        document.insert("prev_sig", sign(previous, Tag::Hub, &signed).to_string());
    }
    Ok(document.into())
}

/// `has_market`: whether the settings let this hub be a market.
fn features(has_market: bool) -> Vec<&'static str> {
    let served: Vec<&str> = routes::public().iter().map(Endpoint::path).collect();
    FEATURES
        .iter()
        .filter(|(feature, path)| served.contains(path) && (has_market || !feature.starts_with("aimarket")))
        .map(|(feature, _)| *feature)
        .collect()
}

fn registration(policy: Registration) -> &'static str {
    match policy {
        Registration::Open => "open",
        Registration::Invite => "invite",
        Registration::Closed => "closed",
    }
}

/// The limits of §6 as they are set here.
fn limits(app: &App) -> Result<Json, aip_protocol::error::Refusal> {
    let (relay, receive) = (&app.settings.relay, &app.settings.receive);
    let bytes = |count: usize| Json::try_from(u64::try_from(count).unwrap_or(u64::MAX));
    Ok(Json::from([
        ("envelope_bytes", bytes(relay.envelope_bytes_max)?),
        ("batch_envelopes", bytes(relay.batch_envelopes_max)?),
        ("batch_bytes", bytes(relay.batch_bytes_max)?),
        ("mailbox_messages", Json::from(relay.mailbox_messages_max)),
        ("mailbox_bytes", Json::try_from(relay.mailbox_bytes_max)?),
        (
            "mailbox_messages_per_sender",
            Json::from(relay.mailbox_messages_per_sender_max),
        ),
        (
            "sender_messages_per_sec",
            Json::from(relay.sender_messages_per_sec),
        ),
        ("sender_burst_messages", Json::from(relay.sender_burst_messages)),
        ("retention_days", Json::from(relay.retention_days)),
        ("frame_bytes", bytes(receive.frame_bytes_max)?),
        ("credit_messages", Json::from(receive.credit_messages_max)),
        ("listing_bytes", bytes(LISTING_BYTES_MAX)?),
        (
            "listings_per_agent",
            Json::from(app.settings.search.listings_per_agent_max),
        ),
    ]))
}

#[cfg(test)]
mod tests;
