//! What can be invoked, and where it is found.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::name::Did;

use crate::limits::{ID_CHARS_MAX, ID_CHARS_MIN};
use crate::money::Usd;
use crate::schema::Schema;

mod terms;

pub use terms::Terms;

/// A capability as it is sold: read from its listing.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The hub's id of the listing.
    pub id: String,
    /// Whose offer it is, and who is paid.
    pub agent: Did,
    /// AIMarket's `product_id`; see [`is_id`].
    pub product_id: String,
    /// AIMarket's `capability_id`; see [`is_id`].
    pub capability_id: String,
    /// The version of the listing.
    pub version: u64,
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The attribute `category`.
    pub category: Option<String>,
    /// What one call costs; nothing: it is free.
    pub price: Usd,
    /// What its input is like.
    pub input_schema: Option<Schema>,
    /// What its result is like.
    pub output_schema: Option<Schema>,
    /// How its provider is called; `None`: it is listed, and cannot be invoked here.
    pub way: Option<Way>,
    /// How long its provider may take; `None`: as the operator says.
    pub timeout: Option<Duration>,
    /// What may be had for nothing, of one field of the input.
    pub free_tier: Option<FreeTier>,
}

impl Offer {
    /// Whether it can be invoked here: it says how, and its schemas are ones. Manifests and prices show no other.
    pub fn is_invocable(&self) -> bool {
        let schemas = [&self.input_schema, &self.output_schema];
        self.way.is_some() && schemas.into_iter().flatten().all(Schema::is_usable)
    }
}

/// How a provider is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// `POST` to this address, which the provider chose: only through the guarded way out.
    Http(String),
    /// A sealed message to the provider agent, answered by one: it needs no public address.
    Relay,
}

/// `free_tier {field, max}` of a listing with a price: an input whose number `field` (a path with points) is there and is `max`
/// at most costs nothing to whoever shows no purse. Of a free capability it says nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct FreeTier {
    /// Where the number is in the input, such as `puzzle.T`.
    pub field: String,
    /// The largest that is free.
    pub max: f64,
}

/// Finds what is sold. What it answers may be a moment old: the price that it says is the price of the call.
pub trait Offers: Send + Sync + Debug {
    /// The offer with these ids.
    fn find(&self, product_id: &str, capability_id: &str) -> Option<Arc<Offer>>;
}

/// Whether this can be an AIMarket id: 2 to 80 of `[A-Za-z0-9_.@-]` without `..`. Other listings are not sold.
pub fn is_id(text: &str) -> bool {
    (ID_CHARS_MIN..=ID_CHARS_MAX).contains(&text.len())
        && !text.contains("..")
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'@' | b'-'))
}
