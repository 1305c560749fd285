//! `GET /schemas/{file}`: one JSON Schema of AIMarket.

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::{ErrorCode, Refusal};

use super::schemas::FILES;
use crate::app::App;
use crate::error::MarketError;
use crate::throttle::Cost;

/// Answers with a schema.
#[utoipa::path(
    get,
    path = "/schemas/{file}",
    operation_id = "market_schema",
    tag = "market",
    summary = "A JSON Schema of AIMarket",
    params(("file" = String, Path, description = "As listed", example = "receipt.json")),
    responses(
        (status = 200, description = "The schema", body = Object, content_type = "application/schema+json"),
        (status = 404, description = "There is no such schema"),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn schema(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Request, &req)?;
    let wanted = req.match_info().get("file").unwrap_or_default();
    let found = FILES.iter().find(|(file, _)| *file == wanted);
    let Some((_, schema)) = found else {
        let detail = "There is no such schema; /schemas lists what there is.";
        return Err(Refusal::new(ErrorCode::NotFound, detail).into());
    };
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "application/schema+json"))
        .insert_header((CACHE_CONTROL, "public, max-age=3600"))
        .body(*schema))
}
