//! `GET /search.js`: the script of the search page.

use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};

const SCRIPT: &str = include_str!("search.js");

/// Answers with the script.
#[utoipa::path(
    get,
    path = "/search.js",
    tag = "documentation",
    summary = "The script of the search page",
    responses((status = 200, description = "The script", body = String, content_type = "text/javascript"))
)]
pub async fn script() -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response
        .insert_header((CONTENT_TYPE, "text/javascript; charset=utf-8"))
        .insert_header((CACHE_CONTROL, "public, max-age=300"));
    response.body(SCRIPT)
}
