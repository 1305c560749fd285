//! `DELETE /api/v1/ingest/listings/{listing_id}`: takes a provider's listing away (§9).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::{ErrorCode, Refusal};
use percent_encoding::percent_decode_str;

use super::provider;
use crate::app::App;
use crate::catalog::limits::LISTING_ID_BYTES_MAX;
use crate::catalog::{Ingest, Quarantine, Row};
use crate::error::ApiError;
use crate::extract::{Query, raw_segment};
use crate::routes::listings::ListingAnswer;
use crate::throttle::Cost;

/// Deletes what a provider handed in.
#[utoipa::path(
    delete,
    path = "/api/v1/ingest/listings/{listing_id}",
    operation_id = "ingest_delete",
    tag = "search",
    summary = "Delete a listing that was handed in",
    params(("listing_id" = String, Path, description = "The provider's own id of the listing, percent-encoded")),
    security(("provider" = [])),
    responses(
        (status = 200, description = "It is gone", body = ListingAnswer),
        (status = 400, description = "The id cannot be read"),
        (status = 401, description = "The key is unknown or was revoked"),
        (status = 403, description = "The agent signed the listing itself, or may not take part"),
        (status = 404, description = "No such listing"),
        (status = 429, description = "Too many requests, or too many keys that were not good, from one address"),
    )
)]
pub async fn delete(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    Query::parse(&req, &[])?;
    let provider = provider(&app, &req).await?;
    let listing_id = percent_decode_str(raw_segment(&req, "listing_id")).decode_utf8();
    let listing_id = listing_id.ok().filter(|id| id.len() <= LISTING_ID_BYTES_MAX);
    let listing_id = listing_id.ok_or_else(|| {
        let detail = "The listing's id in the path is not UTF-8, or too long.";
        Refusal::new(ErrorCode::ParameterInvalid, detail).with("parameter", "listing_id")
    })?;
    let ingest = Ingest {
        listings: &*app.listings,
        agent: &provider.agent,
        provider: &provider.name,
        max_per_agent: app.settings.search.listings_per_agent_max,
        quarantine: Quarantine::new(&app.settings.search.quarantine),
    };
    let row = Row {
        listing_id: listing_id.into_owned(),
        version: None,
        offer: None,
    };
    let outcomes = ingest.store(vec![(1, row)], app.clock.now()).await?;
    app.listings_changed();
    let outcome = outcomes.into_iter().next();
    let done = outcome.map(|outcome| outcome.done).transpose()?;
    let done = done.ok_or_else(|| ApiError::failed(ErrorCode::Internal, "a row without an outcome"))?;
    Ok(HttpResponse::Ok().json(ListingAnswer {
        id: done.id,
        version: done.version,
        status: done.status,
        flags: Vec::new(),
        held: None,
    }))
}
