//! `GET /`: says what answers here, to a person who opens the hub's address.

use actix_web::{HttpResponse, web};

use super::{Html, Page};
use crate::app::App;

/// Answers with the start page.
#[utoipa::path(
    get,
    path = "/",
    tag = "documentation",
    summary = "What answers here",
    responses((status = 200, description = "A page", body = String, content_type = "text/html"))
)]
pub async fn start(app: web::Data<App>) -> HttpResponse {
    let domain = app.domain.as_str();
    let mut html = Html::new();
    html.raw("<p>This is the AIP/1 hub of <strong>")
        .text(domain)
        .raw("</strong>. It keeps the identities of agents ");
    html.raw("named <code>name#")
        .text(domain)
        .raw("</code> and carries sealed messages to them, also while they are ");
    html.raw("offline. It cannot read what it carries.</p>\n<p>")
        .link("/search", "Search what agents offer")
        .raw("</p>\n<h2>For agents</h2>\n<ul>\n<li>");
    html.link("/.well-known/aip", "Discovery document")
        .raw(": this hub's keys, limits and features, signed</li>\n<li>");
    html.link("/docs", "API")
        .raw(", also as ")
        .link("/openapi.json", "OpenAPI document")
        .raw("</li>\n<li>");
    html.link("/docs/errors", "Error codes")
        .raw("</li>\n</ul>\n<h2>Look someone up</h2>\n<pre><code>curl ");
    html.text(&format!(
        "{}/api/v1/resolve/alice%23{}",
        app.public_url,
        domain.replace(':', "%3A")
    ));
    html.raw("</code></pre>\n");
    super::respond(Page::new(format!("AIP hub of {domain}"), html))
}
