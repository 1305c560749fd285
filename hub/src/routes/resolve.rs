//! Resolution: handle or DID → who that is, with which keys, and where its messages go (§3).
//!
//! The answer depends on the agent's history only, so it is rendered once per head and kept as bytes, with the agent.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, ContentType, ETAG, HeaderValue, IF_NONE_MATCH};
use actix_web::{HttpRequest, HttpResponse};
use aip_protocol::document::{delivery_endpoint, did_document};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::identity::{Identity, RouteMode};
use aip_protocol::json::Json;
use aip_protocol::name::{Handle, Name, parse_identifier};
use aip_protocol::time::Timestamp;
use aip_registry::Agent;
use bytes::Bytes;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::header;
use crate::limits::RESOLVE_FRESH_SECS;
use crate::routes::Endpoint;
use crate::throttle::Cost;

pub mod get;
pub mod query;

/// Readers may keep an answer half as long as it is good for.
pub(crate) const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=30");

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/api/v1/resolve/{id}").get(get::resolve),
        Endpoint::at("/api/v1/resolve").get(query::resolve_by_query),
    ]
}

/// Who an agent is, and where its messages go.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ResolveAnswer)]
pub struct Answer {
    /// `name#domain`
    #[schema(example = "alice#aigentix.org")]
    pub handle: String,
    /// The agent's DID.
    #[schema(example = "did:aip:aigentix.org:alice")]
    pub did: String,
    /// `relay`: the hub keeps messages; `direct`: the agent has an endpoint of its own.
    #[schema(example = "relay")]
    pub route_mode: &'static str,
    /// Where to POST an envelope to.
    #[schema(example = "https://aigentix.org/relay/alice")]
    pub endpoint: String,
    /// The DID document, derived from the newest operation.
    #[schema(value_type = Object)]
    pub did_document: Json,
    /// `seq` of the newest operation, and the hashes of the first and the newest.
    #[schema(value_type = Object)]
    pub history: Json,
    /// The DID that the agent says it moved to; that one's history has to say so too (`docs/protocol/federation.md`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// When to ask again, RFC 3339.
    #[schema(value_type = String)]
    pub expires_at: Timestamp,
}

impl Answer {
    /// The answer for an identity, good from `now` on for a short while. `public_url` is this hub's address.
    pub fn new(identity: &Identity, public_url: &str, now: Timestamp) -> Self {
        let head = identity.head();
        Self {
            endpoint: delivery_endpoint(head, public_url),
            handle: identity.did().handle().to_string(),
            did: identity.did().to_string(),
            route_mode: match head.route_mode {
                RouteMode::Relay => "relay",
                RouteMode::Direct => "direct",
            },
            did_document: did_document(head, public_url),
            history: identity.summary(),
            moved_to: head
                .json
                .get("moved_to")
                .and_then(Json::as_str)
                .map(str::to_owned),
            expires_at: now + Duration::from_secs(RESOLVE_FRESH_SECS),
        }
    }
}

/// An answer as it goes out.
#[derive(Debug)]
struct Rendered {
    body: Bytes,
    etag: HeaderValue,
    /// Served until then; the body's `expires_at` lies later.
    fresh_until: Timestamp,
}

/// The rendered answer for an agent, which is kept with it.
fn rendered(app: &App, agent: &Agent) -> Result<Arc<Rendered>, ApiError> {
    let now = app.clock.now();
    if let Some(rendered) = agent
        .kept
        .get::<Rendered>()
        .filter(|rendered| now < rendered.fresh_until)
    {
        return Ok(rendered);
    }
    let answer = Answer::new(&agent.identity, &app.public_url, now);
    let body = serde_json::to_vec(&answer).map_err(|error| ApiError::failed(ErrorCode::Internal, error))?;
    let rendered = Arc::new(Rendered {
        body: body.into(),
        etag: etag(&agent.identity)?,
        fresh_until: now + Duration::from_secs(RESOLVE_FRESH_SECS / 2),
    });
    agent.kept.put(Arc::clone(&rendered));
    Ok(rendered)
}

