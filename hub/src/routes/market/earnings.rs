//! `GET /api/v1/market/earnings`: what the agent that asks has earned here.

use actix_web::{HttpRequest, HttpResponse, web};
use aip_market::store::Earned;
use aip_protocol::error::{ErrorCode, Refusal};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Caller, Query};

/// What a provider earned. Amounts are US dollars in decimal digits.
#[derive(Debug, Serialize, ToSchema)]
pub struct Earnings {
    /// The provider's DID.
    pub agent: String,
    /// `USD`.
    pub currency: &'static str,
    /// All that it earned, without the hub's fees.
    #[schema(example = "12.5")]
    pub earned: String,
    /// What of it was paid out.
    pub paid_out: String,
    /// What is still owed.
    pub owed: String,
    /// How many calls it was for, also those that were paid directly.
    pub calls: u64,
    /// What buyers paid it on a chain, past the hub: it is not in `earned`, and nobody owes it.
    pub paid_directly: String,
}

impl From<Earned> for Earnings {
    fn from(earned: Earned) -> Self {
        Self {
            agent: earned.agent.to_string(),
            currency: "USD",
            owed: earned.earned.saturating_sub(earned.paid_out).to_string(),
            earned: earned.earned.to_string(),
            paid_out: earned.paid_out.to_string(),
            calls: earned.calls,
            paid_directly: earned.paid_directly.to_string(),
        }
    }
}

/// Tells what the caller earned.
#[utoipa::path(
    get,
    path = "/api/v1/market/earnings",
    tag = "market",
    summary = "What the agent has earned",
    security(("token" = [])),
    responses(
        (status = 200, description = "What it earned, and what it was paid", body = Earnings),
        (status = 401, description = "The token is missing or not good"),
        (status = 404, description = "This hub has no market"),
    )
)]
pub async fn earnings(
    app: web::Data<App>,
    Caller(agent): Caller,
    req: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    Query::parse(&req, &[])?;
    let room = app.market.as_ref().ok_or_else(|| {
        Refusal::new(
            ErrorCode::NotFound,
            "The operator of this hub has switched its market off.",
        )
    })?;
    let earned = room.store().earned(&agent).await?;
    Ok(HttpResponse::Ok().json(Earnings::from(earned)))
}
