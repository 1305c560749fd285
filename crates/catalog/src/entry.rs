//! A listing as the catalog keeps it.

use std::collections::BTreeMap;

use aip_protocol::listing::ListingKind;
use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;

/// What one listing says, and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The hub's id of the listing: what results carry and what ties are broken by.
    pub id: String,
    /// The store's number of the listing: small, never given twice, the same in every process.
    pub number: u64,
    /// Whose offer it is.
    pub agent: Did,
    /// The hub that holds it.
    pub source_hub: Domain,
    /// What kind of thing is offered.
    pub kind: ListingKind,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// The language of name and description as the listing says it (BCP 47); detected where it says none.
    pub lang: Option<String>,
    /// Further words to find it by.
    pub tags: Vec<String>,
    /// The attribute `category`.
    pub category: Option<String>,
    /// The attribute `brand`.
    pub brand: Option<String>,
    /// Plain decimal digits, as its agent wrote them.
    pub price_text: Option<String>,
    /// Three upper-case letters.
    pub currency: Option<String>,
    /// Whether it can be had now; what says nothing is taken to be available.
    pub available: Option<bool>,
    /// All attributes, `category` and `brand` too.
    pub attributes: BTreeMap<String, AttributeValue>,
    /// When this version was made, by its agent's clock.
    pub created_at: Timestamp,
    /// When the hub took this version.
    pub updated_at: Timestamp,
    /// After this moment it is no longer found.
    pub expires_at: Option<Timestamp>,
}

/// What an attribute may be.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub enum AttributeValue {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Text.
    Text(String),
}

impl std::fmt::Display for AttributeValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
        }
    }
}
