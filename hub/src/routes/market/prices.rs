//! `GET /ai-market/v2/prices`: the prices alone.

use actix_web::{HttpRequest, HttpResponse, web};

use crate::app::App;
use crate::error::MarketError;
use crate::market::documents::Kind;

/// Answers with the signed list of prices.
#[utoipa::path(
    get,
    path = "/ai-market/v2/prices",
    operation_id = "market_prices",
    tag = "market",
    summary = "What it costs",
    description = "Of the first 1,000 capabilities of the manifest. Signed as a whole. `If-None-Match` is answered with 304.",
    responses(
        (status = 200, description = "The prices", body = Object),
        (status = 304, description = "The caller has them"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "This hub has no market"),
    )
)]
pub async fn prices(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    super::document::answer(&app, &req, Kind::Prices).await
}
