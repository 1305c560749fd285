//! `POST /api/v1/agents/{name}/operations`: the next operation of a history: new keys, another route, the end (§3).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::identity::Identity;
use aip_protocol::json::Json;
use aip_registry::Operated;
use aip_registry::limits::OPERATION_WIRE_BYTES_MAX;
use aip_relay::mailbox::MailboxId;
use aip_relay::presence::CloseReason;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::{BodyLimit, JSON, Query, path_name, read_typed};
use crate::throttle::Cost;

/// The history after the operation.
#[derive(Debug, Serialize, ToSchema)]
pub struct OperateAnswer {
    /// The agent's DID.
    pub did: String,
    /// `seq` of the newest operation, and the hashes of the first and the newest.
    #[schema(value_type = Object)]
    pub history: Json,
    /// Whether the operation ended the history.
    pub deactivated: bool,
}

/// Appends an operation.
#[utoipa::path(
    post,
    path = "/api/v1/agents/{name}/operations",
    tag = "identity",
    summary = "Change an identity",
    description = "The body is the next operation, signed by a rotation key of the one before. New keys are good \
                   at once; dropped ones for 15 minutes more, revoked ones not at all.",
    params(("name" = String, Path, description = "The agent's name", example = "alice")),
    request_body(content = Object, description = "An identity operation", content_type = "application/json"),
    responses(
        (status = 201, description = "Appended", body = OperateAnswer),
        (status = 200, description = "This very operation was appended before", body = OperateAnswer),
        (status = 400, description = "The operation breaks a rule of its form, or is of another agent"),
        (status = 401, description = "The operation is not signed by a rotation key of the one before"),
        (status = 404, description = "No such agent"),
        (status = 409, description = "`prev` is not the head; the answer carries the head"),
        (status = 410, description = "The agent ended its history"),
        (status = 413, description = "The operation is too large"),
        (status = 422, description = "`created_at` goes back, or is too far from the hub's clock"),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn operate(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    Query::parse(&req, &[])?;
    let name = path_name(&req)?;
    let body = read_typed(
        &app,
        &req,
        payload,
        BodyLimit::new(OPERATION_WIRE_BYTES_MAX),
        JSON,
    )
    .await?;
    let (mut response, agent) = match app.registry.operate(&name, &body).await? {
        Operated::Appended(agent) => {
            end_sessions(&app, &agent.identity);
            (HttpResponse::Created(), agent)
        }
        // Anyone can send an operation that was appended before: it ends no session.
        Operated::Same(agent) => (HttpResponse::Ok(), agent),
    };
    end_offers(&app, &agent.identity).await;
    let identity = &agent.identity;
    Ok(response.json(OperateAnswer {
        did: identity.did().to_string(),
        history: identity.summary(),
        deactivated: identity.is_deactivated(),
    }))
}

/// An agent that has ended offers nothing any more. Should the store fail now, its listings stay there, and no search
/// shows them; the same operation again takes them away.
async fn end_offers(app: &App, identity: &Identity) {
    if !identity.is_deactivated() {
        return;
    }
    match app.listings.remove_of(identity.did(), app.clock.now()).await {
        Ok(_) => app.listings_changed(),
        Err(error) => tracing::warn!(%error, "The listings of an agent that ended were not removed"),
    }
}

/// Who signed in with what is no longer good must not stay; the others sign in again.
fn end_sessions(app: &App, identity: &Identity) {
    if identity.is_deactivated() || !identity.head().revoked.is_empty() {
        let mailbox = MailboxId::of(identity.did());
        app.presence.close_agent(&mailbox, CloseReason::Unauthenticated);
    }
}
