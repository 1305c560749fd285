//! `POST /api/v1/inbox/dead/{seq}/redrive`: puts a dead letter back into the mailbox (§6).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::{ErrorCode, Refusal};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::{BodyLimit, Caller, Query, raw_segment, read_body};
use crate::limits::SMALL_BODY_BYTES_MAX;

/// Where the message is now.
#[derive(Serialize, ToSchema)]
struct RedriveAnswer {
    /// Its new place in the mailbox.
    seq: u64,
}

/// Redrives.
#[utoipa::path(
    post,
    path = "/api/v1/inbox/dead/{seq}/redrive",
    tag = "receiving",
    summary = "Get a dead letter again",
    description = "It comes again under a new number, as if it were new. A body is not needed.",
    params(("seq" = u64, Path, description = "`seq` of the dead letter", example = 17)),
    responses(
        (status = 200, description = "In the mailbox again", body = RedriveAnswer),
        (status = 400, description = "The number cannot be read"),
        (status = 401, description = "No valid token"),
        (status = 404, description = "No such dead letter"),
        (status = 413, description = "The body is too large"),
        (status = 422, description = "The message has expired"),
        (status = 503, description = "Nothing was changed, or it is not known"),
        (status = 507, description = "The mailbox is full"),
    ),
    security(("token" = []))
)]
pub async fn redrive(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
    caller: Caller,
) -> Result<HttpResponse, ApiError> {
    Query::parse(&req, &[])?;
    read_body(&app, &req, payload, BodyLimit::new(SMALL_BODY_BYTES_MAX)).await?;
    let seq = seq(&req)?;
    let terms = app.relay.terms(&caller.0).await?;
    let seq = app.inbox.redrive(&caller.0, seq, terms).await??;
    Ok(HttpResponse::Ok().json(RedriveAnswer { seq }))
}

fn seq(req: &HttpRequest) -> Result<u64, ApiError> {
    let segment = raw_segment(req, "seq");
    let digits = !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit());
    segment.parse().ok().filter(|_| digits).ok_or_else(|| {
        let detail = "The number in the path is none; use `seq` of a dead letter.";
        Refusal::new(ErrorCode::ParameterInvalid, detail)
            .with("parameter", "seq")
            .into()
    })
}
