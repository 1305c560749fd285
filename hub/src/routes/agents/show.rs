//! `GET /agents/{name}`: a page about an agent; `alsoKnownAs` of its DID document leads here (§3).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::document::delivery_endpoint;
use aip_protocol::identity::Identity;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Query, path_name};
use crate::routes::docs::{Html, Page, respond};
use crate::routes::resolve::{agent, local};
use crate::throttle::Cost;

/// Answers with the page of an agent.
#[utoipa::path(
    get,
    path = "/agents/{name}",
    tag = "documentation",
    summary = "A page about an agent",
    params(("name" = String, Path, description = "The agent's name", example = "alice")),
    responses(
        (status = 200, description = "A page", body = String, content_type = "text/html"),
        (status = 400, description = "That is no name"),
        (status = 404, description = "No such agent"),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn show(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    Query::parse(&req, &[])?;
    let agent = agent(&app, &local(&app, path_name(&req)?)).await?;
    Ok(respond(page(&agent.identity, &app.public_url)))
}

/// Says what anyone may know. The profile's text is the agent's own and nobody checked it, so it is not shown.
fn page(identity: &Identity, public_url: &str) -> Page {
    let handle = identity.did().handle();
    let mut html = Html::new();
    html.raw("<table>\n<tr><th>DID</th><td><code>")
        .text(identity.did().as_str())
        .raw("</code></td></tr>\n");
    if identity.is_deactivated() {
        html.raw("<tr><th>State</th><td>ended; nothing reaches it, and its name stays taken</td></tr>\n");
    } else {
        let endpoint = delivery_endpoint(identity.head(), public_url);
        html.raw("<tr><th>Endpoint</th><td><code>")
            .text(&endpoint)
            .raw("</code></td></tr>\n");
        for key in &identity.head().keys.signing {
            html.raw("<tr><th>Signing key</th><td><code>")
                .text(key.as_str())
                .raw("</code></td></tr>\n");
        }
    }
    html.raw("<tr><th>Operations</th><td>")
        .text(&identity.seq().saturating_add(1).to_string())
        .raw("</td></tr>\n");
    html.raw("</table>\n<p>");
    html.link(&format!("/api/v1/resolve/{}", handle.encoded()), "Resolve")
        .raw(" · ");
    html.link(&format!("/agents/{}/did.json", handle.name), "did:web document")
        .raw(" · ");
    html.link(&format!("/api/v1/agents/{}/history", handle.name), "History")
        .raw("</p>\n");
    Page::new(handle.to_string(), html)
}
