//! `GET /api/v1/agents/{name}/history`: an agent's operations, oldest first, for whoever checks them (§3).

use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::ErrorCode;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Query, path_name};
use crate::throttle::Cost;

/// A page of a history.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HistoryAnswer)]
pub struct HistoryAnswer {
    /// Operations as they were admitted, oldest first.
    #[schema(value_type = Vec<Object>)]
    pub operations: Vec<Box<RawValue>>,
    /// Where the next page begins; `null` at the end.
    pub next_cursor: Option<String>,
}

/// Lists operations.
#[utoipa::path(
    get,
    path = "/api/v1/agents/{name}/history",
    tag = "identity",
    summary = "The history of an identity",
    description = "Whoever replays the list learns every key the agent ever had, and that nobody else changed it. \
                   The history of an agent that ended stays readable.",
    params(
        ("name" = String, Path, description = "The agent's name", example = "alice"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "Operations in one page, 1 to 100"),
    ),
    responses(
        (status = 200, description = "A page", body = HistoryAnswer),
        (status = 400, description = "The name or the cursor cannot be read"),
        (status = 404, description = "No such agent"),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn history(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    let name = path_name(&req)?;
    let query = Query::parse(&req, &["cursor", "limit"])?;
    let most = app.settings.registry.history_page_operations_max;
    let limit = query.number("limit", 1..=u64::from(most), u64::from(most))?;
    let cursor = query.text("cursor")?;
    let limit = u32::try_from(limit).unwrap_or(most);
    let page = app.registry.history(&name, cursor.as_deref(), limit).await?;
    let operations = page
        .operations
        .into_iter()
        .map(RawValue::from_string)
        .collect::<Result<Vec<_>, _>>();
    let answer = HistoryAnswer {
        operations: operations.map_err(|error| ApiError::failed(ErrorCode::Internal, error))?,
        next_cursor: page.next_cursor,
    };
    Ok(HttpResponse::Ok().json(answer))
}
