//! `POST /admin/market/peers`: lets a hub sell here. One that is not known is added.

use actix_web::{HttpRequest, web};
use aip_market::store::PeerChange;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{MarketPeerLine, address, done, key, peers};
use crate::app::App;
use crate::error::ApiError;
use crate::routes::admin::{Operator, read};

/// What is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveBody {
    /// The hub's address.
    #[schema(example = "https://two.example")]
    pub url: String,
    /// Its key in base64, as its operator told it; absent: the key that is pinned, or the first that it shows.
    pub key: Option<String>,
}

/// Lets a hub sell here.
#[utoipa::path(
    post,
    path = "/admin/market/peers",
    operation_id = "admin_approve_market_peer",
    tag = "administration",
    summary = "Let a hub sell here",
    description = "It is asked at once for what it sells. One that shows another key than the pinned one stays frozen.",
    security(("operator" = [])),
    request_body = ApproveBody,
    responses((status = 200, description = "As it is now", body = MarketPeerLine),
              (status = 400, description = "No address of another hub, or no key"),
              (status = 409, description = "Another hub sells here with that key"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "This hub has no market"))
)]
pub async fn approve(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<web::Json<MarketPeerLine>, ApiError> {
    let body: ApproveBody = read(&app, &req, payload).await?;
    let peers = peers(&app)?;
    let url = address(peers, &body.url)?;
    let change = PeerChange::Approved {
        key: key(body.key.as_deref())?,
    };
    let detail = body
        .key
        .map_or_else(String::new, |key| format!("with the key {key}"));
    let changed = peers.decide(&url, change, "approve", detail).await?;
    Ok(web::Json(done(changed, peers)?))
}
