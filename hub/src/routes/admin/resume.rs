//! `DELETE /admin/pause`: the hub goes on before its lease ends.

use actix_web::{HttpResponse, web};
use aip_protocol::error::ErrorCode;

use super::Operator;
use super::pause::shared;
use crate::app::App;
use crate::error::ApiError;

/// Ends a pause.
#[utoipa::path(
    delete,
    path = "/admin/pause",
    tag = "administration",
    summary = "Go on",
    description = "Also when it did not stand still.",
    security(("operator" = [])),
    responses((status = 204, description = "It goes on"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 503, description = "The pause is for good: what the hub kept goes on elsewhere"))
)]
pub async fn resume(app: web::Data<App>, _operator: Operator) -> Result<HttpResponse, ApiError> {
    let pause = app.pause.as_ref().ok_or_else(shared)?;
    if !pause.resume().await {
        return Err(ApiError::refused(
            ErrorCode::Unavailable,
            "This hub was moved to other stores; it does not go on. Stop it, and start it with the new settings.",
        ));
    }
    tracing::info!("The hub goes on");
    Ok(HttpResponse::NoContent().finish())
}
