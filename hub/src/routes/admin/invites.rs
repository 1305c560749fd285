//! `GET /admin/invites`: all invites, used and revoked ones too. Their codes are not kept and cannot be shown.

use actix_web::{HttpRequest, web};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::time::Timestamp;
use aip_registry::grants::{Invite, InviteId};
use serde::Serialize;
use utoipa::ToSchema;

use super::Operator;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;

/// A page of invites.
#[derive(Debug, Serialize, ToSchema)]
pub struct InvitePage {
    /// The invites.
    pub items: Vec<InviteLine>,
    /// Give it as `after` for the next page; `null` at the end.
    pub next_cursor: Option<String>,
}

/// An invite as its operator sees it.
#[derive(Debug, Serialize, ToSchema)]
pub struct InviteLine {
    /// What it is listed and revoked by; it opens nothing.
    pub id: String,
    /// `good`, `used`, `expired` or `revoked`.
    #[schema(example = "good")]
    pub state: &'static str,
    /// What the operator wrote about it.
    pub note: String,
    /// How many agents it could let in.
    pub uses_max: u32,
    /// How many it still can.
    pub uses_left: u32,
    /// When it was made.
    #[schema(value_type = String, format = "date-time")]
    pub created_at: Timestamp,
    /// When it ends, if it does.
    #[schema(value_type = Option<String>, format = "date-time")]
    pub expires_at: Option<Timestamp>,
}

impl InviteLine {
    fn at(invite: Invite, now: Timestamp) -> Self {
        let state = match &invite {
            invite if invite.is_good(now) => "good",
            invite if invite.revoked_at.is_some() => "revoked",
            invite if invite.uses_left == 0 => "used",
            _ => "expired",
        };
        Self {
            id: invite.id.to_string(),
            state,
            note: invite.note,
            uses_max: invite.uses_max,
            uses_left: invite.uses_left,
            created_at: invite.created_at,
            expires_at: invite.expires_at,
        }
    }
}

/// Reads an invite's id.
pub(super) fn parse_id(text: &str) -> Result<InviteId, ApiError> {
    let refusal = || {
        Refusal::new(
            ErrorCode::ParameterInvalid,
            "An invite's id is 16 hexadecimal digits, as listed.",
        )
    };
    Ok(InviteId::parse(text).ok_or_else(refusal)?)
}

/// Lists invites.
#[utoipa::path(
    get,
    path = "/admin/invites",
    tag = "administration",
    summary = "List all invites",
    params(
        ("after" = Option<String>, Query, description = "The id after which the page begins"),
        ("limit" = Option<u32>, Query, description = "Invites in the page, 1 to 1,000; 100 if absent"),
    ),
    security(("operator" = [])),
    responses((status = 200, description = "A page", body = InvitePage),
              (status = 401, description = "The operator's token is missing or wrong"))
)]
pub async fn invites(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<web::Json<InvitePage>, ApiError> {
    let query = Query::parse(&req, &["after", "limit"])?;
    let after = query.text("after")?.map(|id| parse_id(&id)).transpose()?;
    let limit = super::page_items(&query)?;
    let found = app.registry.list_invites(after.as_ref(), limit).await?;
    let full = found.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let now = app.clock.now();
    let items: Vec<InviteLine> = found
        .into_iter()
        .map(|invite| InviteLine::at(invite, now))
        .collect();
    let next_cursor = items.last().filter(|_| full).map(|last| last.id.clone());
    Ok(web::Json(InvitePage { items, next_cursor }))
}
