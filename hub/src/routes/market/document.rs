//! How a signed document of the market is answered: with an `ETag`, and not again to who has it.

use actix_web::http::header::{CACHE_CONTROL, ContentType, ETAG, HeaderMap, IF_NONE_MATCH};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use aip_protocol::error::ErrorCode;

use super::room;
use crate::app::App;
use crate::error::{ApiError, MarketError};
use crate::market::documents::Kind;
use crate::market::limits::DOCUMENT_MAX_AGE_SECS;
use crate::throttle::Cost;

/// Answers with a document. Parameters are ignored: caches and crawlers add their own.
pub(super) async fn answer(app: &App, req: &HttpRequest, kind: Kind) -> Result<HttpResponse, MarketError> {
    app.throttle.admit(Cost::Request, req)?;
    let document = room(app)?.documents.current(kind).await;
    let document = document.map_err(|error| ApiError::failed(ErrorCode::Internal, error))?;
    if is_held(req.headers(), &document.etag) {
        return Ok(fresh(HttpResponse::NotModified(), &document.etag).finish());
    }
    let mut response = fresh(HttpResponse::Ok(), &document.etag);
    response.insert_header(ContentType::json());
    Ok(response.body(document.body.clone()))
}

fn fresh(mut response: HttpResponseBuilder, etag: &str) -> HttpResponseBuilder {
    response.insert_header((ETAG, etag));
    response.insert_header((CACHE_CONTROL, format!("public, max-age={DOCUMENT_MAX_AGE_SECS}")));
    response
}

/// Whether the caller has these bytes: the weak comparison of RFC 9110 §13.1.2.
fn is_held(headers: &HeaderMap, etag: &str) -> bool {
    let values = headers
        .get_all(IF_NONE_MATCH)
        .filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}
