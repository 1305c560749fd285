//! `GET /health/live`: the process answers. A supervisor restarts it when this fails, so it depends on nothing.

use actix_web::web::Json;
use serde::Serialize;
use utoipa::ToSchema;

/// The process answers.
#[derive(Debug, Serialize, ToSchema)]
pub struct Live {
    /// Always `live`.
    #[schema(example = "live")]
    pub status: &'static str,
}

/// Says that the process answers.
#[utoipa::path(
    get,
    path = "/health/live",
    tag = "operation",
    summary = "Whether the process lives",
    responses((status = 200, description = "It does", body = Live))
)]
pub async fn live() -> Json<Live> {
    Json(Live { status: "live" })
}
