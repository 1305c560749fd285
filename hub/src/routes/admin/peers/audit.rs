//! `GET /admin/audit/peers`: what was decided about peers, by the operator and by the hub itself, oldest first.

use actix_web::{HttpRequest, web};
use aip_federation::peers::AuditEntry;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;
use crate::routes::admin::{Operator, page_items};

/// A page of the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditPage {
    /// The lines.
    pub items: Vec<AuditLine>,
    /// Give it as `after` for the next page; `null` at the end.
    pub next_cursor: Option<u64>,
}

/// A line of the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditLine {
    /// Its number.
    pub number: u64,
    /// When.
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
    /// The domain of the peer.
    pub peer: String,
    /// `operator` or `hub`.
    #[schema(example = "operator")]
    pub actor: String,
    /// What was done.
    #[schema(example = "block")]
    pub action: String,
    /// Details, for people.
    pub detail: String,
}

impl From<AuditEntry> for AuditLine {
    fn from(entry: AuditEntry) -> Self {
        Self {
            number: entry.number,
            at: entry.at,
            peer: entry.peer.to_string(),
            actor: entry.actor,
            action: entry.action,
            detail: entry.detail,
        }
    }
}

/// Lists decisions.
#[utoipa::path(
    get,
    path = "/admin/audit/peers",
    tag = "administration",
    summary = "List what was decided about peers",
    params(
        ("peer" = Option<String>, Query, description = "Only about this domain"),
        ("after" = Option<u64>, Query, description = "The number after which the page begins"),
        ("limit" = Option<u32>, Query, description = "Lines in the page, 1 to 500; 100 if absent"),
    ),
    security(("operator" = [])),
    responses((status = 200, description = "A page", body = AuditPage),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "This hub does not federate"))
)]
pub async fn audit(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<web::Json<AuditPage>, ApiError> {
    let query = Query::parse(&req, &["peer", "after", "limit"])?;
    let peer = query.text("peer")?.map(|peer| Domain::parse(&peer)).transpose()?;
    let after = query.number("after", 0..=u64::MAX >> 1, 0)?;
    let limit = page_items(&query)?.min(aip_federation::limits::PEERS_PAGE_MAX);
    let store = &super::federation(&app)?.store;
    let found = store.audit_log(peer.as_ref(), after, limit).await?;
    let full = found.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let next_cursor = found.last().filter(|_| full).map(|last| last.number);
    let items = found.into_iter().map(AuditLine::from).collect();
    Ok(web::Json(AuditPage { items, next_cursor }))
}
