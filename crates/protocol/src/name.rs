//! Names, domains, handles and DIDs (§1).
//!
//! What people read is a handle, `alice#aigentix.org`; what machines store is a DID,
//! `did:aip:aigentix.org:alice`. Both parse into canonical forms once and compare byte for byte.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::error::{ErrorCode, Refusal};
use crate::limits::NAME_BYTES_MAX;

mod did;
mod domain;
mod handle;

pub use did::Did;
pub use domain::Domain;
pub use handle::Handle;

/// Everything but the unreserved characters of RFC 3986 §2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The name of a hub's own agent: reserved for everybody else (§1).
pub const HUB_NAME: &str = "hub";

/// Names that nobody registers; the operator may add more.
const RESERVED_NAMES: [&str; 12] = [
    "admin",
    "administrator",
    "root",
    HUB_NAME,
    "postmaster",
    "abuse",
    "security",
    "connect",
    "api",
    "relay",
    "well-known",
    "www",
];

/// Parse, print, compare and serialize as text.
macro_rules! text_type {
    ($kind:ident, $read:ident) => {
        impl std::fmt::Debug for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl std::str::FromStr for $kind {
            type Err = crate::error::Refusal;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::$read(text)
            }
        }

        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $kind {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'_, str> as serde::Deserialize>::deserialize(deserializer)?;
                Self::$read(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}
use text_type;

/// The name of an agent within its domain: `[a-z0-9]`, then up to 62 of `[a-z0-9._-]`, ending in
/// `[a-z0-9]`, without `..`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

text_type!(Name, parse);

impl Name {
    /// Lower-cases ASCII letters, then takes only the form above; else `name_invalid`.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let lowered = text.to_ascii_lowercase();
        if is_name(&lowered) {
            return Ok(Self(lowered));
        }
        let detail = "a name is 1 to 63 of a-z, 0-9, '.', '_' and '-', starts and ends with a letter or \
                      digit, and holds no '..'";
        Err(Refusal::new(ErrorCode::NameInvalid, detail))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the protocol keeps this name from being registered.
    pub fn is_reserved(&self) -> bool {
        RESERVED_NAMES.contains(&self.as_str())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_name(text: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [text.bytes().next(), text.bytes().last()];
    text.len() <= NAME_BYTES_MAX
        && ends.into_iter().all(|end| end.is_some_and(is_alphanumeric))
        && text
            .bytes()
            .all(|byte| is_alphanumeric(byte) || matches!(byte, b'.' | b'_' | b'-'))
        && !text.contains("..")
}

/// Reads a handle or a DID as a path segment, or the value of `?id=`, carries it.
///
/// `segment` is still percent-encoded; it is decoded exactly once, here. What is still encoded
/// after that (`alice%2523…`) is `handle_invalid`; a bare name is `handle_domain_missing`.
pub fn parse_identifier(segment: &str) -> Result<Handle, Refusal> {
    let text = decode_once(segment)?;
    if text.starts_with("did:") {
        return Did::parse_input(&text).map(|did| did.handle());
    }
    if text.contains('%') {
        let detail = "the identifier was percent-encoded twice; encode it once, as name%23domain";
        return Err(Refusal::new(ErrorCode::HandleInvalid, detail));
    }
    Handle::parse(&text)
}

fn decode_once(text: &str) -> Result<Cow<'_, str>, Refusal> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map_err(|_utf8| {
        Refusal::new(
            ErrorCode::HandleInvalid,
            "the percent-encoded bytes are not UTF-8",
        )
    })
}

fn percent_encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests;
