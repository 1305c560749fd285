//! `PUT /admin/agents/{name}/quota`: the mailbox quota of one agent.

use actix_web::{HttpRequest, HttpResponse, web};

use super::Operator;
use super::agents::QuotaMembers;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::path_name;

/// Sets an agent's quota.
#[utoipa::path(
    put,
    path = "/admin/agents/{name}/quota",
    tag = "administration",
    summary = "Set an agent's mailbox quota",
    description = "Replaces the whole quota: a member that is absent or null is the hub's own again.",
    params(("name" = String, Path, description = "Its name", example = "alice")),
    security(("operator" = [])),
    request_body = QuotaMembers,
    responses((status = 204, description = "It is so"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such agent"))
)]
pub async fn quota(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let name = path_name(&req)?;
    let quota: QuotaMembers = super::read(&app, &req, payload).await?;
    app.registry.set_quota(&name, quota.into()).await?;
    tracing::info!(agent.name = %name, ?quota, "The operator changed the quota of {name}");
    Ok(HttpResponse::NoContent().finish())
}
