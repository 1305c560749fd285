//! `GET /admin/market`: the books of the market as of one moment.

use actix_web::{HttpRequest, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::Operator;
use super::accounts::room;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;

/// Everything there is. Amounts are US dollars in decimal digits.
#[derive(Debug, Serialize, ToSchema)]
pub struct Books {
    /// Whether what came in is all somewhere: `credited + demo` is the sum of `balances`, `held`, `channels`, `earned`, `fees`
    /// and `demo_returned`.
    pub balance: bool,
    /// Ever put into accounts.
    pub credited: String,
    /// Ever put into channels from nowhere.
    pub demo: String,
    /// In accounts, without what is held.
    pub balances: String,
    /// Held for calls that are under way.
    pub held: String,
    /// In channels, without what is held.
    pub channels: String,
    /// Ever earned by providers.
    pub earned: String,
    /// Of it, paid out.
    pub paid_out: String,
    /// Ever taken by the hub.
    pub fees: String,
    /// What was left of channels whose money came from nowhere.
    pub demo_returned: String,
    /// What buyers paid providers on a chain, past the hub: in none of the others.
    pub paid_directly: String,
}

/// Shows the books.
#[utoipa::path(
    get,
    path = "/admin/market",
    tag = "administration",
    summary = "Show the books of the market",
    security(("operator" = [])),
    responses((status = 200, description = "As of one moment", body = Books),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "This hub has no market"))
)]
pub async fn books(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<web::Json<Books>, ApiError> {
    Query::parse(&req, &[])?;
    let totals = room(&app)?.store().totals().await?;
    Ok(web::Json(Books {
        balance: totals.balance(),
        credited: totals.credited.to_string(),
        demo: totals.demo.to_string(),
        balances: totals.balances.to_string(),
        held: totals.held.to_string(),
        channels: totals.channels.to_string(),
        earned: totals.earned.to_string(),
        paid_out: totals.paid_out.to_string(),
        fees: totals.fees.to_string(),
        demo_returned: totals.demo_returned.to_string(),
        paid_directly: totals.paid_directly.to_string(),
    }))
}
