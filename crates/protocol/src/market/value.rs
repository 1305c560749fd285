//! JSON that keeps what AIMarket's signatures depend on: integers and floats apart, names once, in the order of code points.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use super::digest;
use super::number::Number;
use crate::error::Refusal;

mod parse;

/// The members of an object, in the order in which AIMarket's digests have them (that of code points).
pub type Members = BTreeMap<String, Value>;

/// A JSON value.
///
/// `Display` and [`Self::to_bytes`] are its compact text with numbers as Python spells them; serde writes the same value
/// with numbers as `serde_json` spells them, which reads back as the same.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    Str(String),
    /// An array.
    Array(Vec<Value>),
    /// An object.
    Object(Members),
}

impl Value {
    /// Reads one JSON text, strictly (RFC 8259).
    ///
    /// # Errors
    /// `json_invalid`: more than [`crate::limits::MARKET_JSON_BYTES_MAX`] bytes or
    /// [`crate::limits::MARKET_JSON_LEVELS_MAX`] levels, a member name that comes twice in one object, integers beyond 64
    /// bits, numbers that no double holds, invalid UTF-8, lone surrogates, a byte order mark, anything after the value.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        parse::strict(bytes)
    }

    /// So many micro-dollars as a number of dollars; see [`Number::usd`].
    pub fn usd(micros: u64) -> Self {
        Self::Number(Number::usd(micros))
    }

    /// The compact text: members in the order of code points, numbers as Python spells them.
    pub fn to_bytes(&self) -> Vec<u8> {
        digest::compact(self)
    }

    /// The member of this name, when this is an object that has it.
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.as_object()?.get(name)
    }

    /// The text, when this is a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Str(text) = self {
            Some(text)
        } else {
            None
        }
    }

    /// The number, when this is one.
    pub fn as_number(&self) -> Option<Number> {
        if let Self::Number(number) = self {
            Some(*number)
        } else {
            None
        }
    }

    /// The truth value, when this is one.
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(truth) = self {
            Some(*truth)
        } else {
            None
        }
    }

    /// The items, when this is an array.
    pub fn as_array(&self) -> Option<&[Self]> {
        if let Self::Array(items) = self {
            Some(items)
        } else {
            None
        }
    }

    /// The members, when this is an object.
    pub fn as_object(&self) -> Option<&Members> {
        if let Self::Object(members) = self {
            Some(members)
        } else {
            None
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_bytes()))
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(truth) => serializer.serialize_bool(*truth),
            Self::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => serializer.serialize_u64(number),
                (None, Some(number)) => serializer.serialize_i64(number),
                (None, None) => serializer.serialize_f64(number.as_f64()),
            },
            Self::Str(text) => serializer.serialize_str(text),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Object(members) => serializer.collect_map(members),
        }
    }
}

impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(truth) => Self::Bool(truth),
            serde_json::Value::Number(number) => Self::Number(Number::from(&number)),
            serde_json::Value::String(text) => Self::Str(text),
            serde_json::Value::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            serde_json::Value::Object(members) => Self::Object(
                members
                    .into_iter()
                    .map(|(name, value)| (name, Self::from(value)))
                    .collect(),
            ),
        }
    }
}

impl From<Value> for serde_json::Value {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(truth) => Self::Bool(truth),
            Value::Number(number) => Self::Number(number.into()),
            Value::Str(text) => Self::String(text),
            Value::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Value::Object(members) => Self::Object(
                members
                    .into_iter()
                    .map(|(name, value)| (name, Self::from(value)))
                    .collect(),
            ),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Str(text)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<Members> for Value {
    fn from(members: Members) -> Self {
        Self::Object(members)
    }
}

impl<T: Into<Self>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<const N: usize> From<[(&str, Self); N]> for Value {
    fn from(members: [(&str, Self); N]) -> Self {
        let owned = members.into_iter().map(|(name, value)| (name.to_owned(), value));
        Self::Object(owned.collect())
    }
}

#[cfg(test)]
mod tests;
