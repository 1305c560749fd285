//! `DELETE /ai-market/v2/account/keys/{key_id}`: ends a key.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::refusal::MarketCode;
use aip_market::store::KeyId;

use super::holder;
use crate::app::App;
use crate::error::MarketError;
use crate::routes::market::{PROTOCOL, room};
use crate::throttle::Cost;

/// Ends a key.
#[utoipa::path(
    delete,
    path = "/ai-market/v2/account/keys/{key_id}",
    operation_id = "market_revoke_key",
    tag = "market",
    summary = "End a key",
    description = "Calls of it that are under way go on to their end.",
    params(
        ("key_id" = String, Path, description = "The key", example = "key_0011223344556677"),
        ("X-API-Key" = Option<String>, Header, description = "A key without a budget; or the owner's token"),
    ),
    security(("token" = []), ()),
    responses(
        (status = 200, description = "It has ended", body = Object),
        (status = 401, description = "The key is none, or nothing was shown"),
        (status = 403, description = "The key that was shown has a budget"),
        (status = 404, description = "The account has no such key"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "Not now"),
    )
)]
pub async fn revoke_key(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Purse, &req)?;
    let room = room(&app)?;
    let holder = holder(&app, room, &req).await?;
    holder.may_make_keys()?;
    let id = KeyId(req.match_info().get("key_id").unwrap_or_default().to_owned());
    if !room.store().revoke_key(&holder.account.id, &id).await? {
        let detail = "The account has no such key; GET /ai-market/v2/account lists them.";
        return Err(MarketError::refused(MarketCode::KeyUnknown, detail));
    }
    Ok(HttpResponse::Ok().json(serde_json::json!({
        "success": true, "key_id": id.0, "status": "revoked", "protocol_version": PROTOCOL,
    })))
}
