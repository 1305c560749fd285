//! `GET /admin/peers`: the peers that this hub has met, in the order of their domains.

use actix_web::{HttpRequest, web};
use aip_federation::limits::PEERS_PAGE_MAX;
use aip_protocol::name::Domain;
use serde::Serialize;
use utoipa::ToSchema;

use super::PeerLine;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;
use crate::routes::admin::{Operator, page_items};

/// A page of peers.
#[derive(Debug, Serialize, ToSchema)]
pub struct PeerPage {
    /// The peers.
    pub items: Vec<PeerLine>,
    /// Give it as `after` for the next page; `null` at the end.
    pub next_cursor: Option<String>,
}

/// Lists peers.
#[utoipa::path(
    get,
    path = "/admin/peers",
    tag = "administration",
    summary = "List the peers that this hub has met",
    params(
        ("after" = Option<String>, Query, description = "The domain after which the page begins"),
        ("limit" = Option<u32>, Query, description = "Peers in the page, 1 to 500; 100 if absent"),
    ),
    security(("operator" = [])),
    responses((status = 200, description = "A page", body = PeerPage),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "This hub does not federate"))
)]
pub async fn peers(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<web::Json<PeerPage>, ApiError> {
    let query = Query::parse(&req, &["after", "limit"])?;
    let after = query
        .text("after")?
        .map(|after| Domain::parse(&after))
        .transpose()?;
    let limit = page_items(&query)?.min(PEERS_PAGE_MAX);
    let store = &super::federation(&app)?.store;
    let found = store.peers(after.as_ref(), limit).await?;
    let full = found.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let items: Vec<PeerLine> = found.iter().map(PeerLine::from).collect();
    let next_cursor = items.last().filter(|_| full).map(|last| last.domain.clone());
    Ok(web::Json(PeerPage { items, next_cursor }))
}
