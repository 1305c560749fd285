//! Errors on AIMarket's paths. They have that protocol's shape (`{"success": false, "error", "detail", …,
//! "protocol_version": "v2"}`), also where they are errors that other doors have too.

use std::error::Error;
use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::RETRY_AFTER;
use actix_web::{HttpResponse, ResponseError};
use aip_market::refusal::{MarketCode, MarketRefusal, PROTOCOL_VERSION};
use aip_market::store::StoreError;
use aip_protocol::error::Refusal;
use aip_registry::RegistryError;
use serde_json::{Map, Value};

use super::ApiError;
use crate::limits::UNAVAILABLE_RETRY_SECS;

/// Paths whose errors have this shape.
const PATHS: [&str; 3] = ["/ai-market", "/schemas", "/.well-known/ai-market.json"];

/// Whether errors of this path have the market's shape.
pub fn is_of_market(path: &str) -> bool {
    let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
    PATHS
        .iter()
        .any(|base| path.strip_prefix(base).is_some_and(is_below))
}

/// An error of the market on its way to the caller.
#[derive(Debug)]
pub struct MarketError(Box<Inner>);

#[derive(Debug)]
enum Inner {
    /// With a code that only the market has.
    Refused(MarketRefusal),
    /// As at other doors.
    Common(ApiError),
}

impl MarketError {
    /// A refusal with a code and a sentence that says what to do.
    pub fn refused(code: MarketCode, detail: &'static str) -> Self {
        MarketRefusal::new(code, detail).into()
    }

    /// The code that the caller will read.
    pub fn code(&self) -> &'static str {
        match &*self.0 {
            Inner::Refused(refusal) => refusal.code.as_str(),
            Inner::Common(error) => error.code().as_str(),
        }
    }

    /// The cause of a failure, for the log only.
    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        match &*self.0 {
            Inner::Refused(_) => None,
            Inner::Common(error) => error.cause(),
        }
    }

    /// The whole answer.
    pub fn render(&self) -> HttpResponse {
        match &*self.0 {
            Inner::Refused(refusal) => rendered(refusal),
            Inner::Common(error) => error.render_for_market(),
        }
    }
}

/// The answer to what the market refuses.
pub fn rendered(refusal: &MarketRefusal) -> HttpResponse {
    let status = status(refusal.code);
    let unavailable = status == StatusCode::SERVICE_UNAVAILABLE;
    let mut response = HttpResponse::build(status);
    if let Some(secs) = refusal
        .retry_after_secs
        .or(unavailable.then_some(UNAVAILABLE_RETRY_SECS))
    {
        response.insert_header((RETRY_AFTER, secs));
    }
    for (name, value) in &refusal.headers {
        response.append_header((*name, value.as_str()));
    }
    response.json(refusal.body())
}

fn status(code: MarketCode) -> StatusCode {
    StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The body of an error that other doors have too. Members of the case never replace those that every body has.
pub(super) fn body(refusal: &Refusal) -> Value {
    let members = refusal.members.iter();
    let mut body: Map<String, Value> = members
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    body.insert("success".to_owned(), false.into());
    body.insert("error".to_owned(), refusal.code.as_str().into());
    body.insert("detail".to_owned(), refusal.detail.as_ref().into());
    body.insert("protocol_version".to_owned(), PROTOCOL_VERSION.into());
    body.into()
}

impl From<MarketRefusal> for MarketError {
    fn from(refusal: MarketRefusal) -> Self {
        Self(Box::new(Inner::Refused(refusal)))
    }
}

impl From<ApiError> for MarketError {
    fn from(error: ApiError) -> Self {
        Self(Box::new(Inner::Common(error)))
    }
}

impl From<Refusal> for MarketError {
    fn from(refusal: Refusal) -> Self {
        ApiError::from(refusal).into()
    }
}

impl From<StoreError> for MarketError {
    fn from(failure: StoreError) -> Self {
        ApiError::from(failure).into()
    }
}

impl From<RegistryError> for MarketError {
    fn from(error: RegistryError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<aip_market::refusal::MarketError> for MarketError {
    fn from(error: aip_market::refusal::MarketError) -> Self {
        match error {
            aip_market::refusal::MarketError::Refused(refusal) => refusal.into(),
            aip_market::refusal::MarketError::Store(failure) => failure.into(),
        }
    }
}

impl fmt::Display for MarketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// Carries the status only: [`crate::front`] finds this error in the response and renders it.
impl ResponseError for MarketError {
    fn status_code(&self) -> StatusCode {
        match &*self.0 {
            Inner::Refused(refusal) => status(refusal.code),
            Inner::Common(error) => error.status(),
        }
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::new(self.status_code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aip_protocol::error::ErrorCode;

    async fn read(response: HttpResponse) -> Value {
        let body = actix_web::body::to_bytes(response.into_body()).await;
        serde_json::from_slice(&body.unwrap()).unwrap()
    }

    #[actix_web::test]
    async fn a_refusal_has_the_markets_shape() {
        let refusal = MarketRefusal::new(MarketCode::PaymentRequired, "Show a purse.").with("needed", 0.25);
        let response = MarketError::from(refusal).render();
        assert_eq!(response.status(), 402);
        let expected = serde_json::json!({
            "success": false, "error": "payment_required", "detail": "Show a purse.", "needed": 0.25,
            "protocol_version": "v2",
        });
        assert_eq!(read(response).await, expected);
    }

    #[actix_web::test]
    async fn so_has_an_error_that_other_doors_have_too() {
        let refusal = Refusal::new(ErrorCode::RateLimited, "Wait a little.")
            .with("success", true)
            .retry_after(3);
        let response = MarketError::from(refusal).render();
        assert_eq!(
            (
                response.status().as_u16(),
                response.headers().get("retry-after").unwrap().as_bytes()
            ),
            (429, &b"3"[..])
        );
        let body = read(response).await;
        assert_eq!(
            (&body["error"], &body["success"]),
            (&"rate_limited".into(), &false.into())
        );
    }

    #[test]
    fn its_paths_are_the_markets() {
        for path in [
            "/ai-market",
            "/ai-market/v2/invoke",
            "/schemas/receipt.json",
            "/.well-known/ai-market.json",
        ] {
            assert!(is_of_market(path), "{path}");
        }
        assert!(!is_of_market("/api/v1/market/earnings") && !is_of_market("/ai-marketing"));
    }
}
