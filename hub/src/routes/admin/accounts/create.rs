//! `POST /admin/accounts`: a new account with its first key, which is in this answer and nowhere else.

use std::fmt;

use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::money::Usd;
use aip_market::store::{Created, NewAccount};
use aip_protocol::error::{ErrorCode, Refusal};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{agent, amount, budget, label, room};
use crate::app::App;
use crate::error::ApiError;
use crate::routes::admin::{Operator, read};

/// What is asked for.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AccountBody {
    /// What it is called.
    pub label: String,
    /// The agent that it belongs to: a handle or a DID of this hub; `null`: nobody's.
    pub owner: Option<String>,
    /// What may ever be spent; `null`: no ceiling.
    pub budget: Option<String>,
    /// What it is given to begin with; `null`: nothing.
    pub grant: Option<String>,
}

/// A new account.
#[derive(Serialize, ToSchema)]
pub struct CreatedAccount {
    /// The account.
    pub account_id: String,
    /// The secret of its first key, for `X-API-Key`.
    pub api_key: String,
    /// What that key is named by.
    pub key_id: String,
}

impl fmt::Debug for CreatedAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatedAccount")
            .field("account_id", &self.account_id)
            .finish_non_exhaustive()
    }
}

/// Makes an account.
#[utoipa::path(
    post,
    path = "/admin/accounts",
    tag = "administration",
    summary = "Make an account of the market",
    security(("operator" = [])),
    request_body = AccountBody,
    responses((status = 201, description = "The account; the key is shown only here", body = CreatedAccount),
              (status = 400, description = "A member cannot be read, or the owner has an account"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such agent of this hub, or this hub has no market"))
)]
pub async fn create_account(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let body: AccountBody = read(&app, &req, payload).await?;
    let room = room(&app)?;
    let owner = match &body.owner {
        Some(owner) => Some(agent(&app, owner).await?),
        None => None,
    };
    let (key, secret) = room.engine.draw_key(String::new(), None);
    let key_id = key.id.0.clone();
    let new = NewAccount {
        id: room.engine.draw_account(),
        label: label(body.label)?,
        owner,
        budget: budget(body.budget.as_deref())?,
        grant: body
            .grant
            .as_deref()
            .map(amount)
            .transpose()?
            .unwrap_or(Usd::ZERO),
        key,
    };
    let id = new.id.0.clone();
    match room.store().create_account(new, app.clock.now()).await? {
        Created::Made => {}
        Created::OwnerHasOne(other) => {
            let detail = format!("The agent has an account: {}.", other.0);
            return Err(Refusal::new(ErrorCode::MemberInvalid, detail)
                .with("member", "owner")
                .with("account", other.0)
                .into());
        }
        Created::Refused => {
            return Err(ApiError::failed(
                ErrorCode::Internal,
                "an account with a new id was refused",
            ));
        }
    }
    tracing::info!(account.id = %id, "The operator made the account {id}");
    Ok(HttpResponse::Created().json(CreatedAccount {
        account_id: id,
        api_key: secret.expose().to_owned(),
        key_id,
    }))
}
