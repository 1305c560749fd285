//! `POST /api/v1/inbox/ack`: settles messages (§6).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::Json;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::{BodyLimit, Caller, JSON, Query, read_typed, text_member};
use crate::limits::ACK_BODY_BYTES_MAX;

/// Which messages are done.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "the shape for the documentation; the body is read by the strict rules"
)]
struct AckRequest {
    /// The epoch that the numbers belong to.
    epoch: String,
    /// Everything up to and including this; 0 for nothing.
    #[schema(example = 17)]
    upto: u64,
    /// And these, at most 1,024.
    #[schema(example = json!([19, 20]))]
    also: Option<Vec<u64>>,
}

/// Where the mailbox stands.
#[derive(Serialize, ToSchema)]
struct AckAnswer {
    /// The life of the store.
    epoch: String,
    /// Everything up to here is settled.
    floor: u64,
}

/// Acks.
#[utoipa::path(
    post,
    path = "/api/v1/inbox/ack",
    tag = "receiving",
    summary = "Ack messages",
    description = "Durable when it is answered. Acking again is harmless.",
    request_body(content = AckRequest, content_type = "application/json"),
    responses(
        (status = 200, description = "Settled, durably", body = AckAnswer),
        (status = 400, description = "A member is missing or malformed, or a message was never offered"),
        (status = 401, description = "No valid token"),
        (status = 409, description = "Another epoch: the store was restored; nothing was changed"),
        (status = 413, description = "The body is too large"),
        (status = 415, description = "Another media type, or a Content-Encoding"),
        (status = 503, description = "Nothing was settled, or it is not known; ack again"),
    ),
    security(("token" = []))
)]
pub async fn ack(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
    caller: Caller,
) -> Result<HttpResponse, ApiError> {
    Query::parse(&req, &[])?;
    let body = read_typed(&app, &req, payload, BodyLimit::new(ACK_BODY_BYTES_MAX), JSON).await?;
    let body = Json::parse(&body)?;
    let epoch = text_member(&body, "epoch")?;
    let upto = body
        .get("upto")
        .ok_or_else(|| member("upto", ErrorCode::MemberMissing, "is missing"))?;
    let upto = number(upto, "upto")?;
    let also = match body.get("also") {
        None => Vec::new(),
        Some(Json::Array(seqs)) => seqs
            .iter()
            .map(|seq| number(seq, "also"))
            .collect::<Result<_, _>>()?,
        Some(_) => return Err(member("also", ErrorCode::MemberInvalid, "must be an array")),
    };
    let cursor = app.inbox.ack(&caller.0, epoch, upto, &also).await??;
    Ok(HttpResponse::Ok().json(AckAnswer {
        epoch: cursor.epoch.to_string(),
        floor: cursor.seq,
    }))
}

fn number(value: &Json, name: &'static str) -> Result<u64, ApiError> {
    let number = value.as_int().and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| member(name, ErrorCode::MemberInvalid, "takes whole numbers from 0"))
}

fn member(name: &'static str, code: ErrorCode, what: &str) -> ApiError {
    Refusal::new(code, format!("The member `{name}` {what}."))
        .with("member", name)
        .into()
}
