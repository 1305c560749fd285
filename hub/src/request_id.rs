//! Request ids: one per request, made here and never taken from outside.
//!
//! An id ties an answer (`X-Request-Id`, and `request_id` in an error) to the hub's log. It is a counter behind a
//! number drawn at start, so ids of two runs differ; it is no secret and needs no randomness per request.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use actix_web::http::header::{HeaderName, HeaderValue};

/// The header that carries the id on every answer.
pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Makes the ids of one run.
#[derive(Debug)]
pub struct RequestIds {
    run: u32,
    next: AtomicU64,
}

impl RequestIds {
    /// `run` tells this run's ids from another's; draw it at start.
    pub fn new(run: u32) -> Self {
        Self {
            run,
            next: AtomicU64::new(1),
        }
    }

    /// A new id.
    pub fn next(&self) -> RequestId {
        RequestId {
            run: self.run,
            number: self.next.fetch_add(1, Ordering::Relaxed),
        }
    }
}

/// The id of one request; its text is `{run}-{number}`, both in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    run: u32,
    number: u64,
}

impl RequestId {
    /// The id as a header value.
    pub fn header_value(self) -> HeaderValue {
        // Hexadecimal digits and a hyphen always are a header value.
        HeaderValue::try_from(self.to_string()).unwrap_or(HeaderValue::from_static("unknown"))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{:06x}", self.run, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_within_a_run_and_between_runs() {
        let (one, two) = (RequestIds::new(1), RequestIds::new(2));
        assert_eq!(one.next().to_string(), "00000001-000001");
        assert_eq!(one.next().to_string(), "00000001-000002");
        assert_eq!(two.next().header_value(), "00000002-000001");
    }
}
