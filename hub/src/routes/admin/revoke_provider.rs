//! `DELETE /admin/providers/{id}`: ends a provider's key. The listings that it handed in stay.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::ErrorCode;

use super::Operator;
use crate::app::App;
use crate::error::ApiError;

/// Ends a provider's key.
#[utoipa::path(
    delete,
    path = "/admin/providers/{id}",
    tag = "administration",
    summary = "End a provider's key",
    params(("id" = String, Path, description = "Its id, as listed")),
    security(("operator" = [])),
    responses((status = 204, description = "The key opens nothing any more"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such provider, or its key was revoked before"))
)]
pub async fn revoke_provider(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let id = req.match_info().get("id").unwrap_or("");
    if !app.listings.revoke_provider(id, app.clock.now()).await? {
        return Err(ApiError::refused(
            ErrorCode::NotFound,
            "There is no such provider, or its key was revoked before.",
        ));
    }
    tracing::info!(provider.id = %id, "The operator revoked the key {id}");
    Ok(HttpResponse::NoContent().finish())
}
