//! `GET /federation/v1/outbox`: mail that waits here for the hub that asks (§8, backfill).

use actix_web::http::header::{CACHE_CONTROL, ContentType, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use aip_federation::inbound::Call;

use super::knock;
use crate::app::App;
use crate::error::ApiError;

/// Gives a peer what waits for it.
#[utoipa::path(
    get,
    path = "/federation/v1/outbox",
    tag = "federation",
    operation_id = "federation_outbox",
    summary = "Fetch the mail that waits for the hub that asks",
    description = "Signed like a push, without a body. Nothing leaves the outbox by being read here.",
    params(
        ("epoch" = String, Query, description = "The epoch of this hub's outboxes, as its discovery document tells it"),
        ("after" = u64, Query, description = "The `peer_seq` after which the page begins"),
        ("limit" = Option<u32>, Query, description = "Items in the page, 1 to 256"),
    ),
    responses(
        (status = 200, description = "The body of a push, and `next`", body = Object),
        (status = 400, description = "A parameter is missing, malformed or unknown"),
        (status = 401, description = "The request's signature, its key or its nonce is not good"),
        (status = 403, description = "This hub has nothing to do with that one"),
        (status = 404, description = "This hub does not federate"),
        (status = 409, description = "`epoch_changed`, `future_cursor` or `outdated_cursor`"),
        (status = 429, description = "Too many requests; `Retry-After` says when"),
    )
)]
pub async fn outbox(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, ApiError> {
    let (inbound, ticket) = knock(&app, &req, Call::Backfill)?;
    let page = inbound.outbox(ticket).await?;
    Ok(HttpResponse::Ok()
        .insert_header(ContentType::json())
        .insert_header((CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .body(page.to_body()))
}
