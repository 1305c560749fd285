//! `GET /admin/accounts/{id}`: one account, with its keys. Their secrets are not kept and cannot be shown.

use actix_web::{HttpRequest, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::{AccountKeyLine, AccountLine, path_account, room, unknown};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;
use crate::routes::admin::Operator;

/// Everything about one account.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccountState {
    /// As in the list.
    #[serde(flatten)]
    pub account: AccountLine,
    /// Its keys, oldest first.
    pub keys: Vec<AccountKeyLine>,
}

/// Shows an account.
#[utoipa::path(
    get,
    path = "/admin/accounts/{id}",
    tag = "administration",
    summary = "Show an account of the market",
    params(("id" = String, Path, description = "The account")),
    security(("operator" = [])),
    responses((status = 200, description = "The account", body = AccountState),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such account, or this hub has no market"))
)]
pub async fn account(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<web::Json<AccountState>, ApiError> {
    Query::parse(&req, &[])?;
    let id = path_account(&req)?;
    let store = room(&app)?.store();
    let account = store.account(&id).await?.ok_or_else(unknown)?;
    let keys = store.keys(&id).await?;
    Ok(web::Json(AccountState {
        account: account.into(),
        keys: keys.into_iter().map(AccountKeyLine::from).collect(),
    }))
}
