//! `GET /schemas`: the JSON Schemas of what a market says, as AIMarket publishes them (Apache-2.0 OR MIT);
//! that of the prices, which it has none for, is this hub's.

use actix_web::{HttpRequest, HttpResponse, web};

use crate::app::App;
use crate::error::MarketError;
use crate::throttle::Cost;

/// Every schema, by the name of its file.
pub(super) const FILES: [(&str, &str); 6] = [
    (
        "federation-announce.json",
        include_str!("schemas/federation-announce.json"),
    ),
    ("manifest.json", include_str!("schemas/manifest.json")),
    ("prices.json", include_str!("schemas/prices.json")),
    (
        "provenance-receipt.json",
        include_str!("schemas/provenance-receipt.json"),
    ),
    ("receipt.json", include_str!("schemas/receipt.json")),
    ("well-known.json", include_str!("schemas/well-known.json")),
];

/// Lists the schemas.
#[utoipa::path(
    get,
    path = "/schemas",
    operation_id = "market_schemas",
    tag = "market",
    summary = "The JSON Schemas of AIMarket",
    responses(
        (status = 200, description = "Their files", body = Object),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn schemas(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Request, &req)?;
    let schemas = FILES.iter().map(|(file, _)| {
        let url = format!("{}/schemas/{file}", app.public_url);
        serde_json::json!({ "file": file, "url": url })
    });
    let schemas: Vec<_> = schemas.collect();
    Ok(HttpResponse::Ok().json(serde_json::json!({ "count": schemas.len(), "schemas": schemas })))
}
