//! `GET /search`: searches what agents offer, for people.

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, ContentType};
use actix_web::{HttpRequest, HttpResponse, web};
use aip_protocol::error::ErrorCode;

use super::POLICY;
use super::view::{Asked, page};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Query;
use crate::routes::search::{Search, find};
use crate::throttle::Cost;

/// The fields of the page's form, and its cursor.
const FIELDS: &[&str] = &[
    "q",
    "kind",
    "price_min",
    "price_max",
    "currency",
    "available",
    "category",
    "lang",
    "cursor",
];

/// Answers with the page.
#[utoipa::path(
    get,
    path = "/search",
    operation_id = "search_page",
    tag = "documentation",
    summary = "A search page for people",
    description = "The parameters are those of `/api/v1/search`; empty ones say nothing, as a form sends them.",
    params(
        ("q" = Option<String>, Query, description = "What to look for, in any language"),
        ("kind" = Option<String>, Query, description = "`capability`, `product` or `concept`"),
        ("price_min" = Option<String>, Query, description = "Plain decimal digits"),
        ("price_max" = Option<String>, Query, description = "Plain decimal digits"),
        ("currency" = Option<String>, Query, description = "Three upper-case letters"),
        ("available" = Option<bool>, Query, description = "Only what is, or is not, available"),
        ("category" = Option<String>, Query, description = "Only of this category"),
        ("lang" = Option<String>, Query, description = "Only in this language"),
        ("cursor" = Option<String>, Query, description = "Where the next page begins"),
    ),
    responses(
        (status = 200, description = "The page", body = String, content_type = "text/html"),
        (status = 400, description = "The page, saying which field is not in its form", content_type = "text/html"),
        (status = 429, description = "Too many requests from one address"),
    )
)]
pub async fn show(app: web::Data<App>, req: HttpRequest) -> Result<HttpResponse, ApiError> {
    app.throttle.admit(Cost::Request, &req)?;
    let query = Query::parse(&req, FIELDS)?;
    let mut asked = Asked::default();
    for name in FIELDS {
        if let Some(value) = query.text(name)?.filter(|value| !value.is_empty()) {
            asked.push(name, value);
        }
    }
    let outcome = match search(&asked) {
        Ok(search) => find(&app, search.into_query()).await,
        Err(refusal) => Err(refusal),
    };
    let (status, outcome) = match outcome {
        Ok(answer) => (StatusCode::OK, Ok(answer)),
        // What the person can mend is said where the person looks.
        Err(error) if error.cause().is_none() && is_mended_here(error.code()) => {
            (error.status(), Err(error.refusal().detail.to_string()))
        }
        Err(error) => return Err(error),
    };
    let mut response = HttpResponse::build(status);
    response
        .insert_header(ContentType::html())
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((CACHE_CONTROL, "no-store"));
    Ok(response.body(page(&app, &asked, outcome)))
}

fn search(asked: &Asked) -> Result<Search, ApiError> {
    let mut search = Search::default();
    for (name, value) in asked.fields() {
        search.take(name, value)?;
    }
    Ok(search)
}

fn is_mended_here(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::ParameterInvalid | ErrorCode::CursorInvalid)
}
