//! `GET /health/ready`: whether the hub takes work: not stopping, names readable, messages storable.

use std::error::Error;
use std::time::Duration;

use actix_web::web;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_relay::mailbox::Health;
use serde::Serialize;
use serde_json::json;
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::limits::READY_WAIT_SECS;

/// Seconds after which a load balancer may ask again.
const RETRY_AFTER_SECS: u64 = 1;

/// The hub takes work.
#[derive(Debug, Serialize, ToSchema)]
pub struct Ready {
    /// Always `ready`.
    #[schema(example = "ready")]
    pub status: &'static str,
    /// Engines that are away and without which the hub works all the same, more slowly; not there when none is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(example = json!(["redis"]))]
    pub degraded: Vec<&'static str>,
}

/// Says whether the hub takes work.
#[utoipa::path(
    get,
    path = "/health/ready",
    tag = "operation",
    summary = "Whether the hub takes work",
    description = "503 while it stops or is paused, and while a store takes nothing. The member `reason` says which: \
                   `stopping`, `paused`, `disk_full`, `store_failed`, `nats_unreachable`, `postgresql_unreachable` or \
                   `registry_failed`.",
    responses(
        (status = 200, description = "It does", body = Ready),
        (status = 503, description = "It does not"),
    )
)]
pub async fn ready(app: web::Data<App>) -> Result<web::Json<Ready>, ApiError> {
    let held = match &app.pause {
        Some(pause) => pause.is_held().await,
        None => false,
    };
    let reason = match app.store.health() {
        _ if app.serving.is_draining() || app.stop.is_cancelled() => "stopping",
        _ if held => "paused",
        Health::Ready => match names(&app).await {
            Ok(()) => return Ok(web::Json(taking_work(&app))),
            Err(cause) => return Err(without_names(&app).because(cause)),
        },
        Health::DiskFull { .. } => "disk_full",
        Health::Poisoned { .. } => "store_failed",
        Health::Unreachable { .. } => "nats_unreachable",
    };
    Err(not_ready(reason).into())
}

fn taking_work(app: &App) -> Ready {
    let without_redis = match &app.cluster {
        Some(cluster) => cluster.health() != aip_cluster::Health::Connected,
        None => false,
    };
    Ready {
        status: "ready",
        degraded: without_redis.then_some("redis").into_iter().collect(),
    }
}

/// Whether names can be read, in time for whoever asks about readiness.
async fn names(app: &App) -> Result<(), Box<dyn Error + Send + Sync>> {
    let read = app.registry.list_agents(None, 1);
    timeout(Duration::from_secs(READY_WAIT_SECS), read).await??;
    Ok(())
}

/// Without names nobody is let in.
fn without_names(app: &App) -> ApiError {
    let reason = if app.settings.engines.registry_url.is_empty() {
        "registry_failed"
    } else {
        "postgresql_unreachable"
    };
    not_ready(reason).into()
}

fn not_ready(reason: &'static str) -> Refusal {
    let detail = "The hub takes no work now; ask again shortly.";
    Refusal::new(ErrorCode::Unavailable, detail)
        .with("reason", json!(reason))
        .retry_after(RETRY_AFTER_SECS)
}
