//! `GET /agents/{name}/did.json`: the same identity as a `did:web` document, for resolvers that know no `did:aip`.

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::document::did_web_document;
use aip_protocol::error::ErrorCode;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Query, path_name};
use crate::routes::resolve::{FRESH, agent, local};
use crate::throttle::Cost;

/// Answers with the document.
#[utoipa::path(
    get,
    path = "/agents/{name}/did.json",
    tag = "identity",
    summary = "The did:web document of an agent",
    params(("name" = String, Path, description = "The agent's name", example = "alice")),
    responses(
        (status = 200, description = "The document; every id in it is a `did:web` one", body = Object,
         content_type = "application/did+json"),
        (status = 400, description = "That is no name"),
        (status = 404, description = "No such agent"),
        (status = 410, description = "The agent ended its history"),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn did_web(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    Query::parse(&req, &[])?;
    let agent = agent(&app, &local(&app, path_name(&req)?)).await?;
    if agent.identity.is_deactivated() {
        let detail = "The agent ended its history, so it has no document any more.";
        return Err(ApiError::refused(ErrorCode::AgentDeactivated, detail));
    }
    let document = did_web_document(agent.identity.head(), &app.public_url);
    let mut response = HttpResponse::Ok();
    response
        .insert_header((CONTENT_TYPE, "application/did+json"))
        .insert_header((CACHE_CONTROL, FRESH));
    Ok(response.body(document.to_jcs()))
}
