//! `PUT /admin/market/peer/mode`: under which rules a hub's capabilities are called.

use actix_web::{HttpRequest, web};
use aip_market::store::PeerChange;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{MarketPeerLine, address, done, mode, peers};
use crate::app::App;
use crate::error::ApiError;
use crate::routes::admin::{Operator, read};

/// What is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ModeBody {
    /// The hub's address.
    #[schema(example = "https://two.example")]
    pub url: String,
    /// `broker`: it sells itself. `sells_for`: this hub sells, and settles with its operator elsewhere. `reseller`: this hub
    /// sells, and pays it with its key there (`market_peers.keys_file`).
    #[schema(example = "broker")]
    pub mode: String,
}

/// Sets the rules.
#[utoipa::path(
    put,
    path = "/admin/market/peer/mode",
    operation_id = "admin_set_market_peer_mode",
    tag = "administration",
    summary = "Say under which rules a hub's capabilities are called",
    security(("operator" = [])),
    request_body = ModeBody,
    responses((status = 200, description = "As it is now", body = MarketPeerLine),
              (status = 400, description = "No address of another hub, or no mode"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such hub, or this one has no market"))
)]
pub async fn set(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<web::Json<MarketPeerLine>, ApiError> {
    let body: ModeBody = read(&app, &req, payload).await?;
    let peers = peers(&app)?;
    let (url, mode) = (address(peers, &body.url)?, mode(&body.mode)?);
    let detail = mode.as_str().to_owned();
    let changed = peers.decide(&url, PeerChange::Mode(mode), "mode", detail).await?;
    Ok(web::Json(done(changed, peers)?))
}
