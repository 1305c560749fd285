//! `DELETE /api/v1/listings/{id}`: takes a listing away, by the word of its agent (§9).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_registry::listings::{Put, listing_id};

use super::{ListingAnswer, read, to_store, verify};
use crate::app::App;
use crate::catalog::{conflict, full};
use crate::error::ApiError;
use crate::extract::Query;
use crate::throttle::Cost;

/// Takes a signed deletion.
#[utoipa::path(
    delete,
    path = "/api/v1/listings/{id}",
    operation_id = "delete_listing",
    tag = "search",
    summary = "Delete a listing",
    description = "The body is the listing with `\"deleted\": true` and a higher version, signed by its agent. Sending \
                   the same bytes again is harmless.",
    params(("id" = String, Path, description = "The hub's id of the listing")),
    request_body(content = Object, description = "A signed listing with `\"deleted\": true`",
                 content_type = "application/json"),
    responses(
        (status = 200, description = "It is gone, and no longer found within two seconds", body = ListingAnswer),
        (status = 400, description = "The body is no deletion"),
        (status = 401, description = "The agent, its key or its signature is not good"),
        (status = 403, description = "The deletion is for another listing"),
        (status = 404, description = "No such listing"),
        (status = 409, description = "The hub holds this or a higher version; the answer tells which"),
        (status = 413, description = "The body is larger than 64 KiB"),
        (status = 415, description = "Another media type, or a Content-Encoding"),
        (status = 422, description = "`created_at` is too far from the hub's clock"),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn delete(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    Query::parse(&req, &[])?;
    let id = req.match_info().get("id").unwrap_or("").to_owned();
    let (listing, offer) = read(&app, &req, payload).await?;
    if !listing.deleted {
        let detail = "A deletion is a signed listing with `\"deleted\": true` and a higher version.";
        return Err(Refusal::new(ErrorCode::MemberInvalid, detail)
            .with("member", "deleted")
            .into());
    }
    if listing_id(&listing.agent, &listing.listing_id) != id {
        let detail = "The deletion is for another listing than the path names.";
        return Err(ApiError::refused(ErrorCode::NotYours, detail));
    }
    verify(&app, &req, &listing).await?;
    if app.listings.get(&id).await?.is_none() {
        return Err(ApiError::refused(
            ErrorCode::NotFound,
            "This hub has no such listing.",
        ));
    }
    let (new, max) = (
        to_store(&listing, &offer),
        app.settings.search.listings_per_agent_max,
    );
    match app.listings.put(&new, max, app.clock.now()).await? {
        Put::Stored { listing, .. } => {
            app.listings_changed();
            Ok(HttpResponse::Ok().json(ListingAnswer::of(&app, listing, "deleted")))
        }
        Put::Unchanged(listing) => Ok(HttpResponse::Ok().json(ListingAnswer::of(&app, listing, "deleted"))),
        Put::Conflict { version } => Err(conflict(version).into()),
        Put::TooMany { max } => Err(full(max).into()),
    }
}
