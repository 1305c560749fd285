//! `POST /admin/peers/{domain}/retry`: tries a peer at once, whatever pause it is in.

use actix_web::{HttpRequest, HttpResponse, web};

use crate::app::App;
use crate::error::ApiError;
use crate::routes::admin::Operator;

/// Tries a peer at once.
#[utoipa::path(
    post,
    path = "/admin/peers/{domain}/retry",
    tag = "administration",
    summary = "Send what waits for a peer at once",
    description = "Ends the pause after failures, and asks for its discovery document anew.",
    params(("domain" = String, Path, description = "Its domain", example = "two.example")),
    security(("operator" = [])),
    responses((status = 202, description = "It is being tried"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such peer, or this hub does not federate"))
)]
pub async fn retry(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let domain = super::path_domain(&req)?;
    let federation = super::federation(&app)?;
    super::known_peer(federation, &domain).await?;
    federation.decided(&domain, "retry", "", app.clock.now()).await?;
    Ok(HttpResponse::Accepted().finish())
}
