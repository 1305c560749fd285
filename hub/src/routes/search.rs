//! The search door (§9). It reads and judges a request as the protocol says. This version keeps no catalog yet: no
//! listing can be published, so nothing is found, and `degraded` says that neither leg ran.

use actix_web::HttpResponse;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::Domain;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::limits::{SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX, SEARCH_QUERY_BYTES_MAX};
use crate::routes::Endpoint;

pub mod get;
pub mod post;

/// The endpoints of this resource.
pub fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint::at("/api/v1/search").get(get::search).post(post::search)]
}

/// Every parameter of a search, in the query and in the body alike.
pub(crate) const PARAMETERS: &[&str] = &[
    "q",
    "kind",
    "price_min",
    "price_max",
    "currency",
    "available",
    "trust_min",
    "domain",
    "limit",
    "cursor",
];

/// The kinds of listings.
const KINDS: &[&str] = &["capability", "product", "concept"];

/// What a search found.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SearchAnswer)]
pub struct Answer {
    /// The text that was searched for.
    pub query: String,
    /// The listings, best first. Empty in this version.
    pub results: Vec<serde_json::Value>,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
    /// The time it took, in milliseconds.
    pub took_ms: u64,
    /// The legs that did not run.
    pub degraded: Vec<&'static str>,
}

/// A search whose parameters are all good.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Search {
    text: String,
}

impl Search {
    /// Takes one parameter, checking its form.
    pub(crate) fn take(&mut self, name: &'static str, value: &str) -> Result<(), ApiError> {
        let good = match name {
            "q" => {
                value.clone_into(&mut self.text);
                value.len() <= SEARCH_QUERY_BYTES_MAX
            }
            "kind" => KINDS.contains(&value),
            "price_min" | "price_max" => decimal(value),
            "currency" => value.len() == 3 && value.bytes().all(|byte| byte.is_ascii_uppercase()),
            "available" => matches!(value, "true" | "false"),
            "trust_min" => {
                decimal(value)
                    && value
                        .parse::<f64>()
                        .is_ok_and(|trust| (0.0..=1.0).contains(&trust))
            }
            "domain" => Domain::parse(value).is_ok(),
            "limit" => value
                .parse::<u64>()
                .is_ok_and(|limit| (1..=SEARCH_LIMIT_MAX).contains(&limit)),
            // No page was ever handed out, so no cursor is one of ours.
            _ => return Err(Refusal::new(ErrorCode::CursorInvalid, CURSOR).into()),
        };
        if good { Ok(()) } else { Err(invalid(name)) }
    }

    /// What the empty catalog holds for it.
    pub(crate) fn answer(self) -> HttpResponse {
        HttpResponse::Ok().json(Answer {
            query: self.text,
            results: Vec::new(),
            next_cursor: None,
            took_ms: 0,
            degraded: vec!["fts", "semantic"],
        })
    }
}

const CURSOR: &str = "This hub handed out no such cursor; begin again without one.";

/// Plain digits with an optional fraction.
fn decimal(text: &str) -> bool {
    let digits =
        |part: &str| !part.is_empty() && part.len() <= 18 && part.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(text),
    }
}

fn invalid(name: &'static str) -> ApiError {
    let form = match name {
        "q" => format!("at most {SEARCH_QUERY_BYTES_MAX} bytes of text"),
        "kind" => format!("one of {}", KINDS.join(", ")),
        "price_min" | "price_max" => {
            "plain decimal digits with an optional fraction, such as 12.50".to_owned()
        }
        "currency" => "three upper-case letters, such as EUR".to_owned(),
        "available" => "true or false".to_owned(),
        "trust_min" => "a number from 0 to 1, such as 0.5".to_owned(),
        "domain" => "a domain, such as example.org".to_owned(),
        _ => format!("a whole number from 1 to {SEARCH_LIMIT_MAX}; without it, {SEARCH_LIMIT_DEFAULT}"),
    };
    Refusal::new(ErrorCode::ParameterInvalid, format!("`{name}` must be {form}."))
        .with("parameter", name)
        .into()
}

#[cfg(test)]
mod tests;
