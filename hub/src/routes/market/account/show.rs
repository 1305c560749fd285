//! `GET /ai-market/v2/account`: what an account has, and its keys.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::money::Usd;
use aip_protocol::market::time_text;
use serde::Serialize;
use utoipa::ToSchema;

use super::{KeyLine, holder};
use crate::app::App;
use crate::error::MarketError;
use crate::routes::market::{PROTOCOL, room};
use crate::throttle::Cost;

/// An account, for its holder.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccountAnswer {
    /// Always true.
    pub success: bool,
    /// The account.
    pub account_id: String,
    /// What it is called.
    pub label: String,
    /// The DID of the agent that it belongs to.
    pub owner: Option<String>,
    /// What can be spent.
    pub balance_usd: f64,
    /// What is set aside for calls that are under way.
    pub held_usd: f64,
    /// What was spent, is set aside, or is in channels.
    pub spent_usd: f64,
    /// What may ever be spent; `null`: no ceiling.
    pub budget_usd: Option<f64>,
    /// `active` or `suspended`.
    #[schema(example = "active")]
    pub status: &'static str,
    /// When it was made.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// Its keys; for a key with a budget, that one alone.
    pub keys: Vec<KeyLine>,
    /// `v2`.
    pub protocol_version: &'static str,
}

/// Shows the account of a key, or of an agent.
#[utoipa::path(
    get,
    path = "/ai-market/v2/account",
    operation_id = "market_account",
    tag = "market",
    summary = "What an account has",
    params(("X-API-Key" = Option<String>, Header, description = "A key of the account; or its owner's token")),
    security(("token" = []), ()),
    responses(
        (status = 200, description = "The account", body = AccountAnswer),
        (status = 401, description = "The key is none, or nothing was shown"),
        (status = 404, description = "The agent has none"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn show(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Purse, &req)?;
    let room = room(&app)?;
    let holder = holder(&app, room, &req).await?;
    let keys = match holder.key.filter(|key| key.budget.is_some()) {
        Some(key) => vec![key],
        None => room.store().keys(&holder.account.id).await?,
    };
    let account = holder.account;
    Ok(HttpResponse::Ok().json(AccountAnswer {
        success: true,
        account_id: account.id.0,
        label: account.label,
        owner: account.owner.map(|owner| owner.to_string()),
        balance_usd: account.balance.to_f64(),
        held_usd: account.held.to_f64(),
        spent_usd: account.spent.to_f64(),
        budget_usd: account.budget.map(Usd::to_f64),
        status: if account.suspended { "suspended" } else { "active" },
        created_at: time_text(account.created_at),
        keys: keys.iter().map(KeyLine::from).collect(),
        protocol_version: PROTOCOL,
    }))
}
