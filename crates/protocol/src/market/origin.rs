//! Whose key a receipt is verified with: that of the hub that made the call, which need not be the hub that was asked.
//!
//! No I/O: this says which addresses to ask, remembers what was found, and after a look-up that failed when to ask again.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use url::Url;

use super::signature::parse_key;
use super::value::Value;
use crate::error::{ErrorCode, Refusal};
use crate::limits::{ORIGIN_BYTES_MAX, ORIGIN_RETRY_SECS, ORIGINS_REMEMBERED_MAX};
use crate::members::invalid;
use crate::multikey::VerifyingKey;
use crate::time::Timestamp;

/// Where AIMarket's discovery document is, below an origin.
const DISCOVERY_PATH: &str = "/.well-known/ai-market.json";

/// The address of a hub: scheme, host, port and perhaps a path; nothing that steers a request elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(String);

impl Origin {
    /// Reads a `source_hub`: nothing and `local` are the hub that was asked, `hub_url`. Credentials, query and fragment of an
    /// address are left out: with them, whoever wrote it would choose the path that is asked, or whom to log in as.
    ///
    /// # Errors
    /// `member_invalid` unless it is an `http` or `https` address of at most 1024 bytes.
    pub fn of(source_hub: &str, hub_url: &str) -> Result<Self, Refusal> {
        let text = match source_hub.trim() {
            "" | "local" => hub_url,
            source_hub => source_hub,
        };
        Self::parse(text).ok_or_else(|| invalid("source_hub", "is an http or https URL, or 'local'"))
    }

    fn parse(text: &str) -> Option<Self> {
        let text = Some(text).filter(|text| text.len() <= ORIGIN_BYTES_MAX)?;
        let mut url = Url::parse(text).ok()?;
        if !matches!(url.scheme(), "http" | "https") {
            return None;
        }
        url.set_username("").ok()?;
        url.set_password(None).ok()?;
        url.set_query(None);
        url.set_fragment(None);
        Some(Self(url.as_str().trim_end_matches('/').to_owned()))
    }

    /// The address.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where its discovery document may be, the most specific address first: a hub may be below a path.
    pub fn discovery_urls(&self) -> Vec<String> {
        let root = Url::parse(&self.0).map(|url| url.origin().ascii_serialization());
        let root = root.ok().filter(|root| *root != self.0);
        std::iter::once(self.0.clone())
            .chain(root)
            .map(|base| format!("{base}{DISCOVERY_PATH}"))
            .collect()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key that a discovery document publishes: `signer_public_key`, with older ones `public_key`.
///
/// # Errors
/// `key_invalid` when it publishes none, or one that is no good key.
pub fn published_key(document: &Value) -> Result<VerifyingKey, Refusal> {
    let text = ["signer_public_key", "public_key"]
        .iter()
        .find_map(|name| document.get(name).and_then(Value::as_str));
    match text {
        Some(text) => parse_key(text),
        None => Err(Refusal::new(
            ErrorCode::KeyInvalid,
            "the document publishes no signer_public_key",
        )),
    }
}

/// What is known of the keys of origins. Bounded: beyond so many, what was found first is forgotten first.
#[derive(Debug, Default)]
pub struct OriginKeys {
    known: BTreeMap<Origin, (Timestamp, VerifyingKey)>,
    missed: BTreeMap<Origin, Timestamp>,
}

/// What is known of an origin's key.
#[expect(clippy::large_enum_variant, reason = "it is looked at once, and never kept")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// It is this one.
    Known(VerifyingKey),
    /// Nothing: ask [`Origin::discovery_urls`].
    Unknown,
    /// Asking failed less than a minute ago: what it has signed is not checked.
    Missed,
}

impl OriginKeys {
    /// What is known of this origin's key.
    pub fn look_up(&self, origin: &Origin, now: Timestamp) -> Lookup {
        let retry = Duration::from_secs(ORIGIN_RETRY_SECS);
        match (self.known.get(origin), self.missed.get(origin)) {
            (Some((_, key)), _) => Lookup::Known(key.clone()),
            (None, Some(missed_at)) if now < *missed_at + retry => Lookup::Missed,
            (None, _) => Lookup::Unknown,
        }
    }

    /// Its key was found.
    pub fn found(&mut self, origin: Origin, key: VerifyingKey, now: Timestamp) {
        self.missed.remove(&origin);
        self.known.insert(origin, (now, key));
        bound(&mut self.known, |(found_at, _)| *found_at);
    }

    /// Its key could not be had.
    pub fn missed(&mut self, origin: Origin, now: Timestamp) {
        self.missed.insert(origin, now);
        bound(&mut self.missed, |missed_at| *missed_at);
    }
}

/// Forgets the oldest when there is one too many.
fn bound<V>(entries: &mut BTreeMap<Origin, V>, age: impl Fn(&V) -> Timestamp) {
    if entries.len() <= ORIGINS_REMEMBERED_MAX {
        return;
    }
    let oldest = entries
        .iter()
        .min_by_key(|(_, entry)| age(entry))
        .map(|(origin, _)| origin.clone());
    if let Some(oldest) = oldest {
        entries.remove(&oldest);
    }
}
