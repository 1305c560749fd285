//! `GET /admin/peers/{domain}`: one peer, with what waits for it and how sending to it goes in this process.

use actix_web::{HttpRequest, web};
use aip_protocol::json::Json;
use serde::Serialize;
use utoipa::ToSchema;

use super::PeerLine;
use super::limits::LimitsBody;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;
use crate::federation::Waiting;
use crate::routes::admin::Operator;

/// Everything about one peer.
#[derive(Debug, Serialize, ToSchema)]
pub struct PeerState {
    /// As in the list.
    #[serde(flatten)]
    pub peer: PeerLine,
    /// What the operator allowed it.
    pub limits: LimitsBody,
    /// Its newest good document; `null` before the first.
    #[schema(value_type = Option<Object>)]
    pub document: Option<Json>,
    /// What waits for it.
    pub outbox: Waiting,
}

/// Shows a peer.
#[utoipa::path(
    get,
    path = "/admin/peers/{domain}",
    tag = "administration",
    summary = "Show a peer",
    params(("domain" = String, Path, description = "Its domain", example = "two.example")),
    security(("operator" = [])),
    responses((status = 200, description = "As this process sees it", body = PeerState),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such peer, or this hub does not federate"))
)]
pub async fn peer(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<web::Json<PeerState>, ApiError> {
    Query::parse(&req, &[])?;
    let domain = super::path_domain(&req)?;
    let federation = super::federation(&app)?;
    let peer = super::known_peer(federation, &domain).await?;
    Ok(web::Json(PeerState {
        outbox: federation.waiting(&domain).await?,
        limits: peer.limits.into(),
        peer: PeerLine::from(&peer),
        document: peer.document,
    }))
}
