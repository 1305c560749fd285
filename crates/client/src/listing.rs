//! Listings as a hub answers about them (spec §9), and the key of a provider.

use std::fmt;
use std::io::Read as _;
use std::path::Path;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::Json;
use aip_protocol::listing::Offer;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::limits::PROVIDER_KEY_BYTES_MAX;

/// What became of a listing that was published or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Published {
    /// The hub's id of the listing: that of search results.
    pub id: String,
    /// The version that the hub holds now.
    pub version: u64,
    /// `stored`, `unchanged` or `deleted`.
    pub status: String,
    /// What is unusual about it, such as `invisible_characters`; it is taken all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Why nobody finds it: `quarantined` until the hub's operator has looked at it, or `rejected`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

/// A listing that a hub holds.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HeldListing {
    /// The hub's id of it.
    pub id: String,
    /// Its version.
    pub version: u64,
    /// What is unusual about it.
    pub flags: Vec<String>,
    /// Why nobody finds it: `quarantined` until the hub's operator has looked at it, or `rejected`.
    pub held: Option<String>,
    /// When its description became another one, lately, as the hub tells.
    pub description_changed: Option<ChangedWords>,
    /// When its schemas became others, lately, as the hub tells.
    pub schema_changed: Option<ChangedWords>,
    /// When the hub took this version.
    pub updated_at: Option<Timestamp>,
    /// Whose offer it is.
    pub agent: Did,
    /// What it says.
    pub offer: Offer,
    /// The whole listing.
    pub json: Json,
    /// Whether its agent said so.
    pub proof: Proof,
}

/// Words of a listing became others.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ChangedWords {
    /// When.
    pub at: Timestamp,
    /// SHA-256 of what they were, in hexadecimal ([`aip_protocol::listing::Wording`]).
    pub previous_sha256: String,
}

/// What is known of who made a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Proof {
    /// It carries a signature that was not looked at: lists are not checked one by one.
    Unchecked,
    /// Its agent signed it, with a key that was good when the hub took it.
    Signed,
    /// Nobody signed it: the hub's operator let a provider speak for the agent.
    Ingested,
    /// It carries a signature that is not good, for this reason. It is not to be believed.
    Broken(String),
}

/// A page of an agent's listings.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ListingPage {
    /// The listings, by their ids.
    pub items: Vec<HeldListing>,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
}

/// Why a listing is found, or is not.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ListingStatus {
    /// The hub's id of the listing.
    pub id: String,
    /// What the hub says of it, by name.
    #[serde(flatten)]
    pub facts: Map<String, Value>,
}

/// What became of many listings that were handed in with a provider's key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IngestReport {
    /// Rows that are stored now, and were not before.
    pub stored: u64,
    /// Rows that say what the hub held already.
    pub unchanged: u64,
    /// Rows that took a listing away.
    pub deleted: u64,
    /// Rows that were refused.
    pub refused: u64,
    /// Each row, in order.
    pub rows: Vec<IngestRow>,
}

/// What became of one of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct IngestRow {
    /// Its number among those that were handed in, from 1.
    pub row: u64,
    /// The provider's id of the listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listing_id: Option<String>,
    /// The hub's id of the listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The version that the hub holds now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// `stored`, `unchanged`, `deleted` or `refused`.
    pub status: String,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The same in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The member that is at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// What is unusual about it; it is taken all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Why nobody finds it: `quarantined` until the hub's operator has looked at it, or `rejected`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

impl IngestReport {
    /// Takes the rows of one request in, which follow those of the requests before.
    pub(crate) fn extend(&mut self, rows: Vec<IngestRow>) {
        let before = self.rows.len() as u64;
        for mut row in rows {
            row.row += before;
            match row.status.as_str() {
                "stored" => self.stored += 1,
                "unchanged" => self.unchanged += 1,
                "deleted" => self.deleted += 1,
                _ => self.refused += 1,
            }
            self.rows.push(row);
        }
    }
}

