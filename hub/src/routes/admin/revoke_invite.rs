//! `DELETE /admin/invites/{id}`: ends an invite. Agents that it let in stay.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::ErrorCode;

use super::{Operator, invites::parse_id};
use crate::app::App;
use crate::error::ApiError;

/// Ends an invite.
#[utoipa::path(
    delete,
    path = "/admin/invites/{id}",
    tag = "administration",
    summary = "End an invite",
    params(("id" = String, Path, description = "Its id, as listed")),
    security(("operator" = [])),
    responses((status = 204, description = "It lets nobody in any more"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such invite, or it was revoked before"))
)]
pub async fn revoke_invite(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let id = parse_id(req.match_info().get("id").unwrap_or(""))?;
    if !app.registry.revoke_invite(&id).await? {
        return Err(ApiError::refused(
            ErrorCode::NotFound,
            "There is no such invite, or it was revoked before.",
        ));
    }
    tracing::info!(invite.id = %id, "The operator revoked the invite {id}");
    Ok(HttpResponse::NoContent().finish())
}
