//! `POST /admin/peers/{domain}/repin`: takes the key that a peer shows now in place of the pinned one, and ends its freeze.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_federation::peers::PeerChange;
use aip_protocol::multikey::VerifyingKey;

use crate::app::App;
use crate::error::ApiError;
use crate::routes::admin::Operator;

/// Takes a peer's new key.
#[utoipa::path(
    post,
    path = "/admin/peers/{domain}/repin",
    tag = "administration",
    summary = "Take the key that a peer shows now",
    description = "Ask the operator of the peer by another way whether the key is theirs. The pins are forgotten, and the next \
                   document that is good pins its keys.",
    params(("domain" = String, Path, description = "Its domain", example = "two.example")),
    security(("operator" = [])),
    responses((status = 204, description = "The next document pins its keys"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such peer, or this hub does not federate"))
)]
pub async fn repin(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let domain = super::path_domain(&req)?;
    let federation = super::federation(&app)?;
    let before = super::known_peer(federation, &domain).await?;
    let now = app.clock.now();
    federation
        .store
        .change(&domain, PeerChange::Repinned, now)
        .await?;
    let forgotten: Vec<&str> = before.pinned.iter().map(VerifyingKey::as_str).collect();
    let shown = before.frozen.map(|frozen| frozen.kid).unwrap_or_default();
    let detail = format!("forgotten: {}; shown: {shown}", forgotten.join(" "));
    federation.decided(&domain, "repin", &detail, now).await?;
    Ok(HttpResponse::NoContent().finish())
}
