//! `GET /docs`: the API for people, made from the same document as `/openapi.json`.

use actix_web::{HttpResponse, web};

use crate::app::App;

/// Answers with the API page.
#[utoipa::path(
    get,
    path = "/docs",
    tag = "documentation",
    summary = "This API for people",
    responses((status = 200, description = "A page", body = String, content_type = "text/html"))
)]
pub async fn page(app: web::Data<App>) -> HttpResponse {
    super::page(app.docs.page.clone())
}
