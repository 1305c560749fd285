//! `POST /api/v1/auth/challenge`: asks for a challenge to sign (§6). It works once, at this hub, over HTTP.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Query, read_json, text_member};
use crate::throttle::Cost;

/// Who wants to sign in.
#[derive(Debug, ToSchema)]
pub struct ChallengeRequest {
    /// The agent's DID.
    #[schema(example = "did:aip:aigentix.org:alice")]
    pub did: String,
}

/// What to sign.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChallengeAnswer {
    /// 32 random bytes as base64url.
    pub challenge: String,
    /// When it stops working, RFC 3339.
    #[schema(value_type = String)]
    pub expires_at: Timestamp,
}

/// Hands out a challenge.
#[utoipa::path(
    post,
    path = "/api/v1/auth/challenge",
    tag = "authentication",
    summary = "Ask for a challenge",
    description = "Sign `{\"audience\": the hub's domain, \"challenge\", \"did\"}` with the tag \
                   `aip/1 challenge`, and exchange it at /api/v1/auth/token.",
    request_body(content = ChallengeRequest, content_type = "application/json"),
    responses(
        (status = 200, description = "A challenge, good once", body = ChallengeAnswer),
        (status = 400, description = "The DID cannot be read"),
        (status = 403, description = "The agent is at home at another hub"),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn challenge(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    Query::parse(&req, &[])?;
    let body = read_json(&app, &req, payload).await?;
    let did = Did::parse_input(text_member(&body, "did")?)?;
    let challenge = app.registry.challenge(&did)?;
    Ok(HttpResponse::Ok().json(ChallengeAnswer {
        challenge: challenge.challenge,
        expires_at: challenge.expires_at,
    }))
}
