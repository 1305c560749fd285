//! `POST /relay/{name}`: hands an envelope to an agent of this hub, at its own endpoint (§5).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_relay::admission::Door;

use super::{SendAnswer, SendAnswers, SendBody, take};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Query, path_name};

/// Takes envelopes for one agent.
#[utoipa::path(
    post,
    path = "/relay/{name}",
    tag = "sending",
    summary = "Hand an envelope to an agent of this hub",
    description = "The endpoint that `resolve` tells for an agent in relay mode. Bodies and answers are those of POST \
                   /api/v1/messages; every envelope is for the agent in the path.",
    params(("name" = String, Path, description = "The recipient's name", example = "alice")),
    request_body(content = SendBody, content_type = "application/aip+json"),
    responses(
        (status = 202, description = "Stored, and on its way", body = SendAnswer),
        (status = 200, description = "Delivered, or known already; or the results of an array", body = SendAnswers),
        (status = 400, description = "Not strict JSON, a member is missing or malformed, or it is for another agent"),
        (status = 401, description = "The sender, its key or its signature is not good"),
        (status = 403, description = "The sender is blocked"),
        (status = 404, description = "No such recipient"),
        (status = 409, description = "Another envelope was sent under this id"),
        (status = 410, description = "The recipient has ended its identity"),
        (status = 413, description = "The envelope or the array is too large"),
        (status = 415, description = "Another media type, or a Content-Encoding"),
        (status = 422, description = "`created_at` is too far from the hub's clock, or the envelope has expired"),
        (status = 429, description = "The sender sends too fast, or too much from its network address was not good"),
        (status = 503, description = "Nothing was stored, or it is not known; send the same bytes again"),
        (status = 507, description = "The recipient's mailbox is full"),
    )
)]
pub async fn relay(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    Query::parse(&req, &[])?;
    let door = Door::Relay(path_name(&req)?);
    take(&app, &req, payload, &door).await
}
