//! What can be invoked.

use aip_protocol::name::Did;
use serde_json::Value;

use crate::money::Usd;

/// A capability as it is sold: read from its listing.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The hub's id of the listing.
    pub id: String,
    /// Whose offer it is, and who is paid.
    pub agent: Did,
    /// AIMarket's `product_id`: 2 to 80 of `[A-Za-z0-9_.@-]`.
    pub product_id: String,
    /// AIMarket's `capability_id`: 2 to 80 of `[A-Za-z0-9_.@-]`.
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
    /// JSON Schema of the input.
    pub input_schema: Option<Value>,
    /// JSON Schema of the output.
    pub output_schema: Option<Value>,
    /// How its provider is called; `None`: it is listed, and cannot be invoked here.
    pub way: Option<Way>,
    /// What may be had for nothing, of one field of the input.
    pub free_tier: Option<FreeTier>,
}

/// How a provider is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// `POST` to this address, which the provider chose: only through the guarded way out.
    Http(String),
    /// A sealed message to the provider agent, answered by one: it needs no public address.
    Relay,
}

/// `free_tier {field, max}` of a listing: the input's number `field` (a path with points) may be `max` at most.
#[derive(Debug, Clone, PartialEq)]
pub struct FreeTier {
    /// Where the number is in the input, such as `puzzle.T`.
    pub field: String,
    /// The largest that is taken.
    pub max: f64,
}
