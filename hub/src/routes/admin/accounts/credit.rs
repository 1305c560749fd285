//! `POST /admin/accounts/{id}/credits`: puts money into an account that came in by another way.

use actix_web::{HttpRequest, web};
use aip_market::store::Credited;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{amount, other_use, path_account, reference, room, unknown};
use crate::app::App;
use crate::error::ApiError;
use crate::routes::admin::{Operator, read};

/// What is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreditBody {
    /// How much.
    #[schema(example = "25")]
    pub amount: String,
    /// Which payment this is: the same again changes nothing.
    #[schema(example = "bank 2026-11-30 #17")]
    pub reference: String,
}

/// What came of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreditAnswer {
    /// The account.
    pub id: String,
    /// What can be spent now.
    pub balance: String,
    /// Whether the same was done before.
    pub again: bool,
}

/// Puts money into an account.
#[utoipa::path(
    post,
    path = "/admin/accounts/{id}/credits",
    tag = "administration",
    summary = "Put money into an account",
    description = "The reference names the payment. It is used once: the same again changes nothing and says so.",
    params(("id" = String, Path, description = "The account")),
    security(("operator" = [])),
    request_body = CreditBody,
    responses((status = 200, description = "It is there", body = CreditAnswer),
              (status = 400, description = "No amount, or no reference"),
              (status = 409, description = "The reference was used for something else"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such account, or this hub has no market"))
)]
pub async fn credit(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
    payload: web::Payload,
) -> Result<web::Json<CreditAnswer>, ApiError> {
    let id = path_account(&req)?;
    let body: CreditBody = read(&app, &req, payload).await?;
    let (amount, reference) = (amount(&body.amount)?, reference(&body.reference)?);
    let store = room(&app)?.store();
    let credited = store.credit(&id, amount, reference, app.clock.now()).await?;
    let (balance, again) = match credited {
        Credited::Done(balance) => (balance, false),
        Credited::Again(balance) => (balance, true),
        Credited::OtherUse => return Err(other_use()),
        Credited::Refused => return Err(unknown()),
    };
    tracing::info!(account.id = %id.0, %amount, again, "The operator put {amount} USD into the account {}", id.0);
    Ok(web::Json(CreditAnswer {
        id: id.0,
        balance: balance.to_string(),
        again,
    }))
}
