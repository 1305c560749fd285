//! `GET /ai-market/v2/account/ledger`: what happened to an account's money, oldest first.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::limits::PAGE_MAX;
use aip_market::store::{Entry, EntryKind};
use aip_protocol::market::time_text;
use serde::Serialize;
use utoipa::ToSchema;

use super::holder;
use crate::app::App;
use crate::error::MarketError;
use crate::extract::Query;
use crate::routes::market::{PROTOCOL, room};
use crate::throttle::Cost;

/// Lines of a page where the caller names no number.
const PAGE_LINES: u64 = 50;

/// A line of the ledger.
#[derive(Debug, Serialize, ToSchema)]
pub struct LedgerLine {
    /// Grows with every line.
    pub number: u64,
    /// `credit`, `hold`, `capture`, `release`, `deposit` or `refund`.
    #[schema(example = "capture")]
    pub kind: &'static str,
    /// How much.
    pub amount_usd: f64,
    /// What it was for: a reference of the operator, an invocation, a channel.
    pub reference: String,
    /// The balance after it.
    pub balance_usd: f64,
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
}

/// The word for a kind of line.
pub(crate) fn kind(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Credit => "credit",
        EntryKind::Hold => "hold",
        EntryKind::Capture => "capture",
        EntryKind::Release => "release",
        EntryKind::Deposit => "deposit",
        EntryKind::Refund => "refund",
    }
}

impl From<Entry> for LedgerLine {
    fn from(entry: Entry) -> Self {
        Self {
            number: entry.number,
            kind: kind(entry.kind),
            amount_usd: entry.amount.to_f64(),
            reference: entry.reference,
            balance_usd: entry.balance.to_f64(),
            at: time_text(entry.at),
        }
    }
}

/// A page of the ledger.
#[derive(Debug, Serialize, ToSchema)]
pub struct LedgerPage {
    /// Always true.
    pub success: bool,
    /// The account.
    pub account_id: String,
    /// The lines.
    pub entries: Vec<LedgerLine>,
    /// Give it as `after` for the next page; `null` at the end.
    pub next: Option<u64>,
    /// `v2`.
    pub protocol_version: &'static str,
}

/// Shows a page of the ledger.
#[utoipa::path(
    get,
    path = "/ai-market/v2/account/ledger",
    operation_id = "market_ledger",
    tag = "market",
    summary = "What happened to an account's money",
    params(
        ("X-API-Key" = Option<String>, Header, description = "A key of the account; or its owner's token"),
        ("after" = Option<u64>, Query, description = "The number after which the page begins"),
        ("limit" = Option<u32>, Query, description = "Lines in the page, 1 to 500; 50 if absent"),
    ),
    security(("token" = []), ()),
    responses(
        (status = 200, description = "A page, oldest first", body = LedgerPage),
        (status = 400, description = "A parameter is unknown or not in its form"),
        (status = 401, description = "The key is none, or nothing was shown"),
        (status = 404, description = "The agent has no account"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn ledger(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Purse, &req)?;
    let room = room(&app)?;
    let query = Query::parse(&req, &["after", "limit"])?;
    let after = query.number("after", 0..=u64::MAX >> 1, 0)?;
    let limit = query.number("limit", 1..=u64::from(PAGE_MAX), PAGE_LINES)?;
    let limit = u32::try_from(limit).unwrap_or(PAGE_MAX);
    let account = holder(&app, room, &req).await?.account;
    let entries = room.store().entries(&account.id, after, limit).await?;
    let is_full = entries.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(HttpResponse::Ok().json(LedgerPage {
        success: true,
        account_id: account.id.0,
        next: entries.last().filter(|_| is_full).map(|last| last.number),
        entries: entries.into_iter().map(LedgerLine::from).collect(),
        protocol_version: PROTOCOL,
    }))
}
