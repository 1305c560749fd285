//! AIMarket's two JSON texts, and their SHA-256: `json.dumps(…, sort_keys=True, ensure_ascii=False)` of Python.
//!
//! Names in the order of code points, letters raw, numbers as Python prints them. A manifest's digests are over the text
//! with spaces after commas and colons, everything else is over the compact one. Strings are escaped as `serde_json` and
//! `json.dumps` both do: quotes, backslashes, and what is below a space as `\b \t \n \f \r` or `\u00xx`.

use sha2::{Digest as _, Sha256};

use super::value::{Members, Value};
use crate::json::write_compact;

/// What stands between the parts.
#[derive(Clone, Copy)]
struct Style {
    comma: &'static [u8],
    colon: &'static [u8],
}

const COMPACT: Style = Style {
    comma: b",",
    colon: b":",
};
const SPACED: Style = Style {
    comma: b", ",
    colon: b": ",
};

/// The text without spaces.
pub fn compact(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write(&mut out, value, COMPACT);
    out
}

/// The compact text of an object.
pub(super) fn compact_members<'a>(members: impl Iterator<Item = (&'a str, &'a Value)>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write_members(&mut out, members, COMPACT);
    out
}

/// The text with a space after each comma and colon.
pub fn spaced(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write(&mut out, value, SPACED);
    out
}

/// SHA-256 in lower-case hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let nibbles = Sha256::digest(bytes)
        .into_iter()
        .flat_map(|byte| [byte >> 4, byte & 0xf]);
    nibbles
        .filter_map(|nibble| DIGITS.get(usize::from(nibble)).copied().map(char::from))
        .collect()
}

fn write(out: &mut Vec<u8>, value: &Value, style: Style) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Value::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Str(text) => write_compact(out, text),
        Value::Array(items) => write_items(out, items, style),
        Value::Object(members) => write_members(out, pairs(members), style),
    }
}

/// The members by name.
pub(super) fn pairs(members: &Members) -> impl Iterator<Item = (&str, &Value)> {
    members.iter().map(|(name, value)| (name.as_str(), value))
}

fn write_items(out: &mut Vec<u8>, items: &[Value], style: Style) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(style.comma);
        }
        write(out, item, style);
    }
    out.push(b']');
}

fn write_members<'a>(out: &mut Vec<u8>, members: impl Iterator<Item = (&'a str, &'a Value)>, style: Style) {
    out.push(b'{');
    for (index, (name, value)) in members.enumerate() {
        if index > 0 {
            out.extend_from_slice(style.comma);
        }
        write_compact(out, name);
        out.extend_from_slice(style.colon);
        write(out, value, style);
    }
    out.push(b'}');
}
