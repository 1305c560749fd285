//! `GET /api/v1/listings/{id}`: a listing as its agent signed it, for whoever checks it (§9).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::ErrorCode;
use aip_protocol::time::Timestamp;
use aip_registry::listings::{Origin, StoredListing};
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
    /// When the hub took this version.
    #[schema(value_type = String, format = "date-time")]
    pub updated_at: Timestamp,
    /// The listing as it was sent, in canonical form; one that was ingested carries no signature.
    #[schema(value_type = Object)]
    pub listing: Box<RawValue>,
}

impl HeldListing {
    /// What is told of a listing that is not deleted.
    pub(super) fn of(stored: StoredListing) -> Result<Self, ApiError> {
        let origin = origin(&stored);
        let text =
            String::from_utf8(stored.json).map_err(|error| ApiError::failed(ErrorCode::Internal, error))?;
        let listing =
            RawValue::from_string(text).map_err(|error| ApiError::failed(ErrorCode::Internal, error))?;
        Ok(Self {
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
    Ok(HttpResponse::Ok().json(HeldListing::of(stored)?))
}
