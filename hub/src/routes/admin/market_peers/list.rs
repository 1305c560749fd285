//! `GET /admin/market/peers`: hubs that sell here, or would, in the order of their addresses.

use actix_web::{HttpRequest, web};
use aip_market::limits::PAGE_MAX;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use utoipa::ToSchema;

use super::{MarketPeerLine, peers};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;
use crate::routes::admin::accounts::room;
use crate::routes::admin::{Operator, page_items};

/// A page of hubs.
#[derive(Debug, Serialize, ToSchema)]
pub struct MarketPeerPage {
    /// The hubs.
    pub items: Vec<MarketPeerLine>,
    /// Give it as `after` for the next page, as it is; `null` at the end.
    pub next_cursor: Option<String>,
}

/// Lists hubs that sell here.
#[utoipa::path(
    get,
    path = "/admin/market/peers",
    operation_id = "admin_market_peers",
    tag = "administration",
    summary = "List hubs that sell here, or would",
    params(
        ("after" = Option<String>, Query, description = "The address after which the page begins"),
        ("limit" = Option<u32>, Query, description = "Hubs in the page, 1 to 500; 100 if absent"),
    ),
    security(("operator" = [])),
    responses((status = 200, description = "A page", body = MarketPeerPage),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "This hub has no market"))
)]
pub async fn list(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<web::Json<MarketPeerPage>, ApiError> {
    let query = Query::parse(&req, &["after", "limit"])?;
    let after = query.text("after")?;
    let limit = page_items(&query)?.min(PAGE_MAX);
    let found = room(&app)?.store().market_peers(after.as_deref(), limit).await?;
    let is_full = found.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let peers = peers(&app)?;
    let items: Vec<_> = found
        .into_iter()
        .map(|peer| MarketPeerLine::of(peer, peers))
        .collect();
    let last = items.last().filter(|_| is_full);
    let next_cursor = last.map(|last| utf8_percent_encode(&last.url, NON_ALPHANUMERIC).to_string());
    Ok(web::Json(MarketPeerPage { items, next_cursor }))
}
