//! What is looked for.

use std::collections::BTreeMap;

use aip_protocol::listing::ListingKind;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;

use crate::price::Price;

/// One search. Its text is text, never a query language; nothing in it is an error.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    /// What people type. Empty: all that passes the filter, by trust, then id.
    pub text: String,
    /// What a result must be; counted before ranks are.
    pub filter: Filter,
    /// Results on the page, 1 to 100.
    pub limit: u32,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// Whether each result says why it stands where it stands.
    pub explain: bool,
    /// Whether the answer counts what passes the filter by kind, category, brand, currency, language and domain.
    pub facets: bool,
}

/// What a result must be: every member that is set must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// One of these; all kinds when empty.
    pub kinds: Vec<ListingKind>,
    /// Costs at least this, in `currency` where one is set.
    pub price_min: Option<Price>,
    /// Costs at most this.
    pub price_max: Option<Price>,
    /// Three upper-case letters.
    pub currency: Option<String>,
    /// Is, or is not, available; what says nothing counts as available.
    pub available: Option<bool>,
    /// The trust in its agent, 0 to 1, is at least this.
    pub trust_min: Option<f64>,
    /// Listed at this hub.
    pub domain: Option<Domain>,
    /// Of this category, whatever its case.
    pub category: Option<String>,
    /// Of this brand, whatever its case.
    pub brand: Option<String>,
    /// Of this language: the primary subtag, `fr` for `fr-CA` too.
    pub lang: Option<String>,
    /// Each of these attributes has this value, written as text; whatever its case.
    pub attributes: BTreeMap<String, String>,
    /// The hub took this version at or after this moment.
    pub updated_after: Option<Timestamp>,
}
