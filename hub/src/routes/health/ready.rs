//! `GET /health/ready`: whether the hub takes work: not stopping, names readable, messages storable.

use actix_web::web;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_relay::mailbox::Health;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;

/// Seconds after which a load balancer may ask again.
const RETRY_AFTER_SECS: u64 = 1;

/// The hub takes work.
#[derive(Debug, Serialize, ToSchema)]
pub struct Ready {
    /// Always `ready`.
    #[schema(example = "ready")]
    pub status: &'static str,
}

/// Says whether the hub takes work.
#[utoipa::path(
    get,
    path = "/health/ready",
    tag = "operation",
    summary = "Whether the hub takes work",
    description = "503 while it stops or is paused, and while a store takes nothing (a full disk, a failed write). \
                   The member `reason` says which.",
    responses(
        (status = 200, description = "It does", body = Ready),
        (status = 503, description = "It does not"),
    )
)]
pub async fn ready(app: web::Data<App>) -> Result<web::Json<Ready>, ApiError> {
    let stopping = app.serving.is_draining() || app.stop.is_cancelled();
    let held = match &app.pause {
        Some(pause) => pause.is_held().await,
        None => false,
    };
    let reason = match (stopping, app.store.health()) {
        (true, _) => "stopping",
        _ if held => "paused",
        (false, Health::Ready) => match app.registry.list_agents(None, 1).await {
            Ok(_) => return Ok(web::Json(Ready { status: "ready" })),
            Err(error) => return Err(ApiError::failed(ErrorCode::Unavailable, error)),
        },
        (false, Health::DiskFull { .. }) => "disk_full",
        (false, Health::Poisoned { .. }) => "store_failed",
        (false, Health::Unreachable { .. }) => "store_unreachable",
    };
    let detail = "The hub takes no work now; ask again shortly.";
    let refusal = Refusal::new(ErrorCode::Unavailable, detail).with("reason", json!(reason));
    Err(refusal.retry_after(RETRY_AFTER_SECS).into())
}
