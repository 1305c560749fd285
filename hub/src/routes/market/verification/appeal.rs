//! `POST /ai-market/v2/verification/{nonce}/appeal`: there is no verdict to appeal against.

use actix_web::{HttpRequest, HttpResponse, web};

use crate::app::App;
use crate::error::MarketError;
use crate::throttle::Cost;

/// Says that there is no verdict.
#[utoipa::path(
    post,
    path = "/ai-market/v2/verification/{nonce}/appeal",
    operation_id = "market_appeal",
    tag = "market",
    summary = "Appeal against a verdict: there are none here",
    params(("nonce" = String, Path, description = "Of the receipt")),
    responses(
        (status = 404, description = "Always"),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn appeal(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Request, &req)?;
    Err(super::none())
}
