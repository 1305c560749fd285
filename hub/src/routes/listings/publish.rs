//! `POST /api/v1/listings`: publishes a listing, or a new version of one (§9).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_registry::listings::Put;

use super::{ListingAnswer, read, to_store, verify};
use crate::app::App;
use crate::catalog::{conflict, full};
use crate::error::ApiError;
use crate::extract::Query;
use crate::throttle::Cost;

/// Takes a signed listing.
#[utoipa::path(
    post,
    path = "/api/v1/listings",
    tag = "search",
    summary = "Publish a listing",
    description = "The body is a listing, signed by its agent (tag `aip/1 listing`); the signature is the \
                   authentication. 201 means that it is stored durably; it is found by its text within two seconds and \
                   by its meaning a little later. A higher `version` replaces a lower one; sending the same bytes again \
                   is harmless and answers 200.",
    request_body(content = Object, description = "A signed listing, at most 64 KiB", content_type = "application/json"),
    responses(
        (status = 201, description = "Stored", body = ListingAnswer),
        (status = 200, description = "This very version was stored before", body = ListingAnswer),
        (status = 400, description = "Not strict JSON, or a member is missing, malformed or beyond its bound"),
        (status = 401, description = "The agent, its key or its signature is not good"),
        (status = 403, description = "The agent belongs to another hub, or is suspended"),
        (status = 409, description = "The hub holds this or a higher version with other bytes; the answer tells which"),
        (status = 413, description = "The listing is larger than 64 KiB"),
        (status = 415, description = "Another media type, or a Content-Encoding"),
        (status = 422, description = "`expires_at` is past, or `created_at` too far from the hub's clock"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "Nothing was stored; try again"),
        (status = 507, description = "The agent has as many listings here as it may"),
    )
)]
pub async fn publish(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    Query::parse(&req, &[])?;
    app.require_room("listings")?;
    let (listing, offer) = read(&app, &req, payload).await?;
    let now = app.clock.now();
    if listing.deleted {
        let detail = "A deletion is sent with DELETE to the listing's own address.";
        return Err(Refusal::new(ErrorCode::MemberInvalid, detail)
            .with("member", "deleted")
            .into());
    }
    if listing.expires_at.is_some_and(|end| end <= now) {
        return Err(ApiError::refused(ErrorCode::Expired, "`expires_at` is past."));
    }
    verify(&app, &req, &listing).await?;
    let max = app.settings.search.listings_per_agent_max;
    match app.listings.put(&to_store(&listing, &offer), max, now).await? {
        Put::Stored { listing, .. } => {
            app.listings_changed();
            Ok(HttpResponse::Created().json(ListingAnswer::of(&app, listing, "stored")))
        }
        Put::Unchanged(listing) => Ok(HttpResponse::Ok().json(ListingAnswer::of(&app, listing, "unchanged"))),
        Put::Conflict { version } => Err(conflict(version).into()),
        Put::TooMany { max } => Err(full(max).into()),
    }
}
