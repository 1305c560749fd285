//! `GET /admin/catalog`: how far the index of listings has come.

use actix_web::{HttpRequest, web};
use aip_catalog::SpaceStats;
use serde::Serialize;
use utoipa::ToSchema;

use super::Operator;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;

/// How the catalog of this process stands.
#[derive(Debug, Serialize, ToSchema)]
pub struct CatalogState {
    /// Listings that are found by their text.
    pub documents: u64,
    /// Whether the index has held all that the registry has, since this process began.
    pub is_caught_up: bool,
    /// Changes of the registry that the index does not hold yet.
    pub behind_changes: u64,
    /// Listings that wait to be found by their meaning.
    pub pending_embeddings: u64,
    /// The models, and how far each has come.
    pub models: Vec<ModelState>,
}

/// How far one model has come.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelState {
    /// Its name and form.
    pub model: String,
    /// Listings that it has read.
    pub listings: u64,
    /// Listings that wait for it, at most.
    pub pending: u64,
    /// Whether searches are compared with what it has read.
    pub is_serving: bool,
    /// Bytes of its file.
    pub bytes: u64,
}

impl From<SpaceStats> for ModelState {
    fn from(space: SpaceStats) -> Self {
        Self {
            model: space.embedder,
            listings: space.vectors,
            pending: space.pending,
            is_serving: space.is_serving,
            bytes: space.bytes,
        }
    }
}

/// Tells how the catalog stands.
#[utoipa::path(
    get,
    path = "/admin/catalog",
    tag = "administration",
    summary = "How far the index of listings has come",
    security(("operator" = [])),
    responses((status = 200, description = "As it is in this process", body = CatalogState),
              (status = 401, description = "The operator's token is missing or wrong"))
)]
pub async fn catalog(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<web::Json<CatalogState>, ApiError> {
    Query::parse(&req, &[])?;
    let stats = app.catalog.stats();
    Ok(web::Json(CatalogState {
        documents: stats.documents,
        is_caught_up: stats.is_caught_up,
        behind_changes: stats.behind_changes,
        pending_embeddings: stats.pending_embeddings,
        models: stats.spaces.into_iter().map(ModelState::from).collect(),
    }))
}
