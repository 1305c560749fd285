//! `PUT /admin/peers/{domain}/limits`: what one peer may do, instead of what the settings and its age allow.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_federation::peers::{PeerChange, PeerLimits};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::routes::admin::{Operator, read};

/// The limits of one peer; what is absent or `null` is left to the settings and to its age.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
pub struct LimitsBody {
    /// Messages per second that it may hand in.
    pub items_per_sec: Option<u32>,
    /// Bytes per second that it may hand in.
    pub bytes_per_sec: Option<u64>,
    /// Messages that may wait for it.
    pub queue_items: Option<u32>,
}

impl From<LimitsBody> for PeerLimits {
    fn from(body: LimitsBody) -> Self {
        Self {
            items_per_sec: body.items_per_sec,
            bytes_per_sec: body.bytes_per_sec,
            queue_items: body.queue_items,
        }
    }
}

impl From<PeerLimits> for LimitsBody {
    fn from(limits: PeerLimits) -> Self {
        Self {
            items_per_sec: limits.items_per_sec,
            bytes_per_sec: limits.bytes_per_sec,
            queue_items: limits.queue_items,
        }
    }
}

/// Sets what a peer may do.
#[utoipa::path(
    put,
    path = "/admin/peers/{domain}/limits",
    tag = "administration",
    summary = "Set what a peer may do",
    params(("domain" = String, Path, description = "Its domain", example = "two.example")),
    security(("operator" = [])),
    request_body = LimitsBody,
    responses((status = 204, description = "It is so"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such peer, or this hub does not federate"))
)]
pub async fn limits(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let domain = super::path_domain(&req)?;
    let body: LimitsBody = read(&app, &req, payload).await?;
    let federation = super::federation(&app)?;
    super::known_peer(federation, &domain).await?;
    let now = app.clock.now();
    let detail = serde_json::to_string(&body).unwrap_or_default();
    let change = PeerChange::Limits(body.into());
    federation.store.change(&domain, change, now).await?;
    federation.decided(&domain, "limits", &detail, now).await?;
    Ok(HttpResponse::NoContent().finish())
}
