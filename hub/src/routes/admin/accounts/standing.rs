//! `PUT /admin/accounts/{id}/standing`: closes an account to its keys, or opens it again. Its money stays.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{path_account, room, unknown};
use crate::app::App;
use crate::error::ApiError;
use crate::routes::admin::{Operator, read};

/// What is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountStanding {
    /// Whether the account is closed to its keys.
    pub suspended: bool,
}

/// Sets whether an account can be spent from.
#[utoipa::path(
    put,
    path = "/admin/accounts/{id}/standing",
    operation_id = "account_standing",
    tag = "administration",
    summary = "Close an account to its keys, or open it again",
    params(("id" = String, Path, description = "The account")),
    security(("operator" = [])),
    request_body = AccountStanding,
    responses((status = 204, description = "It is so"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such account, or this hub has no market"))
)]
pub async fn standing(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let id = path_account(&req)?;
    let body: AccountStanding = read(&app, &req, payload).await?;
    if !room(&app)?.store().suspend(&id, body.suspended).await? {
        return Err(unknown());
    }
    tracing::info!(account.id = %id.0, suspended = body.suspended, "The operator changed the standing of {}", id.0);
    Ok(HttpResponse::NoContent().finish())
}
