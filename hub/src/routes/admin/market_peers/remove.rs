//! `DELETE /admin/market/peer?url=`: a hub is forgotten, and what it sold here taken down. The log stays.

use actix_web::{HttpRequest, HttpResponse, web};

use super::{address, peers, unknown};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;
use crate::routes::admin::Operator;

/// Forgets a hub.
#[utoipa::path(
    delete,
    path = "/admin/market/peer",
    operation_id = "admin_remove_market_peer",
    tag = "administration",
    summary = "Forget a hub that sells",
    description = "It may announce itself again; block it to keep it away.",
    params(("url" = String, Query, description = "Its address", example = "https://two.example")),
    security(("operator" = [])),
    responses((status = 204, description = "It is forgotten"),
              (status = 400, description = "No address of another hub"),
              (status = 401, description = "The operator's token is missing or wrong"),
              (status = 404, description = "No such hub, or this one has no market"))
)]
pub async fn remove(
    app: web::Data<App>,
    _operator: Operator,
    req: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let query = Query::parse(&req, &["url"])?;
    let peers = peers(&app)?;
    let url = address(peers, &query.text("url")?.unwrap_or_default())?;
    if peers.remove(&url).await? {
        Ok(HttpResponse::NoContent().finish())
    } else {
        Err(unknown())
    }
}
