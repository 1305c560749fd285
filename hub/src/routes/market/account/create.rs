//! `POST /ai-market/v2/accounts`: opens an account.

use actix_web::http::header::CONTENT_TYPE;
use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::money::Usd;
use aip_market::refusal::{MarketCode, MarketRefusal};
use aip_market::store::{Created, NewAccount};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::MarketError;
use crate::routes::market::{PROTOCOL, agent, budget, label, read, room};
use crate::throttle::Cost;

/// An account that was opened.
#[derive(Serialize, ToSchema)]
pub struct OpenedAccount {
    /// Always true.
    pub success: bool,
    /// The account.
    pub account_id: String,
    /// The secret of its first key; it is told only here.
    pub api_key: String,
    /// What the key is revoked by.
    pub key_id: String,
    /// What it is called.
    pub label: String,
    /// The agent that it belongs to.
    pub owner: Option<String>,
    /// What can be spent: nothing yet.
    pub balance_usd: f64,
    /// What may ever be spent; `null`: no ceiling.
    pub budget_usd: Option<f64>,
    /// For people.
    pub note: &'static str,
    /// For people.
    pub usage: &'static str,
    /// `v2`.
    pub protocol_version: &'static str,
}

impl std::fmt::Debug for OpenedAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenedAccount")
            .field("account_id", &self.account_id)
            .finish_non_exhaustive()
    }
}

/// Opens an account.
#[utoipa::path(
    post,
    path = "/ai-market/v2/accounts",
    operation_id = "market_open_account",
    tag = "market",
    summary = "Open an account",
    description = "For an agent of this hub, by its token: one each. For anybody where the operator allows that. Money comes \
                   in by the operator.",
    security(("token" = []), ()),
    request_body(content = Object, content_type = "application/json", description = "`label`, `budget_usd`; both may be absent"),
    responses(
        (status = 200, description = "The account, and its first key, which is told only here", body = OpenedAccount),
        (status = 400, description = "A budget that is none"),
        (status = 401, description = "The token is not good"),
        (status = 403, description = "Without a token, or with `grant_usd`: only the operator gives money"),
        (status = 409, description = "The agent has an account: `account_id`"),
        (status = 415, description = "The body does not say that it is JSON"),
        (status = 422, description = "The body is not of its form"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn create(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Purse, &req)?;
    let room = room(&app)?;
    app.require_room("accounts")?;
    if !req.headers().contains_key(CONTENT_TYPE) {
        // A form of somebody else's page could be sent without.
        let detail = "Send the body as application/json, and say so.";
        return Err(MarketError::refused(MarketCode::MediaTypeUnsupported, detail));
    }
    let owner = agent(&req).await?;
    if owner.is_none() {
        if !app.settings.market.open_signup {
            let detail = "Accounts here are for agents of this hub, by their token (`Authorization: Bearer …`); its \
                          operator opens others.";
            return Err(MarketError::refused(MarketCode::SignupClosed, detail));
        }
        app.throttle.admit(Cost::Registration, &req)?;
    }
    let body = read(&app, &req, payload).await?;
    if body.contains_key("grant_usd") {
        let detail = "grant_usd is the operator's to give: leave it out.";
        return Err(MarketError::refused(MarketCode::GrantRefused, detail));
    }
    let (label, budget) = (label(&body)?, budget(&body)?);
    let (key, secret) = room.engine.draw_key(String::new(), None);
    let key_id = key.id.0.clone();
    let new = NewAccount {
        id: room.engine.draw_account(),
        label: label.clone(),
        owner: owner.clone(),
        budget,
        grant: Usd::ZERO,
        key,
    };
    let id = new.id.0.clone();
    match room.store().create_account(new, app.clock.now()).await? {
        Created::Made => Ok(HttpResponse::Ok().json(OpenedAccount {
            success: true,
            account_id: id,
            api_key: secret.expose().to_owned(),
            key_id,
            label,
            owner: owner.map(|owner| owner.to_string()),
            balance_usd: 0.0,
            budget_usd: budget.map(Usd::to_f64),
            note: "Keep api_key now: only its hash is kept, it cannot be shown again.",
            usage: "Send it as X-API-Key to /ai-market/v2/invoke.",
            protocol_version: PROTOCOL,
        })),
        Created::OwnerHasOne(id) => {
            let detail = "The agent has an account; POST /ai-market/v2/account/keys makes another key.";
            Err(MarketRefusal::new(MarketCode::AccountExists, detail)
                .with("account_id", id.0)
                .into())
        }
        Created::Refused => {
            let detail = "The account was not made. Try again.";
            Err(MarketError::refused(MarketCode::Unavailable, detail))
        }
    }
}
