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
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
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

// By hand: what is untagged is tried kind by kind, and every miss makes a sentence for an error. Listings are read often.
impl<'de> serde::Deserialize<'de> for AttributeValue {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AttributeVisitor)
    }
}

struct AttributeVisitor;

impl serde::de::Visitor<'_> for AttributeVisitor {
    type Value = AttributeValue;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("true, false, a whole number or text")
    }

    fn visit_bool<E>(self, value: bool) -> Result<AttributeValue, E> {
        Ok(AttributeValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<AttributeValue, E> {
        Ok(AttributeValue::Int(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<AttributeValue, E> {
        let value = i64::try_from(value).map_err(E::custom)?;
        Ok(AttributeValue::Int(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<AttributeValue, E> {
        Ok(AttributeValue::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<AttributeValue, E> {
        Ok(AttributeValue::Text(value))
    }
}

#[cfg(test)]
mod tests {
    use super::AttributeValue::{self, Bool, Int, Text};

    #[test]
    fn attributes_are_read_as_they_are_written() {
        for value in [
            Bool(true),
            Int(-3),
            Int(i64::MAX),
            Text("1".to_owned()),
            Text("a\nb".to_owned()),
        ] {
            let written = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<AttributeValue>(&written).unwrap(), value);
        }
        for other in ["1.5", "9223372036854775808", "null", "[]", "{}"] {
            assert!(serde_json::from_str::<AttributeValue>(other).is_err());
        }
    }
}
