//! The one place where a refusal or a failure becomes an HTTP answer.
//!
//! Every error of every route is an [`ApiError`]: a [`Refusal`] (a code for machines, a sentence for people) and,
//! for failures, a cause that goes to the log once and never to the caller. The answer is `application/problem+json`
//! (RFC 9457, specification §7), rendered by [`crate::front`], which knows the request id and the hub's own address.

use std::error::Error;
use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{HttpResponse, HttpResponseBuilder, ResponseError};
use aip_federation::outbox::OutboxError;
use aip_federation::peers::StoreError as PeerStoreError;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_registry::{RegistryError, StoreError};
use serde_json::{Map, Value};

use crate::limits::UNAVAILABLE_RETRY_SECS;

mod market;

pub use market::{MarketError, is_of_market, rendered};

/// The media type of every error answer.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// The media type of an error on AIMarket's paths.
const JSON: &str = "application/json";

/// What a caller reads when the hub itself failed; the cause stays in the log.
const FAILURE_DETAIL: &str =
    "The hub failed to handle the request. Try again later; if it stays, tell the operator the request id.";

/// An error on its way to the caller.
pub struct ApiError(Box<Inner>);

struct Inner {
    refusal: Refusal,
    /// What went wrong inside; set for failures only.
    cause: Option<Box<dyn Error + Send + Sync>>,
    /// The methods that the path does have, for 405.
    allow: Option<String>,
    /// Whether the connection ends with this answer, as the rest of the body is not worth reading.
    closes: bool,
}

impl ApiError {
    /// A refusal with a code and a sentence that says what to do.
    pub fn refused(code: ErrorCode, detail: &'static str) -> Self {
        Refusal::new(code, detail).into()
    }

    /// A failure of the hub itself: the caller gets `code` and a general sentence, the log gets `cause`.
    pub fn failed(code: ErrorCode, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::from(Refusal::new(code, FAILURE_DETAIL)).because(cause)
    }

    /// The same answer as a failure of the hub itself, with its cause for the log.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// 405 with the `Allow` header that RFC 9110 asks for.
    pub fn method_not_allowed(allow: &str) -> Self {
        let detail = format!("This path answers to: {allow}. See /docs for what each of them does.");
        let mut error = Self::from(Refusal::new(ErrorCode::MethodNotAllowed, detail));
        error.0.allow = Some(allow.to_owned());
        error
    }

    /// Ends the connection with the answer.
    #[must_use]
    pub fn closing(mut self) -> Self {
        self.0.closes = true;
        self
    }

    /// The code that the caller will read.
    pub fn code(&self) -> ErrorCode {
        self.0.refusal.code
    }

    /// The refusal as a value, for doors that do not answer with a status (a batch, a WebSocket frame).
    pub fn refusal(&self) -> &Refusal {
        &self.0.refusal
    }

    /// The cause of a failure, for the log only.
    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.0.cause.as_deref()
    }

    /// The HTTP status of the code.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code().status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn retry_after_secs(&self) -> Option<u64> {
        let unavailable = self.status() == StatusCode::SERVICE_UNAVAILABLE;
        self.0
            .refusal
            .retry_after_secs
            .or(unavailable.then_some(UNAVAILABLE_RETRY_SECS))
    }

    /// The problem document, for doors that do not answer with a status. `public_url` is as in [`ApiError::render`].
    pub(crate) fn problem(&self, request_id: &str, public_url: &str) -> Map<String, Value> {
        problem(&self.0.refusal, request_id, public_url)
    }

    /// The whole answer. `public_url` is the hub's address without a trailing slash.
    pub fn render(&self, request_id: &str, public_url: &str) -> HttpResponse {
        let mut response = self.head(PROBLEM_JSON);
        response.body(Value::Object(problem(&self.0.refusal, request_id, public_url)).to_string())
    }

    /// The same in the shape of AIMarket, on its paths.
    pub(crate) fn render_for_market(&self) -> HttpResponse {
        self.head(JSON).body(market::body(&self.0.refusal).to_string())
    }

    /// Everything of the answer but its body.
    fn head(&self, media_type: &'static str) -> HttpResponseBuilder {
        let status = self.status();
        let mut response = HttpResponse::build(status);
        response.content_type(media_type);
        if let Some(allow) = &self.0.allow {
            response.insert_header((ALLOW, allow.as_str()));
        }
        if let Some(seconds) = self.retry_after_secs() {
            response.insert_header((RETRY_AFTER, seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.insert_header((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"aip\"")));
        }
        if self.0.closes {
            response.force_close();
        }
        response
    }
}

