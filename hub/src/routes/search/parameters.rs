//! What a search can ask for, in the query and in the body alike, each parameter judged by its form.

use aip_catalog::limits::{PAGE_RESULTS_MAX, QUERY_BYTES_MAX};
use aip_catalog::{Price, Query};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::listing::ListingKind;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;

use crate::catalog::limits::{ATTRIBUTE_NAME_BYTES_MAX, ATTRIBUTE_TEXT_BYTES_MAX};
use crate::catalog::{is_currency, is_lang};
use crate::error::ApiError;
use crate::limits::{
    SEARCH_ATTRIBUTES_MAX, SEARCH_CURSOR_BYTES_MAX, SEARCH_LIMIT_DEFAULT, SEARCH_WORD_BYTES_MAX,
};

/// Every parameter of a search, but attributes.
pub(crate) const PARAMETERS: &[&str] = &[
    "q",
    "kind",
    "price_min",
    "price_max",
    "currency",
    "available",
    "trust_min",
    "domain",
    "category",
    "brand",
    "lang",
    "updated_after",
    "explain",
    "facets",
    "limit",
    "cursor",
];

/// What the name of an attribute's parameter begins with, in the query: `attr.color=black`.
pub(crate) const ATTRIBUTE_PREFIX: &str = "attr.";

/// The member of a body that holds attributes.
pub(crate) const ATTRIBUTES: &str = "attributes";

/// A search whose parameters are all good.
#[derive(Debug)]
pub(crate) struct Search(Query);

impl Default for Search {
    fn default() -> Self {
        Self(Query {
            limit: SEARCH_LIMIT_DEFAULT,
            ..Query::default()
        })
    }
}

impl Search {
    /// Takes one parameter.
    ///
    /// # Errors
    /// 400 `parameter_invalid` with the parameter's name and form.
    pub(crate) fn take(&mut self, name: &'static str, value: &str) -> Result<(), ApiError> {
        self.set(name, value).ok_or_else(|| invalid(name))
    }

    fn set(&mut self, name: &'static str, value: &str) -> Option<()> {
        let Query { filter, .. } = &mut self.0;
        match name {
            "q" => within(value, QUERY_BYTES_MAX)?.clone_into(&mut self.0.text),
            "kind" => filter.kinds = value.split(',').map(ListingKind::parse).collect::<Option<_>>()?,
            "price_min" => filter.price_min = Some(Price::parse(value).ok()?),
            "price_max" => filter.price_max = Some(Price::parse(value).ok()?),
            "currency" => filter.currency = is_currency(value).then(|| Some(value.to_owned()))?,
            "available" => filter.available = Some(truth(value)?),
            "trust_min" => filter.trust_min = Some(trust(value)?),
            "domain" => filter.domain = Some(Domain::parse(value).ok()?),
            "category" => filter.category = Some(word(value)?),
            "brand" => filter.brand = Some(word(value)?),
            "lang" => filter.lang = is_lang(value).then(|| Some(value.to_owned()))?,
            "updated_after" => filter.updated_after = Some(Timestamp::parse(value).ok()?),
            "explain" => self.0.explain = truth(value)?,
            "facets" => self.0.facets = truth(value)?,
            "limit" => self.0.limit = limit(value)?,
            "cursor" => self.0.cursor = Some(within(value, SEARCH_CURSOR_BYTES_MAX)?.to_owned()),
            _ => return None,
        }
        Some(())
    }

    /// Takes the value that an attribute must have.
    ///
    /// # Errors
    /// 400 `parameter_invalid`.
    pub(crate) fn take_attribute(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        let attributes = &mut self.0.filter.attributes;
        let fits = (1..=ATTRIBUTE_NAME_BYTES_MAX).contains(&name.len())
            && value.len() <= ATTRIBUTE_TEXT_BYTES_MAX
            && attributes.len() < SEARCH_ATTRIBUTES_MAX;
        if fits && attributes.insert(name.to_owned(), value.to_owned()).is_none() {
            return Ok(());
        }
        Err(invalid(ATTRIBUTES))
    }

    /// The query for the catalog.
    pub(crate) fn into_query(self) -> Query {
        self.0
    }
}

fn within(value: &str, bytes_max: usize) -> Option<&str> {
    (value.len() <= bytes_max).then_some(value)
}

fn word(value: &str) -> Option<String> {
    (1..=SEARCH_WORD_BYTES_MAX)
        .contains(&value.len())
        .then(|| value.to_owned())
}

fn truth(value: &str) -> Option<bool> {
    match value {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Plain digits with an optional fraction, from 0 to 1.
fn trust(value: &str) -> Option<f64> {
    Price::parse(value).ok()?;
    value.parse().ok().filter(|trust| (0.0..=1.0).contains(trust))
}

fn limit(value: &str) -> Option<u32> {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let limit = value.parse().ok().filter(|_| digits)?;
    (1..=PAGE_RESULTS_MAX).contains(&limit).then_some(limit)
}

/// The refusal of a parameter that is not in its form.
pub(crate) fn invalid(name: &'static str) -> ApiError {
    let form = match name {
        "q" => format!("text of at most {QUERY_BYTES_MAX} bytes"),
        "kind" => "`capability`, `product` or `concept`, or some of them with commas between".to_owned(),
        "price_min" | "price_max" => {
            "plain decimal digits with an optional fraction, such as 12.50: at most 11 \
                                      before the point and 8 behind it"
                .to_owned()
        }
        "currency" => "three upper-case letters, such as EUR".to_owned(),
        "available" | "explain" | "facets" => "true or false".to_owned(),
        "trust_min" => "a number from 0 to 1, such as 0.5".to_owned(),
        "domain" => "a domain, such as example.org".to_owned(),
        "category" | "brand" => format!("text of 1 to {SEARCH_WORD_BYTES_MAX} bytes"),
        "lang" => "a language tag, such as fr".to_owned(),
        "updated_after" => "an RFC 3339 time in UTC, such as 2026-11-29T20:15:30Z".to_owned(),
        "cursor" => "`next_cursor` of the page before".to_owned(),
        ATTRIBUTES => format!(
            "at most {SEARCH_ATTRIBUTES_MAX} names with one value each: names of 1 to {ATTRIBUTE_NAME_BYTES_MAX} bytes, \
             values of at most {ATTRIBUTE_TEXT_BYTES_MAX}"
        ),
        _ => format!("a whole number from 1 to {PAGE_RESULTS_MAX}; without it, {SEARCH_LIMIT_DEFAULT}"),
    };
    Refusal::new(ErrorCode::ParameterInvalid, format!("`{name}` must be {form}."))
        .with("parameter", name)
        .into()
}
