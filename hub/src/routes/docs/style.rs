//! `GET /docs/style.css`: the one style sheet of the pages.

use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};

const SHEET: &str = include_str!("style.css");

/// Answers with the style sheet.
#[utoipa::path(
    get,
    path = "/docs/style.css",
    tag = "documentation",
    summary = "The style sheet of the pages",
    responses((status = 200, description = "The sheet", body = String, content_type = "text/css"))
)]
pub async fn style() -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response
        .insert_header((CONTENT_TYPE, "text/css; charset=utf-8"))
        .insert_header((CACHE_CONTROL, super::CACHED));
    response.body(SHEET)
}
