//! `POST /admin/market/peer/repin`: another key is pinned for a hub.

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
pub struct RepinBody {
    /// The hub's address.
    #[schema(example = "https://two.example")]
    pub url: String,
    /// The key in base64; absent: the one that it shows now.
    pub key: Option<String>,
}

/// Pins another key.
#[utoipa::path(
    post,
    path = "/admin/market/peer/repin",
    operation_id = "admin_repin_market_peer",
    tag = "administration",
    summary = "Pin another key for a hub that sells",
    description = "A hub that was frozen sells again, and is asked at once. Ask its operator by another way first.",
    security(("operator" = [])),
    request_body = RepinBody,
    responses((status = 200, description = "As it is now", body = MarketPeerLine),
              (status = 400, description = "No address of another hub, no key, or it shows no other one"),
              (status = 409, description = "Another hub sells here with that key"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such hub, or this one has no market"))
)]
pub async fn repin(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<web::Json<MarketPeerLine>, ApiError> {
    let body: RepinBody = read(&app, &req, payload).await?;
    let peers = peers(&app)?;
    let url = address(peers, &body.url)?;
    let change = PeerChange::Repinned {
        key: key(body.key.as_deref())?,
    };
    let detail = body.key.map_or_else(
        || "the key that it shows".to_owned(),
        |key| format!("the key {key}"),
    );
    let changed = peers.decide(&url, change, "repin", detail).await?;
    Ok(web::Json(done(changed, peers)?))
}
