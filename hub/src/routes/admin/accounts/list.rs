//! `GET /admin/accounts`: all accounts, in the order of their ids.

use actix_web::{HttpRequest, web};
use aip_market::limits::PAGE_MAX;
use aip_market::store::AccountId;
use serde::Serialize;
use utoipa::ToSchema;

use super::{AccountLine, room};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;
use crate::routes::admin::{Operator, page_items};

/// A page of accounts.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccountPage {
    /// The accounts.
    pub items: Vec<AccountLine>,
    /// Give it as `after` for the next page; `null` at the end.
    pub next_cursor: Option<String>,
}

/// Lists accounts.
#[utoipa::path(
    get,
    path = "/admin/accounts",
    tag = "administration",
    summary = "List all accounts of the market",
    params(
        ("after" = Option<String>, Query, description = "The id after which the page begins"),
        ("limit" = Option<u32>, Query, description = "Accounts in the page, 1 to 500; 100 if absent"),
    ),
    security(("operator" = [])),
    responses((status = 200, description = "A page", body = AccountPage),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "This hub has no market"))
)]
pub async fn accounts(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<web::Json<AccountPage>, ApiError> {
    let query = Query::parse(&req, &["after", "limit"])?;
    let after = query.text("after")?.map(AccountId);
    let limit = page_items(&query)?.min(PAGE_MAX);
    let found = room(&app)?.store().accounts(after.as_ref(), limit).await?;
    let is_full = found.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let items: Vec<AccountLine> = found.into_iter().map(AccountLine::from).collect();
    let next_cursor = items.last().filter(|_| is_full).map(|last| last.id.clone());
    Ok(web::Json(AccountPage { items, next_cursor }))
}
