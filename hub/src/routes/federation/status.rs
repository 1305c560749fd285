//! `GET /federation/v1/status`: what became of a message, for the hub that handed it in (`docs/protocol/federation.md`).

use actix_web::http::header::{CACHE_CONTROL, ContentType, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use aip_federation::inbound::Call;

use super::knock;
use crate::app::App;
use crate::error::ApiError;

/// Tells a peer what became of a message.
#[utoipa::path(
    get,
    path = "/federation/v1/status",
    tag = "federation",
    operation_id = "federation_status",
    summary = "What became of a message, for the hub that handed it in",
    description = "Signed like a backfill. For messages of the caller's own agents only, for 14 days.",
    params(
        ("from" = String, Query, description = "The sender's DID"),
        ("id" = String, Query, description = "The envelope's id"),
        ("to" = String, Query, description = "The recipient's DID"),
    ),
    responses(
        (status = 200, description = "Its newest state", body = Object),
        (status = 400, description = "A parameter is missing, malformed or unknown"),
        (status = 401, description = "The request's signature, its key or its nonce is not good"),
        (status = 403, description = "The message is none of the caller's, or for another hub"),
        (status = 404, description = "No such message, or this hub does not federate"),
        (status = 429, description = "Too many requests; `Retry-After` says when"),
    )
)]
pub async fn status(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, ApiError> {
    let (inbound, ticket) = knock(&app, &req, Call::Status)?;
    let answer = inbound.mail_status(ticket).await?;
    Ok(HttpResponse::Ok()
        .insert_header(ContentType::json())
        .insert_header((CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .body(answer.to_body()))
}
