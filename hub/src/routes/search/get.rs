//! `GET /api/v1/search`: searches what agents offer (§9).

use actix_web::{HttpRequest, HttpResponse, web};

use super::{Answer, PARAMETERS, Search};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;
use crate::throttle::Cost;

/// Searches by query parameters.
#[utoipa::path(
    get,
    path = "/api/v1/search",
    tag = "search",
    summary = "Search listings",
    description = "Text is text, never a query language; parameters filter. This version keeps no catalog yet: \
                   nothing is found, and `degraded` names both legs.",
    params(
        ("q" = Option<String>, Query, description = "What to look for"),
        ("kind" = Option<String>, Query, description = "`capability`, `product` or `concept`"),
        ("price_min" = Option<String>, Query, description = "Plain decimal digits"),
        ("price_max" = Option<String>, Query, description = "Plain decimal digits"),
        ("currency" = Option<String>, Query, description = "Three upper-case letters"),
        ("available" = Option<bool>, Query, description = "Only what is, or is not, available"),
        ("trust_min" = Option<f64>, Query, description = "From 0 to 1"),
        ("domain" = Option<String>, Query, description = "Only listings of one hub"),
        ("limit" = Option<u64>, Query, description = "1 to 100, 20 by default"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
    ),
    responses(
        (status = 200, description = "What was found", body = Answer),
        (status = 400, description = "A parameter is unknown, doubled, or not in its form"),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn search(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    let query = Query::parse(&req, PARAMETERS)?;
    let mut search = Search::default();
    for name in PARAMETERS {
        if let Some(value) = query.text(name)? {
            search.take(name, &value)?;
        }
    }
    Ok(search.answer())
}
