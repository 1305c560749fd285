//! Which web pages may call the hub: those of the origins that the operator listed, no others.
//!
//! Programs send no `Origin` and are not concerned. No answer ever allows credentials: the hub has no cookies.

use actix_web::HttpResponse;
use actix_web::dev::ServiceRequest;
use actix_web::http::Method;
use actix_web::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap,
    HeaderValue, ORIGIN, VARY,
};

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, DELETE");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, idempotency-key, last-event-id, payment-signature, prefer, x-aimarket-job-secret, \
     x-aimarket-sandbox-visitor, x-aip-invite, x-api-key, x-payment-channel, x-payment-channel-secret, x-provider-key",
);
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "etag, idempotency-replayed, location, payment-required, payment-response, preference-applied, retry-after, x-request-id",
);
/// Time a browser keeps the permission, in seconds.
const MAX_AGE_SECS: HeaderValue = HeaderValue::from_static("3600");

/// The listed origins.
#[derive(Debug)]
pub struct Origins(Vec<HeaderValue>);

impl Origins {
    /// Origins as browsers write them: scheme, host and port, without a slash at the end.
    pub fn new(origins: &[String]) -> Self {
        Self(
            origins
                .iter()
                .filter_map(|o| HeaderValue::try_from(o.trim_end_matches('/')).ok())
                .collect(),
        )
    }

    /// Whether a request with this `Origin` may open a WebSocket: a listed one, or none at all (no browser).
    pub fn admits(&self, headers: &HeaderMap) -> bool {
        !headers.contains_key(ORIGIN) || self.listed(headers).is_some()
    }

    /// The request's origin, if it is listed.
    pub(crate) fn listed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        self.0.contains(origin).then(|| origin.clone())
    }
}

/// The answer to a browser's question whether it may send a request, if `req` is one.
pub(crate) fn preflight(req: &ServiceRequest) -> Option<HttpResponse> {
    if req.method() != Method::OPTIONS || !req.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut response = HttpResponse::NoContent();
    response.insert_header((ACCESS_CONTROL_ALLOW_METHODS, METHODS));
    response.insert_header((ACCESS_CONTROL_ALLOW_HEADERS, HEADERS));
    response.insert_header((ACCESS_CONTROL_MAX_AGE, MAX_AGE_SECS));
    Some(response.finish())
}

/// Lets pages of `origin` read an answer.
pub(crate) fn expose(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn only_listed_origins_and_programs_are_admitted() {
        let origins = Origins::new(&["https://app.example.org/".to_owned()]);
        let admits = |origin: &str| {
            origins.admits(
                TestRequest::default()
                    .insert_header((ORIGIN, origin))
                    .to_http_request()
                    .headers(),
            )
        };
        assert!(admits("https://app.example.org"));
        assert!(!admits("https://app.example.org.evil.example"));
        assert!(!admits("null"));
        assert!(origins.admits(TestRequest::default().to_http_request().headers()));
    }
}
