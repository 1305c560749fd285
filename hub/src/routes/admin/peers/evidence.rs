//! `GET /admin/evidence`: what peers signed and cannot take back: histories that fork, keys that nobody vouches for.

use actix_web::{HttpRequest, web};
use aip_federation::peers::Evidence;
use aip_protocol::json::Json;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;
use crate::routes::admin::{Operator, page_items};

/// A page of evidence.
#[derive(Debug, Serialize, ToSchema)]
pub struct EvidencePage {
    /// The pieces.
    pub items: Vec<EvidenceLine>,
    /// Give it as `after` for the next page; `null` at the end.
    pub next_cursor: Option<u64>,
}

/// A piece of evidence.
#[derive(Debug, Serialize, ToSchema)]
pub struct EvidenceLine {
    /// Its number.
    pub number: u64,
    /// When it was recorded.
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
    /// The domain of the peer.
    pub peer: String,
    /// What it shows.
    #[schema(example = "history_forked")]
    pub code: String,
    /// Whom it is about: a DID, or a key.
    pub subject: String,
    /// The signed objects: what was known, and what was shown.
    #[schema(value_type = Vec<Object>)]
    pub objects: Vec<Json>,
}

impl From<Evidence> for EvidenceLine {
    fn from(evidence: Evidence) -> Self {
        Self {
            number: evidence.number,
            at: evidence.at,
            peer: evidence.peer.to_string(),
            code: evidence.code,
            subject: evidence.subject,
            objects: evidence.objects,
        }
    }
}

/// Lists evidence.
#[utoipa::path(
    get,
    path = "/admin/evidence",
    tag = "administration",
    summary = "List what peers signed and cannot take back",
    params(
        ("peer" = Option<String>, Query, description = "Only of this domain"),
        ("after" = Option<u64>, Query, description = "The number after which the page begins"),
        ("limit" = Option<u32>, Query, description = "Pieces in the page, 1 to 500; 100 if absent"),
    ),
    security(("operator" = [])),
    responses((status = 200, description = "A page", body = EvidencePage),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "This hub does not federate"))
)]
pub async fn evidence(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<web::Json<EvidencePage>, ApiError> {
    let query = Query::parse(&req, &["peer", "after", "limit"])?;
    let peer = query.text("peer")?.map(|peer| Domain::parse(&peer)).transpose()?;
    let after = query.number("after", 0..=u64::MAX >> 1, 0)?;
    let limit = page_items(&query)?.min(aip_federation::limits::PEERS_PAGE_MAX);
    let store = &super::federation(&app)?.store;
    let found = store.evidence(peer.as_ref(), after, limit).await?;
    let full = found.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let next_cursor = found.last().filter(|_| full).map(|last| last.number);
    let items = found.into_iter().map(EvidenceLine::from).collect();
    Ok(web::Json(EvidencePage { items, next_cursor }))
}
