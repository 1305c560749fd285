//! `GET /metrics`: what the hub counts, in the text format of Prometheus. On the operator's listener only.

use actix_web::http::header::CONTENT_TYPE;
use actix_web::{HttpResponse, web};
use aip_protocol::error::ErrorCode;

use crate::app::App;
use crate::error::ApiError;
use crate::metrics::{TEXT_FORMAT, rooms};
use crate::routes::Endpoint;

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint::at("/metrics").get(metrics)]
}

/// Prints all counters.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operation",
    summary = "Counters for Prometheus",
    description = "On the operator's listener only.",
    responses((status = 200, description = "The text format, version 0.0.4", body = String,
               content_type = "text/plain; version=0.0.4"))
)]
pub async fn metrics(app: web::Data<App>) -> Result<HttpResponse, ApiError> {
    // A database that does not answer must not hide the other counters; readiness tells about it.
    let counts = app.registry.counts().await.ok();
    let peers = match &app.federation {
        Some(federation) => federation.delivery.views().await.unwrap_or_default(),
        None => Vec::new(),
    };
    let money = match &app.market {
        Some(room) => room.store().totals().await.ok(),
        None => None,
    };
    let text =
        rooms::gather(&app, counts, &peers, money.as_ref()).and_then(|families| app.metrics.encode(families));
    let text = text.map_err(|error| ApiError::failed(ErrorCode::Internal, error))?;
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, TEXT_FORMAT))
        .body(text))
}
