//! `GET /openapi.json`: the API for tools, OpenAPI 3.1.

use actix_web::http::header::{CACHE_CONTROL, ContentType};
use actix_web::{HttpResponse, web};

use crate::app::App;

/// Answers with the OpenAPI document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "documentation",
    summary = "This API for tools",
    responses((status = 200, description = "OpenAPI 3.1", body = Object))
)]
pub async fn openapi_json(app: web::Data<App>) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response
        .insert_header(ContentType::json())
        .insert_header((CACHE_CONTROL, super::CACHED));
    response.body(app.docs.openapi.clone())
}
