//! `PUT /admin/agents/{name}/standing`: suspends an agent, or lets it back in. Its name, history, mail and listings stay;
//! its sockets close, its tokens open nothing and its listings are not found while it is suspended.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_relay::mailbox::MailboxId;
use aip_relay::presence::CloseReason;
use serde::Deserialize;
use utoipa::ToSchema;

use super::Operator;
use super::agents::StandingWord;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::path_name;

/// What is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StandingBody {
    /// Whether the agent may take part from now on.
    pub standing: StandingWord,
}

/// Sets whether an agent may take part.
#[utoipa::path(
    put,
    path = "/admin/agents/{name}/standing",
    tag = "administration",
    summary = "Suspend an agent, or let it back in",
    params(("name" = String, Path, description = "Its name", example = "alice")),
    security(("operator" = [])),
    request_body = StandingBody,
    responses((status = 204, description = "It is so"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such agent"))
)]
pub async fn standing(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let name = path_name(&req)?;
    let body: StandingBody = super::read(&app, &req, payload).await?;
    app.registry.set_standing(&name, body.standing.into()).await?;
    if body.standing == StandingWord::Suspended {
        let mailbox = MailboxId::of(&app.registry.did_of(&name));
        app.presence.close_agent(&mailbox, CloseReason::Unauthenticated);
    }
    // What follows the listings looks at their agent again.
    app.listings.touch_of(&app.registry.did_of(&name)).await?;
    app.listings_changed();
    tracing::info!(agent.name = %name, standing = ?body.standing, "The operator changed the standing of {name}");
    Ok(HttpResponse::NoContent().finish())
}
