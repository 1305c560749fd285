//! `GET /docs/errors`: all error codes in one table.

use actix_web::HttpResponse;
use aip_protocol::error::ErrorCode;

use super::{Html, Page};

/// Answers with the table of codes.
#[utoipa::path(
    get,
    path = "/docs/errors",
    tag = "documentation",
    summary = "All error codes",
    responses((status = 200, description = "A page", body = String, content_type = "text/html"))
)]
pub async fn errors() -> HttpResponse {
    let mut html = Html::new();
    html.element(
        "p",
        "Every error answer carries one of these codes. A code never changes what it means.",
    );
    html.raw("<table>\n<tr><th>Code</th><th>Status</th><th>What happened</th></tr>\n");
    for code in ErrorCode::ALL {
        html.raw("<tr><td>")
            .link(&format!("/docs/errors/{code}"), code.as_str())
            .raw("</td><td>");
        html.text(&code.status().to_string())
            .raw("</td><td>")
            .prose(code.meaning())
            .raw("</td></tr>\n");
    }
    html.raw("</table>\n");
    super::respond(Page::new("Errors", html))
}
