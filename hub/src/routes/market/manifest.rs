//! `GET /ai-market/v2/manifest`: what is sold here.

use actix_web::{HttpRequest, HttpResponse, web};

use crate::app::App;
use crate::error::MarketError;
use crate::market::documents::Kind;

/// Answers with the signed manifest.
#[utoipa::path(
    get,
    path = "/ai-market/v2/manifest",
    operation_id = "market_manifest",
    tag = "market",
    summary = "What is sold here",
    description = "At most 1,000 capabilities and 2 MiB, what was listed first before the rest; `truncated` says that there \
                   are more, which the search finds. Signed over five fields. `If-None-Match` is answered with 304.",
    responses(
        (status = 200, description = "The manifest", body = Object),
        (status = 304, description = "The caller has it"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "This hub has no market"),
    )
)]
pub async fn manifest(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    super::document::answer(&app, &req, Kind::Manifest).await
}