/// The members of a problem document. Members of the case never replace those that RFC 9457 and §7 name.
fn problem(refusal: &Refusal, request_id: &str, public_url: &str) -> Map<String, Value> {
    let code = refusal.code;
    let mut members: Map<String, Value> = refusal
        .members
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    members.insert(
        "type".to_owned(),
        format!("{public_url}/docs/errors/{}", code.as_str()).into(),
    );
    members.insert("title".to_owned(), code.title().into());
    members.insert("status".to_owned(), code.status().into());
    members.insert("detail".to_owned(), refusal.detail.as_ref().into());
    members.insert("code".to_owned(), code.as_str().into());
    members.insert("request_id".to_owned(), request_id.into());
    members
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self(Box::new(Inner {
            refusal,
            cause: None,
            allow: None,
            closes: false,
        }))
    }
}

impl From<RegistryError> for ApiError {
    fn from(error: RegistryError) -> Self {
        match error {
            RegistryError::Refused(refusal) => refusal.into(),
            RegistryError::Failed(failure) => Self::failed(failure.code(), failure),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(failure: StoreError) -> Self {
        Self::failed(failure.code(), failure)
    }
}

impl From<PeerStoreError> for ApiError {
    fn from(failure: PeerStoreError) -> Self {
        Self::failed(ErrorCode::Unavailable, failure)
    }
}

impl From<aip_market::store::StoreError> for ApiError {
    fn from(failure: aip_market::store::StoreError) -> Self {
        let code = match failure {
            aip_market::store::StoreError::Unavailable(_) => ErrorCode::Unavailable,
            aip_market::store::StoreError::Corrupt(_) => ErrorCode::Internal,
        };
        Self::failed(code, failure)
    }
}

impl From<OutboxError> for ApiError {
    fn from(failure: OutboxError) -> Self {
        Self::failed(ErrorCode::Unavailable, failure)
    }
}

impl fmt::Debug for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiError")
            .field("code", &self.code())
            .field("cause", &self.0.cause)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code().as_str(), self.0.refusal.detail)
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.status()
    }

    /// Carries the status only: [`crate::front`] finds this error in the response and renders it.
    fn error_response(&self) -> HttpResponse {
        HttpResponse::new(self.status())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::body::to_bytes;

    async fn body(response: HttpResponse) -> Value {
        serde_json::from_slice(&to_bytes(response.into_body()).await.unwrap()).unwrap()
    }

    #[actix_web::test]
    async fn a_refusal_is_a_problem_document() {
        let error = ApiError::from(
            Refusal::new(ErrorCode::RateLimited, "Wait a little.")
                .with("limit", 20)
                .retry_after(3),
        );
        let response = error.render("r-1", "https://hub.example");
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers().get("content-type").unwrap(), PROBLEM_JSON);
        assert_eq!(response.headers().get("retry-after").unwrap(), "3");
        let body = body(response).await;
        assert_eq!(body["type"], "https://hub.example/docs/errors/rate_limited");
        assert_eq!(body["status"], 429);
        assert_eq!(body["code"], "rate_limited");
        assert_eq!(body["detail"], "Wait a little.");
        assert_eq!(body["request_id"], "r-1");
        assert_eq!(body["limit"], 20);
        assert!(body["title"].as_str().is_some_and(|title| !title.is_empty()));
    }

    #[test]
    fn who_is_told_to_come_back_is_told_when() {
        let response = ApiError::failed(ErrorCode::Unavailable, "disk").render("r-6", "");
        assert_eq!(response.headers().get("retry-after").unwrap(), "2");
        let response = ApiError::failed(ErrorCode::Internal, "bug").render("r-7", "");
        assert!(response.headers().get("retry-after").is_none());
    }

    #[actix_web::test]
    async fn the_cause_of_a_failure_stays_inside() {
        let error = ApiError::failed(ErrorCode::Internal, "table agents is gone");
        let response = error.render("r-2", "https://hub.example");
        assert_eq!(response.status(), 500);
        let text = body(response).await.to_string();
        assert!(!text.contains("agents is gone"));
        assert_eq!(error.cause().unwrap().to_string(), "table agents is gone");
    }

    #[actix_web::test]
    async fn members_of_the_case_replace_nothing() {
        let error = ApiError::from(Refusal::new(ErrorCode::NotFound, "Nothing here.").with("status", 200));
        assert_eq!(body(error.render("r-3", "")).await["status"], 404);
    }

    #[actix_web::test]
    async fn method_not_allowed_names_the_methods() {
        let response = ApiError::method_not_allowed("GET, HEAD").render("r-4", "");
        assert_eq!(response.status(), 405);
        assert_eq!(response.headers().get("allow").unwrap(), "GET, HEAD");
    }

    #[actix_web::test]
    async fn an_unauthenticated_answer_names_the_scheme() {
        let response = ApiError::refused(ErrorCode::TokenInvalid, "Ask for a new token.").render("r-5", "");
        assert_eq!(
            response.headers().get("www-authenticate").unwrap(),
            "Bearer realm=\"aip\""
        );
    }
}
