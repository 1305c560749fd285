//! `GET /docs/errors/{code}`: what an error means and what to do; the `type` of problem documents leads here.

use actix_web::{HttpRequest, HttpResponse};
use aip_protocol::error::ErrorCode;

use super::{Html, Page};
use crate::error::ApiError;

/// Answers with the page of a code.
#[utoipa::path(
    get,
    path = "/docs/errors/{code}",
    tag = "documentation",
    summary = "What an error code means",
    params(("code" = String, Path, description = "The code", example = "handle_domain_missing")),
    responses(
        (status = 200, description = "A page", body = String, content_type = "text/html"),
        (status = 404, description = "There is no such code"),
    )
)]
pub async fn error(req: HttpRequest) -> Result<HttpResponse, ApiError> {
    let code = req
        .match_info()
        .get("code")
        .and_then(|code| code.parse::<ErrorCode>().ok());
    let code = code.ok_or_else(|| {
        ApiError::refused(
            ErrorCode::NotFound,
            "There is no such code; /docs/errors lists all.",
        )
    })?;
    let mut html = Html::new();
    html.raw("<p><code>")
        .text(code.as_str())
        .raw("</code>, status ")
        .text(&code.status().to_string())
        .raw("</p>\n");
    html.element("h2", "What happened")
        .raw("<p>")
        .prose(code.meaning())
        .raw("</p>\n");
    html.element("h2", "What to do")
        .raw("<p>")
        .prose(code.action())
        .raw("</p>\n");
    Ok(super::respond(Page::new(code.title(), html)))
}
