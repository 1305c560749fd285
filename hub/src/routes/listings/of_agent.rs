//! `GET /api/v1/agents/{name}/listings`: what an agent of this hub offers (§9).

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::show::HeldListing;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Query, path_name};
use crate::routes::resolve::{agent, local};
use crate::throttle::Cost;

/// Listings in one page.
const PAGE_MAX: u32 = 100;

/// A page of listings.
#[derive(Debug, Serialize, ToSchema)]
pub struct ListingPage {
    /// The listings, by their ids.
    pub items: Vec<HeldListing>,
    /// Where the next page begins; `null` at the end.
    pub next_cursor: Option<String>,
}

/// Lists an agent's listings.
#[utoipa::path(
    get,
    path = "/api/v1/agents/{name}/listings",
    tag = "search",
    summary = "The listings of an agent",
    params(
        ("name" = String, Path, description = "The agent's name", example = "alice"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "Listings in one page, 1 to 100"),
    ),
    responses(
        (status = 200, description = "A page", body = ListingPage),
        (status = 400, description = "The name or a parameter cannot be read"),
        (status = 404, description = "No such agent"),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn of_agent(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    let handle = local(&app, path_name(&req)?);
    let query = Query::parse(&req, &["cursor", "limit"])?;
    let limit = query.number("limit", 1..=u64::from(PAGE_MAX), u64::from(PAGE_MAX))?;
    let limit = u32::try_from(limit).unwrap_or(PAGE_MAX);
    let cursor = query.text("cursor")?;
    agent(&app, &handle).await?;
    let found = app
        .listings
        .of_agent(&handle.did(), cursor.as_deref(), limit)
        .await?;
    let is_full = found.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let next_cursor = found.last().filter(|_| is_full).map(|last| last.id.clone());
    let live = found.into_iter().filter(|stored| !stored.deleted);
    let items = live
        .map(|stored| HeldListing::of(&app, stored))
        .collect::<Result<_, _>>()?;
    Ok(HttpResponse::Ok().json(ListingPage { items, next_cursor }))
}
