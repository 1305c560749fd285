//! Strict JSON, and its canonical bytes (§2; RFC 8259, RFC 7493, RFC 8785).
//!
//! A signed object holds strings, booleans, null, arrays, objects and integers of magnitude at
//! most 2^53-1. [`Json`] is exactly that. Members are kept in the order that JCS asks for (by
//! UTF-16 code units), so the canonical bytes are the plain compact serialization of the value.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::error::{ErrorCode, Refusal};
use crate::limits::{JSON_INT_MAX, JSON_LEVELS_MAX};

mod parse;

/// A JSON value without floats, ready to be signed.
///
/// `Debug` prints the value; `Display` and serde print its canonical text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer. Whoever builds one keeps it within ±(2^53-1); parsing refuses others.
    Int(i64),
    /// A string.
    Str(String),
    /// An array.
    Array(Vec<Json>),
    /// An object.
    Object(Object),
}

/// The members of an object: unique, in canonical order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Object(Vec<(String, Json)>);

impl Json {
    /// Reads one JSON text, strictly.
    ///
    /// Refuses with `json_invalid`: duplicate members, floats (`1.0`, `1e3` and `-0` among them),
    /// integers beyond ±(2^53-1), invalid UTF-8, lone surrogates, a byte order mark, anything
    /// after the value, and more than [`JSON_LEVELS_MAX`] levels.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        parse::strict(bytes)
    }

    /// The canonical bytes (RFC 8785).
    pub fn to_jcs(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        write_compact(&mut out, self);
        out
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

    /// The number, when this is an integer.
    pub fn as_int(&self) -> Option<i64> {
        if let Self::Int(number) = self {
            Some(*number)
        } else {
            None
        }
    }

    /// The truth value, when this is a boolean.
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
    pub fn as_object(&self) -> Option<&Object> {
        if let Self::Object(object) = self {
            Some(object)
        } else {
            None
        }
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// A copy without the named members; other values than objects are copied as they are.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        match self {
            Self::Object(object) => Self::Object(object.without(names)),
            other => other.clone(),
        }
    }

    /// Whether the value keeps the rules that parsing enforces, with the outermost level as 1.
    ///
    /// For values that were built rather than parsed.
    pub fn check(&self) -> Result<(), Refusal> {
        self.check_levels(JSON_LEVELS_MAX)
    }

    fn check_levels(&self, levels_left: usize) -> Result<(), Refusal> {
        match self {
            Self::Null | Self::Bool(_) | Self::Str(_) => Ok(()),
            Self::Int(number) if number.unsigned_abs() <= JSON_INT_MAX.unsigned_abs() => Ok(()),
            Self::Int(_) => Err(invalid("an integer lies beyond ±(2^53-1)")),
            Self::Array(_) | Self::Object(_) if levels_left == 0 => Err(invalid(parse::TOO_DEEP)),
            Self::Array(items) => items
                .iter()
                .try_for_each(|item| item.check_levels(levels_left - 1)),
            Self::Object(object) => object
                .iter()
                .try_for_each(|(_, item)| item.check_levels(levels_left - 1)),
        }
    }
}

impl Object {
    /// No members yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sorts `members` and refuses a name that comes twice.
    fn from_unsorted(mut members: Vec<(String, Json)>) -> Option<Self> {
        members.sort_by(|(a, _), (b, _)| utf16_order(a, b));
        let unique = members.windows(2).all(|pair| match pair {
            [(a, _), (b, _)] => a != b,
            _ => true,
        });
        unique.then_some(Self(members))
    }

    /// The value of this member.
    pub fn get(&self, name: &str) -> Option<&Json> {
        let index = self.find(name).ok()?;
        self.0.get(index).map(|(_, value)| value)
    }

    /// Whether there is such a member.
    pub fn contains(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    /// Sets a member and returns the value it replaces.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<Json>) -> Option<Json> {
        let (name, value) = (name.into(), value.into());
        match self.find(&name) {
            Ok(index) => self
                .0
                .get_mut(index)
                .map(|slot| std::mem::replace(&mut slot.1, value)),
            Err(index) => {
                self.0.insert(index, (name, value));
                None
            }
        }
    }

