//! `POST /admin/market/peer/crawl`: a hub is asked at once for what it sells.

use actix_web::{HttpRequest, web};
use aip_market::store::PeerChange;

use super::block::MarketPeerBody;
use super::{MarketPeerLine, address, done, peers};
use crate::app::App;
use crate::error::ApiError;
use crate::routes::admin::{Operator, read};

/// Asks a hub at once.
#[utoipa::path(
    post,
    path = "/admin/market/peer/crawl",
    operation_id = "admin_crawl_market_peer",
    tag = "administration",
    summary = "Ask a hub at once for what it sells",
    description = "It is asked within seconds; `GET /admin/market/peer` tells what came of it. A blocked one is not asked.",
    security(("operator" = [])),
    request_body = MarketPeerBody,
    responses((status = 200, description = "As it is now", body = MarketPeerLine),
              (status = 400, description = "No address of another hub"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such hub, or this one has no market"))
)]
pub async fn crawl(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<web::Json<MarketPeerLine>, ApiError> {
    let body: MarketPeerBody = read(&app, &req, payload).await?;
    let peers = peers(&app)?;
    let url = address(peers, &body.url)?;
    let change = PeerChange::CrawlAt(app.clock.now());
    let changed = peers.decide(&url, change, "crawl", String::new()).await?;
    Ok(web::Json(done(changed, peers)?))
}
