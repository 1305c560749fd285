//! `POST /api/v1/messages`: sends one envelope, or up to a hundred, at the sender's own hub (§5).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_relay::admission::Door;

use super::{SendAnswer, SendAnswers, SendBody, take};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;

/// Takes envelopes of this hub's agents.
#[utoipa::path(
    post,
    path = "/api/v1/messages",
    tag = "sending",
    summary = "Send an envelope, or an array of them",
    description = "The body is one envelope, or an array of up to 100, 4 MiB in all. The envelope's own signature is \
                   the authentication. 202 means that the message is stored durably; sending the same bytes again is \
                   harmless and answers 200 with `duplicate`. An array answers 200 with one result for each, in order; \
                   a refused one has `status` `refused` and its `code`.",
    request_body(content = SendBody, content_type = "application/aip+json"),
    responses(
        (status = 202, description = "Stored, and on its way", body = SendAnswer),
        (status = 200, description = "Delivered, or known already; or the results of an array", body = SendAnswers),
        (status = 400, description = "Not strict JSON, or a member is missing or malformed"),
        (status = 401, description = "The sender, its key or its signature is not good"),
        (status = 403, description = "The sender is blocked, or belongs to another hub"),
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
pub async fn send(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    Query::parse(&req, &[])?;
    take(&app, &req, payload, &Door::Home).await
}