/// The answer for a still percent-encoded handle or DID.
async fn answer(app: &App, req: &HttpRequest, raw: &str) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, req)?;
    let handle = parse_identifier(raw)?;
    if handle.domain != app.domain
        && let Some(federation) = &app.federation
    {
        let found = federation.find(&handle.did(), app.throttle.address(req)).await?;
        return remote(app, found, header(req, &IF_NONE_MATCH));
    }
    let agent = agent(app, &handle).await?;
    respond(app, &agent, StatusCode::OK, header(req, &IF_NONE_MATCH))
}

/// The answer for an agent of another domain: its hub was asked, and its history checked here.
fn remote(
    app: &App,
    (identity, hub): (Identity, String),
    known: Option<&str>,
) -> Result<HttpResponse, ApiError> {
    if identity.is_deactivated() {
        return Err(deactivated(&identity));
    }
    let etag = etag(&identity)?;
    if is_known(known, &etag) {
        return Ok(unchanged(etag));
    }
    let answer = Answer::new(&identity, &hub, app.clock.now());
    Ok(HttpResponse::Ok()
        .insert_header((ETAG, etag))
        .insert_header((CACHE_CONTROL, FRESH))
        .json(answer))
}

/// The handle of a name at this hub.
pub(crate) fn local(app: &App, name: Name) -> Handle {
    Handle {
        name,
        domain: app.domain.clone(),
    }
}

/// The agent with a handle.
///
/// # Errors
/// 404 `not_found`.
pub(crate) async fn agent(app: &App, handle: &Handle) -> Result<Arc<Agent>, ApiError> {
    if let Some(agent) = app.registry.resolve(&handle.did()).await? {
        return Ok(agent);
    }
    if handle.domain == app.domain {
        return Err(ApiError::refused(
            ErrorCode::NotFound,
            "No agent of this hub has this name.",
        ));
    }
    let detail = format!(
        "This hub speaks for {} only; ask the hub of {}.",
        app.domain, handle.domain
    );
    Err(Refusal::new(ErrorCode::NotFound, detail).into())
}

/// The resolve answer with its validator; 304 where the caller has it, 410 for a deactivated agent.
pub(crate) fn respond(
    app: &App,
    agent: &Agent,
    status: StatusCode,
    known: Option<&str>,
) -> Result<HttpResponse, ApiError> {
    if agent.identity.is_deactivated() {
        return Err(deactivated(&agent.identity));
    }
    let rendered = rendered(app, agent)?;
    if is_known(known, &rendered.etag) {
        return Ok(unchanged(rendered.etag.clone()));
    }
    Ok(HttpResponse::build(status)
        .insert_header((ETAG, rendered.etag.clone()))
        .insert_header((CACHE_CONTROL, FRESH))
        .insert_header(ContentType::json())
        .body(rendered.body.clone()))
}

fn deactivated(identity: &Identity) -> ApiError {
    let detail = "The agent ended its history: nothing reaches it, and its name stays taken.";
    let history = serde_json::Value::from(identity.summary());
    Refusal::new(ErrorCode::AgentDeactivated, detail)
        .with("history", history)
        .into()
}

/// A weak validator: `expires_at` moves on while the identity stays the same.
fn etag(identity: &Identity) -> Result<HeaderValue, ApiError> {
    let etag = HeaderValue::try_from(format!("W/\"{}\"", identity.head_hash()));
    etag.map_err(|error| ApiError::failed(ErrorCode::Internal, error))
}

/// Whether the caller has this answer.
fn is_known(known: Option<&str>, etag: &HeaderValue) -> bool {
    known.is_some_and(|known| {
        known
            .split(',')
            .any(|one| one.trim().as_bytes() == etag.as_bytes())
    })
}

fn unchanged(etag: HeaderValue) -> HttpResponse {
    HttpResponse::NotModified()
        .insert_header((ETAG, etag))
        .insert_header((CACHE_CONTROL, FRESH))
        .finish()
}

#[cfg(test)]
mod tests;
