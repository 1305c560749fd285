//! `GET /admin/accounts/{id}/ledger`: what happened to an account's money, oldest first.

use actix_web::{HttpRequest, web};
use aip_market::limits::PAGE_MAX;
use aip_market::store::Entry;
use aip_protocol::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::{path_account, room};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;
use crate::routes::admin::{Operator, page_items};
use crate::routes::market::account::ledger::kind;

/// A line of the ledger.
#[derive(Debug, Serialize, ToSchema)]
pub struct EntryLine {
    /// Grows with every line.
    pub number: u64,
    /// `credit`, `hold`, `capture`, `release`, `deposit` or `refund`.
    #[schema(example = "capture")]
    pub kind: &'static str,
    /// How much.
    pub amount: String,
    /// What it was for.
    pub reference: String,
    /// The balance after it.
    pub balance: String,
    /// When.
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
}

impl From<Entry> for EntryLine {
    fn from(entry: Entry) -> Self {
        Self {
            number: entry.number,
            kind: kind(entry.kind),
            amount: entry.amount.to_string(),
            reference: entry.reference,
            balance: entry.balance.to_string(),
            at: entry.at,
        }
    }
}

/// A page of the ledger.
#[derive(Debug, Serialize, ToSchema)]
pub struct EntryPage {
    /// The lines.
    pub items: Vec<EntryLine>,
    /// Give it as `after` for the next page; `null` at the end.
    pub next_cursor: Option<u64>,
}

/// Shows a page of the ledger.
#[utoipa::path(
    get,
    path = "/admin/accounts/{id}/ledger",
    operation_id = "account_ledger",
    tag = "administration",
    summary = "Show what happened to an account's money",
    params(
        ("id" = String, Path, description = "The account"),
        ("after" = Option<u64>, Query, description = "The number after which the page begins"),
        ("limit" = Option<u32>, Query, description = "Lines in the page, 1 to 500; 100 if absent"),
    ),
    security(("operator" = [])),
    responses((status = 200, description = "A page, oldest first", body = EntryPage),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "This hub has no market"))
)]
pub async fn ledger(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<web::Json<EntryPage>, ApiError> {
    let id = path_account(&req)?;
    let query = Query::parse(&req, &["after", "limit"])?;
    let after = query.number("after", 0..=u64::MAX >> 1, 0)?;
    let limit = page_items(&query)?.min(PAGE_MAX);
    let found = room(&app)?.store().entries(&id, after, limit).await?;
    let is_full = found.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let items: Vec<EntryLine> = found.into_iter().map(EntryLine::from).collect();
    let next_cursor = items.last().filter(|_| is_full).map(|last| last.number);
    Ok(web::Json(EntryPage { items, next_cursor }))
}
