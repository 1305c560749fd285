//! `POST /ai-market/v2/account/rotate-key`: a new key in place of the one that is shown.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::refusal::MarketCode;

use super::add_key::{MadeKey, make};
use super::holder;
use crate::app::App;
use crate::error::MarketError;
use crate::routes::market::room;
use crate::throttle::Cost;

/// Gives out a new key, and ends the one that is shown.
#[utoipa::path(
    post,
    path = "/ai-market/v2/account/rotate-key",
    operation_id = "market_rotate_key",
    tag = "market",
    summary = "Replace a key",
    description = "The new one is there before the old one ends: who loses this answer has lost the key, and the owner \
                   makes another with the agent's token, or the operator does.",
    params(("X-API-Key" = String, Header, description = "The key to replace, without a budget")),
    responses(
        (status = 200, description = "The key, which is told only here", body = MadeKey),
        (status = 401, description = "The key is none, or nothing was shown"),
        (status = 403, description = "The key has a budget"),
        (status = 409, description = "The account has 20 keys"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn rotate_key(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Purse, &req)?;
    let room = room(&app)?;
    let holder = holder(&app, room, &req).await?;
    holder.may_make_keys()?;
    let Some(old) = holder.key else {
        let detail = "Send the key to replace as X-API-Key.";
        return Err(MarketError::refused(MarketCode::KeyInvalid, detail));
    };
    let made = make(&app, room, &holder.account, old.label, None).await?;
    room.store().revoke_key(&holder.account.id, &old.id).await?;
    Ok(HttpResponse::Ok().json(made))
}
