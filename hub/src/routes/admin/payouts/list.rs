//! `GET /admin/payouts`: what each provider earned, was paid and is owed.

use actix_web::{HttpRequest, web};
use aip_market::limits::PAGE_MAX;
use aip_protocol::name::Did;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;
use crate::routes::admin::accounts::room;
use crate::routes::admin::{Operator, page_items};
use crate::routes::market::earnings::Earnings;

/// A page of providers.
#[derive(Debug, Serialize, ToSchema)]
pub struct PayoutPage {
    /// The providers, in the order of their DIDs.
    pub items: Vec<Earnings>,
    /// Give it as `after` for the next page; `null` at the end.
    pub next_cursor: Option<String>,
}

/// Lists what providers earned.
#[utoipa::path(
    get,
    path = "/admin/payouts",
    tag = "administration",
    summary = "List what providers earned and are owed",
    params(
        ("after" = Option<String>, Query, description = "The DID after which the page begins"),
        ("limit" = Option<u32>, Query, description = "Providers in the page, 1 to 500; 100 if absent"),
    ),
    security(("operator" = [])),
    responses((status = 200, description = "A page", body = PayoutPage),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "This hub has no market"))
)]
pub async fn payouts(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<web::Json<PayoutPage>, ApiError> {
    let query = Query::parse(&req, &["after", "limit"])?;
    let after = query.text("after")?.map(|after| Did::parse(&after)).transpose()?;
    let limit = page_items(&query)?.min(PAGE_MAX);
    let found = room(&app)?.store().all_earned(after.as_ref(), limit).await?;
    let is_full = found.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let items: Vec<Earnings> = found.into_iter().map(Earnings::from).collect();
    let next_cursor = items.last().filter(|_| is_full).map(|last| last.agent.clone());
    Ok(web::Json(PayoutPage { items, next_cursor }))
}
