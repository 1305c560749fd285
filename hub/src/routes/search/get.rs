//! `GET /api/v1/search`: searches what agents offer (§9).

use actix_web::{HttpRequest, HttpResponse, web};

use super::{ATTRIBUTE_PREFIX, Answer, PARAMETERS, Search, find};
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
    description = "Text is text, never a query language; the other parameters filter, before ranks are counted. Results \
                   are ordered by `final_score`: the places in the list by text and in the list by meaning, fused, and \
                   weighted by the trust in the agent. Without text: all that passes the filters, by trust, then id. \
                   `attr.NAME=VALUE` asks for the value of an attribute, up to sixteen of them.",
    params(
        ("q" = Option<String>, Query, description = "What to look for, in any language"),
        ("kind" = Option<String>, Query, description = "`capability`, `product` or `concept`; some with commas between"),
        ("price_min" = Option<String>, Query, description = "Plain decimal digits"),
        ("price_max" = Option<String>, Query, description = "Plain decimal digits"),
        ("currency" = Option<String>, Query, description = "Three upper-case letters"),
        ("available" = Option<bool>, Query, description = "Only what is, or is not, available"),
        ("trust_min" = Option<f64>, Query, description = "From 0 to 1"),
        ("domain" = Option<String>, Query, description = "Only listings of one hub"),
        ("category" = Option<String>, Query, description = "Only of this category, whatever its case"),
        ("brand" = Option<String>, Query, description = "Only of this brand, whatever its case"),
        ("lang" = Option<String>, Query, description = "Only in this language; `fr` finds `fr-CA` too"),
        ("updated_after" = Option<String>, Query, description = "Only what the hub took at this time or later, RFC 3339"),
        ("explain" = Option<bool>, Query, description = "Whether results say why they stand where they stand"),
        ("facets" = Option<bool>, Query, description = "Whether to count what was found by kind, category, brand and more"),
        ("limit" = Option<u64>, Query, description = "1 to 100, 20 by default"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before, with the same parameters"),
    ),
    responses(
        (status = 200, description = "What was found", body = Answer),
        (status = 400, description = "A parameter is unknown, doubled, or not in its form; the answer names it"),
        (status = 429, description = "Too many requests from one address"),
        (status = 503, description = "The catalog cannot be asked now"),
    )
)]
pub async fn search(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    let query = Query::parse_with(&req, PARAMETERS, Some(ATTRIBUTE_PREFIX))?;
    let mut search = Search::default();
    for name in PARAMETERS {
        if let Some(value) = query.text(name)? {
            search.take(name, &value)?;
        }
    }
    for (name, value) in query.open()? {
        search.take_attribute(&name, &value)?;
    }
    Ok(HttpResponse::Ok().json(find(&app, search.into_query()).await?))
}
