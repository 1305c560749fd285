//! `POST /admin/accounts/{id}/keys`: one more key, such as for who lost theirs. It is in this answer and nowhere else.

use std::fmt;

use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::store::Created;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{budget, invalid, label, path_account, room, unknown};
use crate::app::App;
use crate::error::ApiError;
use crate::routes::admin::{Operator, read};

/// What is asked for.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AccountKeyBody {
    /// What it is called.
    pub label: String,
    /// What it may ever spend; `null`: no ceiling.
    pub budget: Option<String>,
}

/// A new key.
#[derive(Serialize, ToSchema)]
pub struct CreatedKey {
    /// The secret, for `X-API-Key`.
    pub api_key: String,
    /// What it is named by.
    pub key_id: String,
}

impl fmt::Debug for CreatedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatedKey")
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}

/// Makes a key.
#[utoipa::path(
    post,
    path = "/admin/accounts/{id}/keys",
    tag = "administration",
    summary = "Make another key of an account",
    params(("id" = String, Path, description = "The account")),
    security(("operator" = [])),
    request_body = AccountKeyBody,
    responses((status = 201, description = "The key; it is shown only here", body = CreatedKey),
              (status = 400, description = "A member cannot be read, or the account has as many keys as it may"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such account, or this hub has no market"))
)]
pub async fn add_account_key(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let account = path_account(&req)?;
    let body: AccountKeyBody = read(&app, &req, payload).await?;
    let room = room(&app)?;
    if room.store().account(&account).await?.is_none() {
        return Err(unknown());
    }
    let (key, secret) = room
        .engine
        .draw_key(label(body.label)?, budget(body.budget.as_deref())?);
    let id = key.id.0.clone();
    match room.store().add_key(&account, key, app.clock.now()).await? {
        Created::Made => {}
        Created::OwnerHasOne(_) | Created::Refused => {
            return Err(invalid(
                "id",
                "names an account with as many keys as it may have: revoke one first",
            ));
        }
    }
    tracing::info!(account.id = %account.0, key.id = %id, "The operator made the key {id}");
    Ok(HttpResponse::Created().json(CreatedKey {
        api_key: secret.expose().to_owned(),
        key_id: id,
    }))
}
