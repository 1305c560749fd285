//! `GET /.well-known/ai-market.json`: what this hub is as a market.

use actix_web::{HttpRequest, HttpResponse, web};

use crate::app::App;
use crate::error::MarketError;
use crate::market::documents::Kind;

/// Answers with the signed document.
#[utoipa::path(
    get,
    path = "/.well-known/ai-market.json",
    operation_id = "market_well_known",
    tag = "market",
    summary = "What this hub is as a market",
    description = "Signed as a whole with the hub's key, which it names as `signer_public_key`. Made anew when it changes \
                   and once an hour; `If-None-Match` is answered with 304.",
    responses(
        (status = 200, description = "The document", body = Object),
        (status = 304, description = "The caller has it"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "This hub has no market"),
    )
)]
pub async fn well_known(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    super::document::answer(&app, &req, Kind::WellKnown).await
}
