//! `POST /admin/invites`: a new invite. Its code is in this answer and nowhere else: the hub keeps only its hash.

use std::fmt;
use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Operator;
use crate::app::App;
use crate::error::ApiError;

/// Seconds of a day.
const DAY_SECS: u64 = 86_400;

/// What is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InviteBody {
    /// How many agents it lets in; 1 if absent.
    #[serde(default = "one")]
    pub uses: u32,
    /// After how many days it ends; never, if absent or null.
    #[serde(default)]
    pub days: Option<u32>,
    /// A note for the operator.
    #[serde(default)]
    pub note: String,
}

const fn one() -> u32 {
    1
}

/// A new invite.
#[derive(Serialize, ToSchema)]
pub struct NewInvite {
    /// What an agent sends as `X-AIP-Invite`.
    pub code: String,
    /// What it is listed and revoked by.
    pub id: String,
}

impl fmt::Debug for NewInvite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewInvite")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Makes an invite.
#[utoipa::path(
    post,
    path = "/admin/invites",
    tag = "administration",
    summary = "Make an invite",
    security(("operator" = [])),
    request_body = InviteBody,
    responses((status = 201, description = "The invite; its code is shown only here", body = NewInvite),
              (status = 400, description = "More uses or a longer note than an invite can have"),
              (status = 401, description = "The operator's token is missing or wrong"))
)]
pub async fn create_invite(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let body: InviteBody = super::read(&app, &req, payload).await?;
    let expires_at = body
        .days
        .map(|days| app.clock.now() + Duration::from_secs(u64::from(days) * DAY_SECS));
    let invite = app
        .registry
        .create_invite(body.uses, expires_at, &body.note)
        .await?;
    tracing::info!(invite.id = %invite.id, uses = body.uses, "The operator made the invite {}", invite.id);
    Ok(HttpResponse::Created().json(NewInvite {
        code: invite.code,
        id: invite.id.to_string(),
    }))
}
