//! `PUT /admin/pause`: nothing that the hub keeps changes any more, until the lease ends. For a move to other stores.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::{ErrorCode, Refusal};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Operator;
use crate::app::App;
use crate::error::ApiError;
use crate::limits::PAUSE_LEASE_SECS_MAX;

/// What is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseBody {
    /// Seconds after which the hub goes on by itself, unless it is asked again before; `null`: it never does.
    #[schema(minimum = 1, maximum = 600, example = 15)]
    pub lease_secs: Option<u64>,
    /// The number of a pause that is to go on.
    #[serde(default)]
    pub renews: Option<u64>,
}

/// The hub stands still.
#[derive(Debug, Serialize, ToSchema)]
pub struct Paused {
    /// The number of this pause; as long as it is renewed, nothing changes.
    #[schema(example = 1)]
    pub pause: u64,
}

/// Pauses the hub.
#[utoipa::path(
    put,
    path = "/admin/pause",
    tag = "administration",
    summary = "Stand still",
    description = "Answers when every change that was under way is done. Until the lease ends, whoever asks for a \
                   change is told to come back (503), readiness says `paused`, and nothing is delivered.",
    security(("operator" = [])),
    request_body = PauseBody,
    responses((status = 200, description = "It stands still", body = Paused),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 409, description = "The pause to renew has ended: something may have changed since"),
              (status = 503, description = "Its stores are shared with other processes"))
)]
pub async fn pause(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let body: PauseBody = super::read(&app, &req, payload).await?;
    if body
        .lease_secs
        .is_some_and(|secs| !(1..=PAUSE_LEASE_SECS_MAX).contains(&secs))
    {
        let detail = format!("Give `lease_secs` as 1 to {PAUSE_LEASE_SECS_MAX}, or null.");
        return Err(Refusal::new(ErrorCode::MemberInvalid, detail)
            .with("member", "lease_secs")
            .into());
    }
    let pause = app.pause.as_ref().ok_or_else(shared)?;
    if !pause.is_held().await {
        tracing::warn!(
            "The operator pauses the hub: it takes nothing and delivers nothing until the lease ends"
        );
    }
    let lease = body.lease_secs.map(Duration::from_secs);
    let number = pause.hold(lease, body.renews).await.ok_or_else(over)?;
    Ok(HttpResponse::Ok().json(Paused { pause: number }))
}

fn over() -> ApiError {
    ApiError::refused(
        ErrorCode::VersionConflict,
        "This pause has ended, and something may have changed since: begin another one.",
    )
}

/// What others write too does not stand still when this process does.
pub(super) fn shared() -> ApiError {
    ApiError::refused(
        ErrorCode::Unavailable,
        "This hub's stores are not its own alone, so it cannot hold them still.",
    )
}
