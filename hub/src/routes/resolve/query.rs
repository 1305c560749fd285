//! `GET /api/v1/resolve?id=`: the same look-up for callers behind proxies that mangle paths (§1).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::ErrorCode;

use super::Answer;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;

/// Answers like the path form.
#[utoipa::path(
    get,
    path = "/api/v1/resolve",
    tag = "identity",
    summary = "Resolve a handle or a DID given as a query",
    description = "The same as `/api/v1/resolve/{id}`, for callers behind proxies that mangle paths.",
    params(("id" = String, Query, description = "A handle or a DID, percent-encoded once",
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
pub async fn resolve_by_query(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, ApiError> {
    let query = Query::parse(&req, &["id"])?;
    let missing = || {
        let detail = "Name the agent: /api/v1/resolve?id=name%23domain, or /api/v1/resolve/name%23domain.";
        ApiError::refused(ErrorCode::ParameterInvalid, detail)
    };
    super::answer(&app, &req, query.raw("id").ok_or_else(missing)?).await
}
