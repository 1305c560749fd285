//! `PUT /admin/accounts/{id}/budget`: what may ever be spent, of a whole account or of one of its keys.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::store::KeyId;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{path_account, room, unknown};
use crate::app::App;
use crate::error::ApiError;
use crate::routes::admin::{Operator, read};

/// What is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetBody {
    /// What may ever be spent; `null`: no ceiling.
    pub budget: Option<String>,
    /// Of this key; `null` or absent: of the whole account.
    #[serde(default)]
    pub key: Option<String>,
}

/// Sets a budget.
#[utoipa::path(
    put,
    path = "/admin/accounts/{id}/budget",
    tag = "administration",
    summary = "Set what an account or a key may spend",
    params(("id" = String, Path, description = "The account")),
    security(("operator" = [])),
    request_body = BudgetBody,
    responses((status = 204, description = "It is so"),
              (status = 400, description = "No amount"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such account or key, or this hub has no market"))
)]
pub async fn budget(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let id = path_account(&req)?;
    let body: BudgetBody = read(&app, &req, payload).await?;
    let budget = super::budget(body.budget.as_deref())?;
    let key = body.key.map(KeyId);
    if !room(&app)?.store().set_budget(&id, key.as_ref(), budget).await? {
        return Err(unknown());
    }
    tracing::info!(account.id = %id.0, "The operator set a budget of the account {}", id.0);
    Ok(HttpResponse::NoContent().finish())
}
