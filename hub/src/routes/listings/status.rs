//! `GET /api/v1/listings/{id}/status`: why a listing is found, or is not (§9).

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::show::origin;
use super::{find, held};
use crate::app::App;
use crate::catalog::Held;
use crate::error::ApiError;
use crate::extract::Query;
use crate::throttle::Cost;

/// How a listing stands.
#[derive(Debug, Serialize, ToSchema)]
pub struct ListingStatus {
    /// The hub's id of the listing.
    pub id: String,
    /// The version that the hub holds.
    pub version: u64,
    /// `signed` or `ingested`.
    #[schema(example = "signed")]
    pub origin: &'static str,
    /// `found`, `waiting` (it will be found in a moment) or `hidden`.
    #[schema(example = "found")]
    pub status: &'static str,
    /// Why it is not found, or not by its meaning: `quarantined` (the operator is to look at it first), `rejected`,
    /// `not_indexed_yet`, `not_embedded_yet`, `expired`, `agent_suspended`, `agent_ended`.
    pub reasons: Vec<&'static str>,
    /// Whether this version is found by its text.
    pub indexed: bool,
    /// Whether this version is found by its meaning.
    pub embedded: bool,
    /// The language that its text is read in.
    pub language: Option<String>,
    /// What is unusual about it.
    pub flags: Vec<String>,
}

/// Tells how a listing stands.
#[utoipa::path(
    get,
    path = "/api/v1/listings/{id}/status",
    operation_id = "listing_status",
    tag = "search",
    summary = "Why a listing is found, or is not",
    params(("id" = String, Path, description = "The hub's id of the listing")),
    responses(
        (status = 200, description = "How it stands", body = ListingStatus),
        (status = 404, description = "No such listing, or it was deleted"),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn status(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    Query::parse(&req, &[])?;
    let stored = find(&app, &req).await?;
    let state = app.catalog.state(&stored.id).await;
    let agent = app.registry.resolve(&stored.agent).await?;
    let has_ended = agent
        .as_ref()
        .is_some_and(|agent| agent.identity.is_deactivated());
    let is_suspended = !has_ended && agent.is_some_and(|agent| !agent.takes_part());
    let has_models = !app.catalog.stats().spaces.is_empty();
    let is_expired = stored.expires_at.is_some_and(|end| end <= app.clock.now());
    let held = held(&app, &stored);
    let hidden = [
        ("quarantined", held == Held::Quarantined),
        ("rejected", held == Held::Rejected),
        ("expired", is_expired),
        ("agent_suspended", is_suspended),
        ("agent_ended", has_ended),
    ];
    let late = [
        ("not_indexed_yet", !state.indexed),
        ("not_embedded_yet", has_models && !state.embedded),
    ];
    let status = match (hidden.iter().any(|(_, holds)| *holds), state.indexed) {
        (true, _) => "hidden",
        (false, true) => "found",
        (false, false) => "waiting",
    };
    let reasons = hidden.into_iter().chain(late).filter(|(_, holds)| *holds);
    Ok(HttpResponse::Ok().json(ListingStatus {
        origin: origin(&stored),
        id: stored.id,
        version: stored.version,
        status,
        reasons: reasons.map(|(reason, _)| reason).collect(),
        indexed: state.indexed,
        embedded: state.embedded,
        language: state.language,
        flags: stored.flags,
    }))
}
