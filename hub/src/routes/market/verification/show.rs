//! `GET /ai-market/v2/verification/{nonce}`: there is no verdict.

use actix_web::{HttpRequest, HttpResponse, web};

use crate::app::App;
use crate::error::MarketError;
use crate::throttle::Cost;

/// Says that there is no verdict.
#[utoipa::path(
    get,
    path = "/ai-market/v2/verification/{nonce}",
    operation_id = "market_verification",
    tag = "market",
    summary = "A verdict on a call: there are none here",
    params(("nonce" = String, Path, description = "Of the receipt")),
    responses(
        (status = 404, description = "Always"),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn show(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Request, &req)?;
    Err(super::none())
}
