//! `POST /admin/market/peer/block`: a hub is not dealt with. What it sold here is taken down.

use actix_web::{HttpRequest, web};
use aip_market::store::PeerChange;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{MarketPeerLine, address, done, peers};
use crate::app::App;
use crate::error::ApiError;
use crate::routes::admin::{Operator, read};

/// Which hub.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MarketPeerBody {
    /// Its address.
    #[schema(example = "https://two.example")]
    pub url: String,
}

/// Blocks a hub.
#[utoipa::path(
    post,
    path = "/admin/market/peer/block",
    operation_id = "admin_block_market_peer",
    tag = "administration",
    summary = "Have nothing to do with a hub that sells",
    description = "What it sold here is taken down. One that was never heard of can be blocked, too.",
    security(("operator" = [])),
    request_body = MarketPeerBody,
    responses((status = 200, description = "As it is now", body = MarketPeerLine),
              (status = 400, description = "No address of another hub"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "This hub has no market"))
)]
pub async fn block(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<web::Json<MarketPeerLine>, ApiError> {
    let body: MarketPeerBody = read(&app, &req, payload).await?;
    let peers = peers(&app)?;
    let url = address(peers, &body.url)?;
    let changed = peers
        .decide(&url, PeerChange::Blocked, "block", String::new())
        .await?;
    Ok(web::Json(done(changed, peers)?))
}
