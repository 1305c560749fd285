//! `POST /api/v1/agents`: registers an agent by its operation 0 (§3).

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderName;
use actix_web::{HttpRequest, HttpResponse, web};
use aip_registry::Registered;
use aip_registry::limits::OPERATION_WIRE_BYTES_MAX;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::{BodyLimit, JSON, Query, header, read_typed};
use crate::routes::resolve::{Answer, respond};
use crate::throttle::Cost;

/// The header with the code of an invite.
const INVITE: HeaderName = HeaderName::from_static("x-aip-invite");

/// Takes a name for an agent.
#[utoipa::path(
    post,
    path = "/api/v1/agents",
    tag = "identity",
    summary = "Register an agent",
    description = "The body is operation 0, signed by one of its own rotation keys. Sending the same operation \
                   again is harmless: it answers 200.",
    params(("X-AIP-Invite" = Option<String>, Header, description = "An invite, where the hub asks for one")),
    request_body(content = Object, description = "An identity operation", content_type = "application/json"),
    responses(
        (status = 201, description = "The name is the agent's", body = Answer),
        (status = 200, description = "This very operation was registered before", body = Answer),
        (status = 400, description = "The operation breaks a rule of its form"),
        (status = 401, description = "The operation's signature does not hold"),
        (status = 403, description = "Registration is closed, needs an invite, or the name is reserved"),
        (status = 409, description = "The name is taken"),
        (status = 413, description = "The operation is too large"),
        (status = 422, description = "`created_at` is too far from the hub's clock"),
        (status = 429, description = "Too many registrations from one address"),
        (status = 503, description = "The hub has no room for new agents now"),
    )
)]
pub async fn create(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Registration, &req)?;
    Query::parse(&req, &[])?;
    app.require_room("agents")?;
    let body = read_typed(
        &app,
        &req,
        payload,
        BodyLimit::new(OPERATION_WIRE_BYTES_MAX),
        JSON,
    )
    .await?;
    let (status, agent) = match app.registry.register(&body, header(&req, &INVITE)).await? {
        Registered::Created(agent) => (StatusCode::CREATED, agent),
        Registered::Same(agent) => (StatusCode::OK, agent),
    };
    respond(&app, &agent, status, None)
}
