//! `GET /api/v1/listings/{id}`: a listing as its agent signed it, for whoever checks it (§9).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::limits::CHANGE_TOLD;
use aip_protocol::error::ErrorCode;
use aip_protocol::json::Json;
use aip_protocol::listing::{ListingKind, Offer};
use aip_protocol::time::Timestamp;
use aip_registry::listings::{Origin, Rewording, StoredListing};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::find;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;
use crate::throttle::Cost;

/// A listing with what the hub knows about it.
#[derive(Debug, Serialize, ToSchema)]
pub struct HeldListing {
    /// The hub's id of the listing.
    pub id: String,
    /// Its version.
    pub version: u64,
    /// `signed` by its agent, or `ingested` with a provider's key.
    #[schema(example = "signed")]
    pub origin: &'static str,
    /// What is unusual about it.
    pub flags: Vec<String>,
    /// Whether nobody finds it: `quarantined` until the operator has looked at it, or `rejected`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<&'static str>,
    /// SHA-256 of its description, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description_sha256: Option<String>,
    /// SHA-256 of its schemas, in hexadecimal; of capabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_sha256: Option<String>,
    /// When its description became another one, lately, and what it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description_changed: Option<ChangedWords>,
    /// When its schemas became others, lately, and what they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_changed: Option<ChangedWords>,
    /// When the hub took this version.
    #[schema(value_type = String, format = "date-time")]
    pub updated_at: Timestamp,
    /// The listing as it was sent, in canonical form; one that was ingested carries no signature.
    #[schema(value_type = Object)]
    pub listing: Box<RawValue>,
}

/// Words became others.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChangedWords {
    /// When.
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
    /// SHA-256 of what they were, in hexadecimal.
    pub previous_sha256: String,
}

impl ChangedWords {
    /// For as long as buyers are told of it.
    fn lately(rewording: Option<Rewording>, now: Timestamp) -> Option<Self> {
        let rewording = rewording.filter(|rewording| rewording.at + CHANGE_TOLD > now)?;
        Some(Self {
            at: rewording.at,
            previous_sha256: hex::encode(rewording.before),
        })
    }
}

impl HeldListing {
    /// What is told of a listing that is not deleted.
    pub(super) fn of(app: &App, stored: StoredListing) -> Result<Self, ApiError> {
        let (origin, now) = (origin(&stored), app.clock.now());
        let offer = Json::parse(&stored.json)
            .and_then(|json| Offer::from_json(&json))
            .ok();
        let wording = offer.as_ref().map(Offer::wording);
        let is_callable = offer.is_some_and(|offer| offer.kind == ListingKind::Capability);
        let held = super::held(app, &stored).as_str();
        let text =
            String::from_utf8(stored.json).map_err(|error| ApiError::failed(ErrorCode::Internal, error))?;
        let listing =
            RawValue::from_string(text).map_err(|error| ApiError::failed(ErrorCode::Internal, error))?;
        let schemas = wording
            .filter(|_| is_callable)
            .map(|wording| hex::encode(wording.schemas));
        Ok(Self {
            held,
            description_sha256: wording.map(|wording| hex::encode(wording.description)),
            schema_sha256: schemas,
            description_changed: ChangedWords::lately(stored.trail.description, now),
            schema_changed: ChangedWords::lately(stored.trail.schemas, now),
            id: stored.id,
            version: stored.version,
            origin,
            flags: stored.flags,
            updated_at: stored.stored_at,
            listing,
        })
    }
}

/// The word for where a listing comes from.
pub(super) fn origin(stored: &StoredListing) -> &'static str {
    match stored.origin {
        Origin::Signed => "signed",
        Origin::Ingested { .. } => "ingested",
        Origin::Peer { .. } => "peer",
    }
}

/// Answers with a listing.
#[utoipa::path(
    get,
    path = "/api/v1/listings/{id}",
    operation_id = "listing",
    tag = "search",
    summary = "A listing",
    params(("id" = String, Path, description = "The hub's id of the listing, as in results")),
    responses(
        (status = 200, description = "The listing", body = HeldListing),
        (status = 404, description = "No such listing, or it was deleted"),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn show(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    Query::parse(&req, &[])?;
    let stored = find(&app, &req).await?;
    Ok(HttpResponse::Ok().json(HeldListing::of(&app, stored)?))
}
