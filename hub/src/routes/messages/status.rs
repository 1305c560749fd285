//! `GET /api/v1/messages/{id}/status`: what became of a message, for its sender (§5).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::parse_identifier;
use aip_protocol::time::Timestamp;
use aip_relay::mailbox::StatusRecord;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::unknown_message;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Caller, Query};

/// The fate of a message.
#[derive(Serialize, ToSchema)]
struct StatusAnswer {
    /// The envelope's id.
    id: String,
    /// The recipient's DID.
    to: String,
    /// `queued`, `stored`, `delivered`, `acked`, `expired`, `refused` or `dead`.
    #[schema(example = "acked")]
    status: &'static str,
    /// Why, where there is a why.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// When the hub accepted the message, RFC 3339.
    #[schema(value_type = String)]
    accepted_at: Timestamp,
    /// When `status` became so, RFC 3339.
    #[schema(value_type = String)]
    at: Timestamp,
    /// Its place in the recipient's mailbox, if it has or had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

/// Tells what became of a message.
#[utoipa::path(
    get,
    path = "/api/v1/messages/{id}/status",
    tag = "sending",
    summary = "What became of a message",
    description = "For its sender only, for 14 days. An id may have been used for several recipients: then `to` says \
                   which one is meant.",
    params(
        ("id" = String, Path, description = "The envelope's id", example = "6f8f3f5e-2a52-4e0b-9a5f-6f0c6f1d7c11"),
        ("to" = Option<String>, Query, description = "The recipient's DID or handle, percent-encoded"),
    ),
    responses(
        (status = 200, description = "Its newest state", body = StatusAnswer),
        (status = 400, description = "The id or `to` cannot be read, or `to` is needed"),
        (status = 401, description = "No valid token"),
        (status = 404, description = "You sent no such message"),
    ),
    security(("token" = []))
)]
pub async fn status(app: web::Data<App>, req: HttpRequest, caller: Caller) -> Result<HttpResponse, ApiError> {
    let query = Query::parse(&req, &["to"])?;
    let id = message_id(&req)?;
    let to = query
        .raw("to")
        .map(parse_identifier)
        .transpose()?
        .map(|handle| handle.did());
    let records = app.relay.status(&caller.0, id, to.as_ref()).await;
    let mut records = records
        .map_err(|error| ApiError::failed(error.code(), error))?
        .into_iter();
    match (records.next(), records.next()) {
        (None, _) => Err(unknown_message()),
        (Some(record), None) => {
            let record = match &app.federation {
                Some(federation) => federation.refreshed(&app.store, &caller.0, id, record).await,
                None => record,
            };
            Ok(HttpResponse::Ok().json(answer(id, record)))
        }
        (Some(_), Some(_)) => Err(ApiError::refused(
            ErrorCode::ParameterInvalid,
            "You used this id for several recipients; say which one with `to`.",
        )),
    }
}

fn message_id(req: &HttpRequest) -> Result<Uuid, ApiError> {
    let text = req.match_info().get("id").unwrap_or("");
    Uuid::try_parse(text).map_err(|_not_a_uuid| {
        let detail = "The id in the path is no UUID; use the `id` of the envelope.";
        Refusal::new(ErrorCode::ParameterInvalid, detail)
            .with("parameter", "id")
            .into()
    })
}

fn answer(id: Uuid, record: StatusRecord) -> StatusAnswer {
    StatusAnswer {
        id: id.hyphenated().to_string(),
        to: record.to.to_string(),
        status: record.status.as_str(),
        code: record.code,
        accepted_at: record.accepted_at,
        at: record.at,
        seq: record.seq,
    }
}
