//! Reading strict JSON on top of `serde_json`'s tokenizer, which bounds its own recursion.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};

use super::{Json, Object, invalid};
use crate::error::Refusal;
use crate::limits::{JSON_INT_MAX, JSON_LEVELS_MAX};

pub(super) const TOO_DEEP: &str = "nested deeper than 32 levels";
const NOT_INTEGER: &str = "a number is not an integer within ±(2^53-1)";
const DUPLICATE: &str = "a member name comes twice in one object";

/// One JSON text and nothing after it.
pub(super) fn strict(bytes: &[u8]) -> Result<Json, Refusal> {
    let mut tokens = serde_json::Deserializer::from_slice(bytes);
    let json = value(&mut tokens).and_then(|json| tokens.end().map(|()| json));
    json.map_err(|error| invalid(error.to_string()))
}

/// One value from any deserializer of a self-describing format.
pub(super) fn value<'de, D: Deserializer<'de>>(tokens: D) -> Result<Json, D::Error> {
    Nested {
        levels_left: JSON_LEVELS_MAX,
    }
    .deserialize(tokens)
}

/// Reads a value that may open so many more levels.
#[derive(Clone, Copy)]
struct Nested {
    levels_left: usize,
}

impl Nested {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        let levels_left = self
            .levels_left
            .checked_sub(1)
            .ok_or_else(|| E::custom(TOO_DEEP))?;
        Ok(Self { levels_left })
    }
}

impl<'de> DeserializeSeed<'de> for Nested {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, tokens: D) -> Result<Json, D::Error> {
        tokens.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value without floats")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Json, E> {
        Ok(Json::Bool(truth))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Json, E> {
        let fits = number.unsigned_abs() <= JSON_INT_MAX.unsigned_abs();
        if fits {
            Ok(Json::Int(number))
        } else {
            Err(E::custom(NOT_INTEGER))
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Json, E> {
        i64::try_from(number).map_or_else(|_| Err(E::custom(NOT_INTEGER)), |number| self.visit_i64(number))
    }

    /// `serde_json` reads `1.0`, `1e3`, `-0` and integers beyond 64 bits as floats.
    fn visit_f64<E: Error>(self, _number: f64) -> Result<Json, E> {
        Err(E::custom(NOT_INTEGER))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Str(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Json, E> {
        Ok(Json::Str(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Json, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let inner = self.deeper()?;
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            members.push((name, map.next_value_seed(inner)?));
        }
        let object = Object::from_unsorted(members).ok_or_else(|| A::Error::custom(DUPLICATE))?;
        Ok(Json::Object(object))
    }
}
