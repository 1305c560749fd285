//! `POST /api/v1/auth/token`: exchanges a signed challenge for a token (§6).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::name::Did;
use aip_protocol::signature::Signature;
use aip_protocol::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Query, read_json, text_member};
use crate::throttle::Cost;

/// A signed challenge.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "the shape for the documentation; the body is read strictly, member by member"
)]
struct TokenRequest {
    /// The agent's DID.
    did: String,
    /// The signing key: the DID, `#`, the Multikey.
    kid: String,
    /// The challenge, as it was handed out.
    challenge: String,
    /// Over `{"audience", "challenge", "did"}`, with the tag `aip/1 challenge`.
    #[schema(example = "ed25519:z…")]
    sig: String,
}

/// What opens the agent's own doors.
#[derive(Serialize, ToSchema)]
struct TokenAnswer {
    /// For `Authorization: Bearer`.
    token: String,
    /// When it stops working, RFC 3339.
    #[schema(value_type = String)]
    expires_at: Timestamp,
}

/// Hands out a token.
#[utoipa::path(
    post,
    path = "/api/v1/auth/token",
    tag = "authentication",
    summary = "Exchange a signed challenge for a token",
    request_body(content = TokenRequest, content_type = "application/json"),
    responses(
        (status = 200, description = "A token, good for an hour", body = TokenAnswer),
        (status = 400, description = "A member is missing or malformed"),
        (status = 401, description = "The challenge, the key or the signature is not good"),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn token(
    app: web::Data<App>,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    Query::parse(&req, &[])?;
    let body = read_json(&app, &req, payload).await?;
    let did = Did::parse_input(text_member(&body, "did")?)?;
    let (kid, challenge) = (text_member(&body, "kid")?, text_member(&body, "challenge")?);
    let signature = Signature::parse(text_member(&body, "sig")?)?;
    let issued = app.registry.issue_token(&did, kid, challenge, &signature).await?;
    Ok(HttpResponse::Ok().json(TokenAnswer {
        token: issued.token,
        expires_at: issued.expires_at,
    }))
}
