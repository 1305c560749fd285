//! `GET /api/v1/resolve/{id}`: who an agent is, by handle or DID (§3). The segment is percent-decoded exactly once.

use actix_web::{HttpRequest, HttpResponse, web};

use super::Answer;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Query, raw_segment};

/// Answers with the agent's DID document and where its messages go.
#[utoipa::path(
    get,
    path = "/api/v1/resolve/{id}",
    tag = "identity",
    summary = "Resolve a handle or a DID",
    description = "Write the handle as `alice%23aigentix.org`: a raw `#` never reaches a server. The answer names \
                   the agent's keys, where to post an envelope for it, and the head of its history.",
    params(("id" = String, Path, description = "A handle or a DID, percent-encoded once",
            example = "alice%23aigentix.org")),
    responses(
        (status = 200, description = "The agent", body = Answer),
        (status = 304, description = "The caller has the current answer (`If-None-Match`)"),
        (status = 400, description = "No handle and no DID, or the domain is missing"),
        (status = 404, description = "No such agent, or a DID of somebody else's method"),
        (status = 410, description = "The agent ended its history"),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn resolve(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, ApiError> {
    Query::parse(&req, &[])?;
    super::answer(&app, &req, raw_segment(&req, "id")).await
}
