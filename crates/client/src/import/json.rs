//! JSON of strangers: numbers stay text, and no member is read that is not asked for.

use std::fmt;

use aip_protocol::json::{Json, Object};
use aip_protocol::limits::JSON_INT_MAX;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::price;
use crate::limits::{IMPORT_LEVELS_MAX, IMPORT_ROW_BYTES_MAX, IMPORT_ROWS_MAX};

/// A value whose numbers are as they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Loose {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

/// The members of an object, in their order, unread.
struct Members<'a>(Vec<(String, &'a RawValue)>);

/// The items of an array, unread.
struct Items<'a>(Vec<&'a RawValue>);

impl Loose {
    /// Reads one row; the reason why not is for people.
    pub(super) fn read(raw: &RawValue) -> Result<Self, String> {
        if raw.get().len() > IMPORT_ROW_BYTES_MAX {
            return Err(format!(
                "it has {} bytes, at most {IMPORT_ROW_BYTES_MAX} are read",
                raw.get().len()
            ));
        }
        read(raw, IMPORT_LEVELS_MAX)
    }

    /// The member of this name.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// The first of these members that says something.
    pub(super) fn first(&self, names: &[&str]) -> Option<&Self> {
        names
            .iter()
            .find_map(|name| self.get(name).filter(|value| !matches!(value, Self::Null)))
    }

    /// The text of a string, or a number as it was written.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Number(text) => Some(text),
            _ => None,
        }
    }

    /// The text of the first of these members that is text or a number.
    pub(super) fn text_of(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name).and_then(Self::text))
    }

    /// What an attribute can hold: text, whole numbers and truth; a fraction becomes text.
    pub(super) fn plain(&self) -> Option<Json> {
        match self {
            Self::Bool(truth) => Some(Json::Bool(*truth)),
            Self::Text(text) => Some(Json::Str(text.clone())),
            Self::Number(number) => Some(whole(number).map_or_else(|| Json::Str(number.clone()), Json::Int)),
            _ => None,
        }
    }

    /// The same as a signed object may hold it. A member with a number that is no integer is left out, and its path is
    /// written down: without it a schema allows more, never less.
    pub(super) fn to_json(&self, path: &str, left_out: &mut Vec<String>) -> Option<Json> {
        Some(match self {
            Self::Null => Json::Null,
            Self::Bool(truth) => Json::Bool(*truth),
            Self::Text(text) => Json::Str(text.clone()),
            Self::Number(number) => Json::Int(whole(number)?),
            Self::Array(items) => {
                let items: Option<Vec<Json>> =
                    items.iter().map(|item| item.to_json(path, left_out)).collect();
                Json::Array(items?)
            }
            Self::Object(members) => {
                let mut object = Object::new();
                for (name, value) in members {
                    let path = format!("{path}/{name}");
                    match value.to_json(&path, left_out) {
                        Some(value) => drop(object.insert(name.as_str(), value)),
                        None => left_out.push(path),
                    }
                }
                Json::Object(object)
            }
        })
    }
}

/// An integer that a signed object may hold, `5.0` and `1e3` among them.
fn whole(number: &str) -> Option<i64> {
    let (sign, digits) = number
        .strip_prefix('-')
        .map_or((1, number), |digits| (-1, digits));
    let written_out = price::scientific(digits);
    let digits = written_out.as_deref().unwrap_or(digits);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_whole = fraction.bytes().all(|digit| digit == b'0');
    let whole: i64 = whole.parse().ok().filter(|_| is_whole)?;
    (whole <= JSON_INT_MAX).then_some(sign * whole)
}

fn read(raw: &RawValue, levels_left: usize) -> Result<Loose, String> {
    let deeper = || {
        let too_deep = || format!("it is nested deeper than {IMPORT_LEVELS_MAX} levels");
        levels_left.checked_sub(1).ok_or_else(too_deep)
    };
    match shape(raw).map_err(|error| said(&error))? {
        Shape::Object(members) => {
            let levels_left = deeper()?;
            let read = |(name, raw)| read(raw, levels_left).map(|value| (name, value));
            let members: Vec<(String, Loose)> = members.into_iter().map(read).collect::<Result<_, _>>()?;
            unique(&members).map(|()| Loose::Object(members))
        }
        Shape::Array(items) => {
            let levels_left = deeper()?;
            let items: Result<_, _> = items.into_iter().map(|item| read(item, levels_left)).collect();
            items.map(Loose::Array)
        }
        Shape::Scalar => scalar(raw.get()),
    }
}

fn scalar(text: &str) -> Result<Loose, String> {
    match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str(text)
            .map(Loose::Text)
            .map_err(|error| said(&error)),
        Some(b't') => Ok(Loose::Bool(true)),
        Some(b'f') => Ok(Loose::Bool(false)),
        Some(b'n') => Ok(Loose::Null),
        _ => Ok(Loose::Number(text.to_owned())),
    }
}

/// A name that comes twice may mean one thing here and another elsewhere.
fn unique(members: &[(String, Loose)]) -> Result<(), String> {
    let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    match names.array_windows().find(|[one, other]| one == other) {
        Some([name, _]) => Err(format!("the member `{}` comes twice", super::row::short(name))),
        None => Ok(()),
    }
}

fn said(error: &serde_json::Error) -> String {
    format!("it is not JSON: {error}")
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                    bounded(members.len())?;
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Items<'de>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                    bounded(items.len())?;
                }
                Ok(Items(items))
            }
        }

        deserializer.deserialize_seq(Reader)
    }
}

/// An array or object of a document holds no more than a document may hold rows.
fn bounded<E: serde::de::Error>(count: usize) -> Result<(), E> {
    if count > IMPORT_ROWS_MAX {
        return Err(E::custom(format_args!(
            "an array or object holds more than {IMPORT_ROWS_MAX} values"
        )));
    }
    Ok(())
}

/// The values of a text: one, or one a line. One more than are read at most.
pub(super) fn values(text: &str) -> Result<Vec<&RawValue>, serde_json::Error> {
    serde_json::Deserializer::from_str(text)
        .into_iter()
        .take(IMPORT_ROWS_MAX + 1)
        .collect()
}

/// What a value holds, unread.
pub(super) enum Shape<'a> {
    Array(Vec<&'a RawValue>),
    Object(Vec<(String, &'a RawValue)>),
    Scalar,
}

/// Looks one level into a value.
pub(super) fn shape(raw: &RawValue) -> Result<Shape<'_>, serde_json::Error> {
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'[') => serde_json::from_str(text).map(|Items(items)| Shape::Array(items)),
        Some(b'{') => serde_json::from_str(text).map(|Members(members)| Shape::Object(members)),
        _ => Ok(Shape::Scalar),
    }
}
