//! `POST /federation/v1/messages`: mail that another hub accepted from its agents, for agents of this one (§8).

use actix_web::http::header::ContentType;
use actix_web::{HttpRequest, HttpResponse, web};
use aip_federation::inbound::Call;
use aip_protocol::limits::BATCH_BYTES_MAX;

use super::knock;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{BodyLimit, JSON, Query, read_typed};

/// Takes a batch of a peer.
#[utoipa::path(
    post,
    path = "/federation/v1/messages",
    tag = "federation",
    operation_id = "federation_messages",
    summary = "Hand in mail of another hub",
    description = "Up to 64 items or 1 MiB: `{\"aip\":\"1\",\"domain\",\"epoch\",\"items\":[{\"peer_seq\",\"accepted_at\",\"envelope\"}]}`, signed by \
                   the sending hub (RFC 9421, ed25519, tag `aip-fed-1`). The answer has one result for each item, in order: \
                   `stored`, `duplicate`, `refused` with its `code`, or `retry` with `retry_after_s`; and `acked_through`, up to \
                   which everything is settled.",
    request_body = Object,
    responses(
        (status = 200, description = "What became of each item", body = Object),
        (status = 400, description = "Not a batch"),
        (status = 401, description = "The request's signature, its key or its nonce is not good"),
        (status = 403, description = "This hub takes nothing from that one, or the domain is not the signer's"),
        (status = 404, description = "This hub does not federate"),
        (status = 409, description = "Another epoch than the one in the peer's document"),
        (status = 413, description = "More than 64 items or 1 MiB"),
        (status = 415, description = "Another media type, or a Content-Encoding"),
        (status = 429, description = "More than this peer may hand in; `Retry-After` says when"),
        (status = 502, description = "The peer's document cannot be had"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn messages(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    Query::parse(&req, &[])?;
    let (inbound, ticket) = knock(&app, &req, Call::Push)?;
    let body = read_typed(&app, &req, payload, BodyLimit::new(BATCH_BYTES_MAX), JSON).await?;
    let answer = inbound.push(ticket, body).await?;
    Ok(HttpResponse::Ok()
        .insert_header(ContentType::json())
        .body(answer.to_body()))
}
