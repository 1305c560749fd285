//! Outgoing HTTP to addresses that a stranger can choose (spec §8, last paragraph).
//!
//! [`GuardedClient`] is the one implementation for production: only `https` unless the operator
//! allows more, IP literals and every resolved address globally routable, the checked address is
//! the one connected to, no redirects, no proxies, no cookies, no decompression, and every size and
//! time has a limit. [`Outbound`] is the seam, so that the rooms above test without a network.

pub mod address;
mod client;
#[cfg(any(test, feature = "testsuite"))]
pub mod fake;
mod policy;
mod resolver;
mod stream;

use std::error::Error;
use std::fmt::Debug;
use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

pub use client::GuardedClient;
pub use policy::Policy;
pub use resolver::{Resolve, SystemResolver};
pub use stream::{Body, Streamed};

use crate::limits;

/// The way out: one `POST`, one bounded answer.
#[async_trait]
pub trait Outbound: Send + Sync + Debug {
    /// Sends `body` to `url` once: no redirect is followed and nothing is tried again.
    ///
    /// # Errors
    ///
    /// Any status is an [`Answer`], also 3xx to 5xx; an error means that there was no complete
    /// answer within `limits`, or that the guard refused to call the URL at all. A 2xx is an answer
    /// once its status is read: what its body does afterwards is no error.
    async fn post(
        &self,
        url: &str,
        content_type: &'static str,
        body: Bytes,
        limits: Limits,
    ) -> Result<Answer, EgressError>;
}

/// A request to another hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `GET` or `POST`.
    pub method: Method,
    /// Where to.
    pub url: String,
    /// Fields that go with it, names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body of a `POST`.
    pub body: Bytes,
}

/// The methods that hubs speak to each other with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Asks.
    Get,
    /// Hands over.
    Post,
}

/// What another hub answered, with the fields that matter between hubs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// The HTTP status code.
    pub status: u16,
    /// `Content-Type`, without parameters, in lower case.
    pub content_type: Option<String>,
    /// `Cache-Control`.
    pub cache_control: Option<String>,
    /// `Retry-After`.
    pub retry_after: Option<String>,
    /// Those of [`limits::FIELDS_KEPT`] that it has, each once, in visible ASCII and of at most
    /// [`limits::FIELD_BYTES_MAX`] bytes.
    pub fields: Vec<(&'static str, String)>,
    /// The body, whole, at most [`Limits::answer_bytes_max`] bytes.
    pub body: Bytes,
}

impl Response {
    /// The value of a field that is kept.
    pub fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(kept, _)| *kept == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The way to other hubs: one request, one whole and bounded answer.
#[async_trait]
pub trait Exchange: Send + Sync + Debug {
    /// Sends `request` once: no redirect is followed and nothing is tried again.
    ///
    /// # Errors
    ///
    /// Any status is a [`Response`]; an error means that there was no complete answer within `limits`, or that the guard
    /// refused to call the URL at all.
    async fn exchange(&self, request: Request, limits: Limits) -> Result<Response, EgressError>;

    /// The same, and gives the answer back when its head is there.
    ///
    /// # Errors
    ///
    /// As [`Exchange::exchange`]; what is wrong with the body is told by [`Body::next`].
    async fn open(&self, request: Request, limits: Limits) -> Result<Streamed, EgressError> {
        Ok(self.exchange(request, limits).await?.into())
    }
}

/// What one exchange may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest time for the whole exchange.
    pub timeout: Duration,
    /// Largest answer body in bytes.
    pub answer_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: limits::EXCHANGE_TIMEOUT,
            answer_bytes_max: limits::ANSWER_BYTES_MAX,
        }
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status code.
    pub status: u16,
    /// The body, at most [`Limits::answer_bytes_max`] bytes, as it came. Of a 2xx whose body is
    /// larger, breaks off or takes too long, only what was read of it.
    pub body: Bytes,
}

impl Answer {
    /// Whether the status is 2xx. A redirect is not: it is never followed.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Why there is no answer.
///
/// The texts name neither path nor query of the URL, which may hold an endpoint's secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EgressError {
    /// The text is not an absolute URL with a host, or is too long.
    #[error("the URL cannot be read")]
    UrlInvalid,
    /// The scheme is not `https` (or `http` where the operator allows it).
    #[error("only https URLs are called")]
    SchemeRefused,
    /// The URL carries a user name or a password.
    #[error("a URL with a user name or a password is not called")]
    UserinfoRefused,
    /// The host is, or resolves to, an address that is not public and not allowed by the operator.
    #[error("{0} is not a public address")]
    AddressRefused(IpAddr),
    /// The name resolves to more addresses than are checked.
    #[error("the name has more than {max} addresses", max = limits::ADDRESSES_MAX)]
    AddressesTooMany,
    /// The name has no address, or the look-up failed.
    #[error("the name cannot be resolved")]
    NameUnresolved(#[source] Option<std::io::Error>),
    /// No connection, or TLS was not agreed on.
    #[error("no connection")]
    ConnectFailed(#[source] Box<dyn Error + Send + Sync>),
    /// The time limit passed first.
    #[error("not finished in time")]
    TimedOut,
    /// The answer is longer than [`Limits::answer_bytes_max`].
    #[error("the answer is longer than {bytes_max} bytes")]
    AnswerTooLarge {
        /// The limit that it exceeded, in bytes.
        bytes_max: usize,
    },
    /// The exchange began and broke off.
    #[error("the exchange broke off")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
    /// The client itself could not be set up.
    #[error("the HTTP client cannot be set up")]
    Setup(#[source] Box<dyn Error + Send + Sync>),
}

impl EgressError {
    /// Whether our own guard refused, as opposed to the far side having failed.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::UrlInvalid
                | Self::SchemeRefused
                | Self::UserinfoRefused
                | Self::AddressRefused(_)
                | Self::AddressesTooMany
        )
    }

    /// A stable word for logs and counters.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::UrlInvalid => "url_invalid",
            Self::SchemeRefused => "scheme_refused",
            Self::UserinfoRefused => "userinfo_refused",
            Self::AddressRefused(_) | Self::AddressesTooMany => "address_refused",
            Self::NameUnresolved(_) => "name_unresolved",
            Self::ConnectFailed(_) => "connect_failed",
            Self::TimedOut => "timed_out",
            Self::AnswerTooLarge { .. } => "answer_too_large",
            Self::Broken(_) => "broken",
            Self::Setup(_) => "setup",
        }
    }
}

#[cfg(test)]
mod hostile;
