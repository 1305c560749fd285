//! `GET /api/v1/inbox/dead`: messages that were rejected, or offered too often in vain (§6).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::ErrorCode;
use aip_protocol::time::Timestamp;
use aip_relay::mailbox::DeadLetter;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::cursor;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Caller, Query};

/// A page of dead letters.
#[derive(Serialize, ToSchema)]
#[schema(as = DeadAnswer)]
struct DeadAnswer {
    /// Dead letters, oldest place first.
    items: Vec<DeadItem>,
    /// Where the next page begins; `null` at the end.
    next_cursor: Option<String>,
}

/// A message that was given up.
#[derive(Serialize, ToSchema)]
struct DeadItem {
    /// The place it had in the mailbox.
    seq: u64,
    /// The code of the reject, or `attempts_exhausted`.
    #[schema(example = "attempts_exhausted")]
    code: String,
    /// When it was given up, RFC 3339.
    #[schema(value_type = String)]
    at: Timestamp,
    /// The envelope as its sender wrote it.
    #[schema(value_type = Object)]
    envelope: Box<RawValue>,
}

/// Lists dead letters.
#[utoipa::path(
    get,
    path = "/api/v1/inbox/dead",
    tag = "receiving",
    summary = "Dead letters",
    description = "They are kept 14 days. Redrive one to get it again.",
    params(
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "Dead letters in one page, 1 to 100"),
    ),
    responses(
        (status = 200, description = "A page", body = DeadAnswer),
        (status = 400, description = "A parameter or the cursor cannot be read"),
        (status = 401, description = "No valid token"),
        (status = 409, description = "The cursor is of another epoch: the store was restored"),
        (status = 503, description = "The mailboxes cannot be read now"),
    ),
    security(("token" = []))
)]
pub async fn dead(app: web::Data<App>, req: HttpRequest, caller: Caller) -> Result<HttpResponse, ApiError> {
    let query = Query::parse(&req, &["cursor", "limit"])?;
    let most = u64::from(app.settings.receive.poll_messages_max);
    let limit = usize::try_from(query.number("limit", 1..=most, most)?).unwrap_or(usize::MAX);
    let after = query.text("cursor")?.as_deref().map(cursor).transpose()?;
    let page = app.inbox.dead(&caller.0, after.as_ref(), limit).await??;
    let items: Result<Vec<DeadItem>, ApiError> = page.items.into_iter().map(item).collect();
    let next_cursor = page.next.map(|cursor| cursor.to_string());
    Ok(HttpResponse::Ok().json(DeadAnswer {
        items: items?,
        next_cursor,
    }))
}

fn item(letter: DeadLetter) -> Result<DeadItem, ApiError> {
    // The hub took it in as strict JSON.
    let envelope = serde_json::from_slice(&letter.wire);
    let envelope = envelope.map_err(|error| ApiError::failed(ErrorCode::Internal, error))?;
    Ok(DeadItem {
        seq: letter.seq,
        code: letter.code,
        at: letter.at,
        envelope,
    })
}