    /// Takes a member out.
    pub fn remove(&mut self, name: &str) -> Option<Json> {
        self.find(name).ok().map(|index| self.0.remove(index).1)
    }

    /// The members in canonical order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Json)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A copy without the named members.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        let kept = self.0.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        Self(kept.cloned().collect())
    }

    /// The canonical bytes of the object without the named members, appended to `out`.
    pub fn write_jcs_without(&self, names: &[&str], out: &mut Vec<u8>) {
        write_compact(out, &Without { object: self, names });
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| utf16_order(other, name))
    }
}

/// The one place where bytes are made, canonical ones when `value` is [`Json`].
///
/// A compact `serde_json` serialization escapes exactly as RFC 8785 §3.2.2.2 asks, and [`Json`]
/// holds neither floats nor unsorted members.
#[expect(
    clippy::expect_used,
    reason = "string keys and a Vec<u8> leave serde_json nothing to fail on"
)]
pub(crate) fn write_compact(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("JSON into memory");
}

struct Without<'a> {
    object: &'a Object,
    names: &'a [&'a str],
}

impl Serialize for Without<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.object.iter().filter(|(name, _)| !self.names.contains(name)))
    }
}

/// Order by UTF-16 code units (RFC 8785 §3.2.3), without leaving UTF-8.
///
/// UTF-8 sorts by code point; UTF-16 differs only in that U+E000 to U+FFFF (lead bytes EE and EF)
/// come after the supplementary planes (lead bytes F0 to F4).
fn utf16_order(a: &str, b: &str) -> Ordering {
    let rank = |byte: u8| {
        if matches!(byte, 0xEE | 0xEF) {
            byte + 0x10
        } else {
            byte
        }
    };
    a.bytes().map(rank).cmp(b.bytes().map(rank))
}

fn invalid(detail: impl Into<std::borrow::Cow<'static, str>>) -> Refusal {
    Refusal::new(ErrorCode::JsonInvalid, detail)
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.to_jcs();
        f.write_str(&String::from_utf8_lossy(&bytes))
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(truth) => serializer.serialize_bool(*truth),
            Self::Int(number) => serializer.serialize_i64(*number),
            Self::Str(text) => serializer.serialize_str(text),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Object(object) => object.serialize(serializer),
        }
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse::value(deserializer)
    }
}

impl<K: Into<String>, V: Into<Json>> FromIterator<(K, V)> for Object {
    /// A later member of the same name replaces an earlier one.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        let mut object = Self::new();
        for (name, value) in members {
            object.insert(name, value);
        }
        object
    }
}

impl<K: Into<String>, const N: usize> From<[(K, Json); N]> for Object {
    fn from(members: [(K, Json); N]) -> Self {
        members.into_iter().collect()
    }
}

impl<K: Into<String>, const N: usize> From<[(K, Json); N]> for Json {
    fn from(members: [(K, Json); N]) -> Self {
        Self::Object(Object::from(members))
    }
}

impl From<Object> for Json {
    fn from(object: Object) -> Self {
        Self::Object(object)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Str(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::Str(text)
    }
}

impl From<bool> for Json {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<u32> for Json {
    fn from(number: u32) -> Self {
        Self::Int(i64::from(number))
    }
}

impl<T: Into<Json>> From<Vec<T>> for Json {
    fn from(items: Vec<T>) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl TryFrom<u64> for Json {
    type Error = Refusal;

    fn try_from(number: u64) -> Result<Self, Refusal> {
        let json = i64::try_from(number).map_or(Self::Int(i64::MAX), Self::Int);
        json.check().map(|()| json)
    }
}

impl TryFrom<Value> for Json {
    type Error = Refusal;

    /// Refuses what parsing refuses: floats, big integers, too many levels.
    fn try_from(value: Value) -> Result<Self, Refusal> {
        parse::value(value).map_err(|error| invalid(error.to_string()))
    }
}

impl From<Json> for Value {
    fn from(json: Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(truth) => Self::Bool(truth),
            Json::Int(number) => Self::from(number),
            Json::Str(text) => Self::String(text),
            Json::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Json::Object(object) => Self::Object(
                object
                    .0
                    .into_iter()
                    .map(|(name, value)| (name, Self::from(value)))
                    .collect(),
            ),
        }
    }
}

#[cfg(test)]
mod tests;
