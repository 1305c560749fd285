//! `POST /ai-market/v2/account/keys`: one more key, with a budget of its own.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::limits::KEYS_PER_ACCOUNT_MAX;
use aip_market::money::Usd;
use aip_market::refusal::{MarketCode, MarketRefusal};
use aip_market::store::{Account, Created};
use aip_protocol::market::time_text;
use serde::Serialize;
use utoipa::ToSchema;

use super::{KeyLine, holder};
use crate::app::App;
use crate::error::MarketError;
use crate::market::MarketRoom;
use crate::routes::market::{PROTOCOL, budget, label, read, room};
use crate::throttle::Cost;

/// A key that was made.
#[derive(Serialize, ToSchema)]
pub struct MadeKey {
    /// Always true.
    pub success: bool,
    /// The account that it spends from.
    pub account_id: String,
    /// The secret; it is told only here.
    pub api_key: String,
    /// What it is revoked by.
    pub key_id: String,
    /// The rest of it.
    pub key: KeyLine,
    /// `v2`.
    pub protocol_version: &'static str,
}

impl std::fmt::Debug for MadeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MadeKey")
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}

/// Makes a key.
#[utoipa::path(
    post,
    path = "/ai-market/v2/account/keys",
    operation_id = "market_add_key",
    tag = "market",
    summary = "Make another key",
    description = "A budget is what the key may ever spend: `null` is no ceiling, 0 spends nothing and still calls what is \
                   free.",
    params(("X-API-Key" = Option<String>, Header, description = "A key without a budget; or the owner's token")),
    security(("token" = []), ()),
    request_body(content = Object, content_type = "application/json", description = "`label`, `budget_usd`; both may be absent"),
    responses(
        (status = 200, description = "The key, which is told only here", body = MadeKey),
        (status = 400, description = "A budget that is none"),
        (status = 401, description = "The key is none, or nothing was shown"),
        (status = 403, description = "The key has a budget"),
        (status = 404, description = "The agent has no account"),
        (status = 409, description = "The account has 20 keys"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn add_key(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Purse, &req)?;
    let room = room(&app)?;
    let holder = holder(&app, room, &req).await?;
    holder.may_make_keys()?;
    let body = read(&app, &req, payload).await?;
    let made = make(&app, room, &holder.account, label(&body)?, budget(&body)?).await?;
    Ok(HttpResponse::Ok().json(made))
}

/// Makes one more key.
pub(super) async fn make(
    app: &App,
    room: &MarketRoom,
    account: &Account,
    label: String,
    budget: Option<Usd>,
) -> Result<MadeKey, MarketError> {
    let now = app.clock.now();
    let (key, secret) = room.engine.draw_key(label, budget);
    let line = KeyLine {
        key_id: key.id.0.clone(),
        label: key.label.clone(),
        budget_usd: budget.map(Usd::to_f64),
        spent_usd: 0.0,
        created_at: time_text(now),
    };
    match room.store().add_key(&account.id, key, now).await? {
        Created::Made => Ok(MadeKey {
            success: true,
            account_id: account.id.0.clone(),
            api_key: secret.expose().to_owned(),
            key_id: line.key_id.clone(),
            key: line,
            protocol_version: PROTOCOL,
        }),
        Created::OwnerHasOne(_) | Created::Refused => {
            let detail =
                format!("The account has {KEYS_PER_ACCOUNT_MAX} keys, as many as it may: revoke one first.");
            Err(MarketRefusal::new(MarketCode::TooManyKeys, detail).into())
        }
    }
}
