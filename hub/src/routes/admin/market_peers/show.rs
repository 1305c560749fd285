//! `GET /admin/market/peer?url=`: one hub that sells here or would, and some of what a pending one offers.

use actix_web::{HttpRequest, web};
use aip_market::money::Usd;
use aip_market::store::PreviewRow;
use serde::Serialize;
use utoipa::ToSchema;

use super::{MarketPeerLine, address, peers, unknown};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;
use crate::routes::admin::Operator;
use crate::routes::admin::accounts::room;

/// One hub.
#[derive(Debug, Serialize, ToSchema)]
pub struct MarketPeerState {
    /// The hub.
    #[serde(flatten)]
    pub peer: MarketPeerLine,
    /// Some of what it offers, while nobody has decided about it: found and sold nowhere.
    pub preview: Vec<MarketPreviewRow>,
}

/// A capability of a hub that nobody has let in. Its words are those of a stranger.
#[derive(Debug, Serialize, ToSchema)]
pub struct MarketPreviewRow {
    /// What a call would cost, in US dollars.
    #[schema(example = "0.01")]
    pub price: String,
    /// Its product.
    pub product_id: String,
    /// Its capability.
    pub capability_id: String,
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
}

impl From<PreviewRow> for MarketPreviewRow {
    fn from(row: PreviewRow) -> Self {
        Self {
            price: Usd::from_micros(row.price_micros).unwrap_or(Usd::MAX).to_string(),
            product_id: row.product_id,
            capability_id: row.capability_id,
            name: row.name,
            description: row.description,
        }
    }
}

/// Shows a hub.
#[utoipa::path(
    get,
    path = "/admin/market/peer",
    operation_id = "admin_market_peer",
    tag = "administration",
    summary = "Show a hub that sells here, or would",
    params(("url" = String, Query, description = "Its address", example = "https://two.example")),
    security(("operator" = [])),
    responses((status = 200, description = "The hub", body = MarketPeerState),
              (status = 400, description = "No address of another hub"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such hub, or this one has no market"))
)]
pub async fn show(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<web::Json<MarketPeerState>, ApiError> {
    let query = Query::parse(&req, &["url"])?;
    let peers = peers(&app)?;
    let url = address(peers, &query.text("url")?.unwrap_or_default())?;
    let store = room(&app)?.store();
    let peer = store.market_peer(&url).await?.ok_or_else(unknown)?;
    let preview = store.peer_preview(&url).await?;
    Ok(web::Json(MarketPeerState {
        peer: MarketPeerLine::of(peer, peers),
        preview: preview.into_iter().map(MarketPreviewRow::from).collect(),
    }))
}
