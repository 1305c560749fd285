//! `DELETE /admin/histories/{did}`: forgets what is known of a remote agent, so that what its hub shows now is taken: the
//! operator's word after `history_forked`.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::ErrorCode;
use aip_protocol::name::parse_identifier;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::raw_segment;
use crate::routes::admin::Operator;

/// Forgets a remote agent's history.
#[utoipa::path(
    delete,
    path = "/admin/histories/{did}",
    tag = "administration",
    summary = "Take the history that a remote agent's hub shows now",
    params(("did" = String, Path, description = "The agent's DID", example = "did:aip:two.example:bob")),
    security(("operator" = [])),
    responses((status = 204, description = "The next look takes what the hub shows"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "Nothing is known of it, or this hub does not federate"))
)]
pub async fn forget_history(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let did = parse_identifier(raw_segment(&req, "did"))?.did();
    let federation = super::federation(&app)?;
    if !federation.forget_history(&did, app.clock.now()).await? {
        return Err(ApiError::refused(
            ErrorCode::NotFound,
            "This hub knows no history of that agent.",
        ));
    }
    Ok(HttpResponse::NoContent().finish())
}