/// The key with which a provider hands listings in, for the agent that the hub's operator made it for. Wiped when dropped.
#[derive(Clone)]
pub struct ProviderKey(Zeroizing<String>);

impl ProviderKey {
    /// The key as the operator gave it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for what cannot stand in a header.
    pub fn new(key: &str) -> Result<Self> {
        let key = key.trim();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            let detail = "a provider key is one word of letters, digits and signs";
            return Err(Refusal::new(ErrorCode::TokenInvalid, detail).into());
        }
        Ok(Self(Zeroizing::new(key.to_owned())))
    }

    /// The key in a file of its own.
    ///
    /// # Errors
    /// [`Error::File`] for a file that cannot be read, and those of [`ProviderKey::new`].
    pub fn read(path: &Path) -> Result<Self> {
        let mut text = Zeroizing::new(String::new());
        let file = std::fs::File::open(path).map_err(Error::file(path))?;
        file.take(PROVIDER_KEY_BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(Error::file(path))?;
        Self::new(&text)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ProviderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderKey")
    }
}

/// A listing on the wire.
#[derive(Debug, Deserialize)]
pub(crate) struct HeldAnswer {
    pub(crate) id: String,
    pub(crate) version: u64,
    #[serde(default)]
    pub(crate) flags: Vec<String>,
    #[serde(default)]
    pub(crate) held: Option<String>,
    #[serde(default)]
    pub(crate) description_changed: Option<ChangedWords>,
    #[serde(default)]
    pub(crate) schema_changed: Option<ChangedWords>,
    #[serde(default)]
    pub(crate) updated_at: Option<Timestamp>,
    pub(crate) listing: Box<RawValue>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct HeldPage {
    pub(crate) items: Vec<HeldAnswer>,
    #[serde(default)]
    pub(crate) next_cursor: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct IngestAnswer {
    pub(crate) rows: Vec<IngestRow>,
}

impl HeldAnswer {
    /// Reads the listing; its signature is still to be looked at.
    pub(crate) fn read(self) -> Result<HeldListing, Refusal> {
        let json = Json::parse(self.listing.get().as_bytes())?;
        let agent = json.get("agent").and_then(Json::as_str).unwrap_or_default();
        Ok(HeldListing {
            id: self.id,
            version: self.version,
            flags: self.flags,
            held: self.held,
            description_changed: self.description_changed,
            schema_changed: self.schema_changed,
            updated_at: self.updated_at,
            agent: Did::parse(agent)?,
            offer: Offer::from_json(&json)?,
            proof: if json.get("sig").is_some() {
                Proof::Unchecked
            } else {
                Proof::Ingested
            },
            json,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_key_is_one_word_and_is_never_shown() {
        let key = ProviderKey::new(" pk-secret \n").unwrap();
        assert_eq!(
            (key.as_str(), format!("{key:?}")),
            ("pk-secret", "ProviderKey".to_owned())
        );
        for key in ["", " \n", "two words", "a\r\nX-Header: b", "schlüssel"] {
            let refused = ProviderKey::new(key).unwrap_err().to_string();
            assert!(
                key.trim().is_empty() || !refused.contains(key.trim()),
                "{refused}"
            );
        }
    }

    #[test]
    fn rows_of_several_requests_are_counted_on() {
        let row = |row, status: &str| IngestRow {
            row,
            listing_id: None,
            id: None,
            version: None,
            status: status.to_owned(),
            code: None,
            detail: None,
            member: None,
            flags: Vec::new(),
            held: None,
        };
        let mut report = IngestReport::default();
        report.extend(vec![row(1, "stored"), row(2, "unchanged")]);
        report.extend(vec![row(1, "refused"), row(2, "stored"), row(3, "deleted")]);
        let numbers: Vec<u64> = report.rows.iter().map(|row| row.row).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        assert_eq!(
            (report.stored, report.unchanged, report.deleted, report.refused),
            (2, 1, 1, 1)
        );
    }
}
