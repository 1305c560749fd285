//! `GET /admin/market/peers/log`: what was decided about hubs that sell, by the operator and by the hub itself, newest first.

use actix_web::{HttpRequest, web};
use aip_market::limits::PAGE_MAX;
use aip_market::store::PeerLine;
use aip_protocol::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;
use crate::routes::admin::accounts::room;
use crate::routes::admin::{Operator, page_items};

/// A page of the log.
#[derive(Debug, Serialize, ToSchema)]
pub struct MarketPeerLog {
    /// The lines.
    pub items: Vec<MarketPeerLogLine>,
    /// Give it as `after` for the next page; `null` at the end.
    pub next_cursor: Option<u64>,
}

/// A line of the log.
#[derive(Debug, Serialize, ToSchema)]
pub struct MarketPeerLogLine {
    /// Its number.
    pub number: u64,
    /// When.
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
    /// The address of the hub.
    pub peer: String,
    /// `operator` or `hub`.
    #[schema(example = "operator")]
    pub actor: String,
    /// What was done.
    #[schema(example = "approve")]
    pub action: String,
    /// Details, for people.
    pub detail: String,
}

impl From<PeerLine> for MarketPeerLogLine {
    fn from(line: PeerLine) -> Self {
        Self {
            number: line.number,
            at: line.at,
            peer: line.peer,
            actor: line.actor,
            action: line.action,
            detail: line.detail,
        }
    }
}

/// Lists decisions.
#[utoipa::path(
    get,
    path = "/admin/market/peers/log",
    operation_id = "admin_market_peer_log",
    tag = "administration",
    summary = "List what was decided about hubs that sell",
    params(
        ("after" = Option<u64>, Query, description = "The number before which the page begins: the newest come first"),
        ("limit" = Option<u32>, Query, description = "Lines in the page, 1 to 500; 100 if absent"),
    ),
    security(("operator" = [])),
    responses((status = 200, description = "A page", body = MarketPeerLog),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "This hub has no market"))
)]
pub async fn log(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<web::Json<MarketPeerLog>, ApiError> {
    let query = Query::parse(&req, &["after", "limit"])?;
    let before = match query.number("after", 0..=u64::MAX >> 1, 0)? {
        0 => None,
        before => Some(before),
    };
    let limit = page_items(&query)?.min(PAGE_MAX);
    let found = room(&app)?.store().peer_lines(before, limit).await?;
    let is_full = found.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let next_cursor = found.last().filter(|_| is_full).map(|last| last.number);
    let items = found.into_iter().map(MarketPeerLogLine::from).collect();
    Ok(web::Json(MarketPeerLog { items, next_cursor }))
}
