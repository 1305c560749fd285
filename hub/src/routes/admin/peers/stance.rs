//! `PUT /admin/peers/{domain}/stance`: allows, blocks or limits one peer, or leaves it to the policy again. A peer that was never
//! met can be decided about too.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_federation::peers::PeerChange;
use aip_protocol::error::ErrorCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::StanceWord;
use crate::app::App;
use crate::error::ApiError;
use crate::routes::admin::{Operator, read};

/// What is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StanceBody {
    /// What is decided.
    pub stance: StanceWord,
}

/// Decides about a peer.
#[utoipa::path(
    put,
    path = "/admin/peers/{domain}/stance",
    tag = "administration",
    summary = "Allow, block or limit a peer",
    params(("domain" = String, Path, description = "Its domain", example = "two.example")),
    security(("operator" = [])),
    request_body = StanceBody,
    responses((status = 204, description = "It is so"),
              (status = 400, description = "No domain, or the hub's own"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "This hub does not federate"))
)]
pub async fn stance(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let domain = super::path_domain(&req)?;
    let body: StanceBody = read(&app, &req, payload).await?;
    let federation = super::federation(&app)?;
    if domain == app.domain {
        return Err(ApiError::refused(
            ErrorCode::DomainInvalid,
            "That is this hub's own domain; name another hub's.",
        ));
    }
    let (now, action) = (app.clock.now(), body.stance.action());
    let change = PeerChange::Stance(body.stance.into());
    federation.store.change(&domain, change, now).await?;
    federation.decided(&domain, action, "", now).await?;
    Ok(HttpResponse::NoContent().finish())
}
