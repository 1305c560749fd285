//! What every request passes: it gets an id, its path loses a trailing slash, errors become problem documents, every
//! answer gets the headers that protect its reader, and one line of log and one count say what happened.
//!
//! Logged are method, route template, status and duration. Never logged: queries, bodies, tokens, names in paths.

use std::error::Error as StdError;
use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderMap, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::http::uri::PathAndQuery;
use actix_web::http::{StatusCode, Uri};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage as _, HttpRequest, HttpResponse, web};
use aip_protocol::error::ErrorCode;
use tokio::time::Instant;

use crate::app::App;
use crate::cors;
use crate::error::{ApiError, MarketError, is_of_market};
use crate::metrics::method_label;
use crate::request_id::{self, RequestId};
use crate::routes::Template;

mod failures;
mod held;

pub use failures::Failures;
use held::Held;

/// The route of a request that matched none.
const NO_ROUTE: &str = "(none)";
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");
/// An answer is data: a browser loads and runs nothing for it. The pages under `/docs` bring their own policy.
const DATA_POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// The outermost layer of both listeners, for `actix_web::middleware::from_fn`.
///
/// # Errors
/// Those of the framework below; a handler's error is rendered here and is no error any more.
pub async fn front(
    app: web::Data<App>,
    mut req: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let id = app.request_ids.next();
    let began = Instant::now();
    let running = app.metrics.begin();
    req.extensions_mut().insert(id);
    trim_slash(&mut req);
    let body = Held::of(&mut req);
    let origin = app.origins.listed(req.headers());
    let mut answer = match cors::preflight(&req).filter(|_| origin.is_some()) {
        Some(allowed) => req.into_response(allowed),
        None => rendered(&app, id, next.call(req).await?.map_into_boxed_body()),
    };
    let headers = answer.headers_mut();
    protect(headers, id);
    if let Some(origin) = origin {
        cors::expose(headers, origin);
    }
    record(&app, id, answer.request(), answer.status(), began.elapsed());
    drop(running);
    Ok(match body {
        Some(body) => body.until_sent(answer),
        None => answer,
    })
}

/// `/x/` is served as `/x`, without a redirect.
fn trim_slash(req: &mut ServiceRequest) {
    let path = req.path();
    if path.len() < 2 || !path.ends_with('/') {
        return;
    }
    let uri = req.uri();
    let path = uri.path().trim_end_matches('/');
    let path = if path.is_empty() { "/" } else { path };
    let text = uri
        .query()
        .map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    let mut parts = uri.clone().into_parts();
    let Ok(path_and_query) = PathAndQuery::try_from(text) else {
        return;
    };
    parts.path_and_query = Some(path_and_query);
    let Ok(uri) = Uri::from_parts(parts) else { return };
    req.match_info_mut().get_mut().update(&uri);
    req.head_mut().uri = uri;
}

fn rendered(app: &App, id: RequestId, answer: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    let Some(error) = answer.response().error() else {
        return answer;
    };
    if let Some(error) = error.as_error::<MarketError>() {
        note(app, id, error.code(), error.cause());
        let rendered = error.render();
        return answer.into_response(rendered);
    }
    let path = answer.request().path();
    let rendered = match error.as_error::<ApiError>() {
        Some(error) => shaped(app, id, path, error),
        None => shaped(app, id, path, &foreign(answer.status())),
    };
    answer.into_response(rendered)
}

/// The answer in the shape that its path has.
fn shaped(app: &App, id: RequestId, path: &str, error: &ApiError) -> HttpResponse {
    note(app, id, error.code().as_str(), error.cause());
    if is_of_market(path) {
        error.render_for_market()
    } else {
        error.render(&id.to_string(), &app.public_url)
    }
}

/// Counts an error, and writes the cause of a failure to the log.
fn note(
    app: &App,
    id: RequestId,
    code: &'static str,
    cause: Option<&(dyn StdError + Send + Sync + 'static)>,
) {
    app.metrics.erred(code);
    if let Some(cause) = cause {
        app.failures.log(id, code, cause);
    }
}

/// An error that the framework made before a handler ran.
fn foreign(status: StatusCode) -> ApiError {
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::refused(ErrorCode::BodyTooLarge, "The body is too large."),
        status if status.is_client_error() => ApiError::refused(
            ErrorCode::ParameterInvalid,
            "A part of the request could not be read; see /docs.",
        ),
        status => ApiError::failed(ErrorCode::Internal, format!("the framework answered {status}")),
    }
}

fn protect(headers: &mut HeaderMap, id: RequestId) {
    headers.insert(request_id::HEADER, id.header_value());
    headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
    headers.insert(REFERRER_POLICY, NO_REFERRER);
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, NO_STORE);
    }
    if !headers.contains_key(CONTENT_SECURITY_POLICY) {
        headers.insert(CONTENT_SECURITY_POLICY, DATA_POLICY);
    }
}

fn record(app: &App, id: RequestId, req: &HttpRequest, status: StatusCode, duration: Duration) {
    let route = req.app_data::<Template>().map_or(NO_ROUTE, |template| template.0);
    app.metrics.answered(req.method(), route, status, duration);
    tracing::debug!(
        target: "aip_hub::access",
        method = method_label(req.method()),
        request.id = %id,
        route,
        status = status.as_u16(),
        duration_us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
        "answered"
    );
}

#[cfg(test)]
mod tests;
