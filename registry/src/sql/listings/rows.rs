//! Listings and providers from rows.

use aip_protocol::json::Json;
use aip_protocol::name::Did;
use sqlx::any::AnyRow;

use crate::error::StoreError;
use crate::listings::{Origin, Provider, StoredListing};
use crate::sql::rows::{column, number, optional_time, time};

fn agent(row: &AnyRow) -> Result<Did, StoreError> {
    let text: String = column(row, "agent")?;
    Did::parse(&text).map_err(|_refusal| StoreError::Corrupt(format!("{text:?} is not a DID")))
}

/// How flags are written.
pub(super) fn flags_text(flags: &[String]) -> String {
    Json::Array(flags.iter().map(|flag| Json::from(flag.as_str())).collect()).to_string()
}

fn flags(row: &AnyRow) -> Result<Vec<String>, StoreError> {
    let text: String = column(row, "flags")?;
    if text == "[]" {
        return Ok(Vec::new());
    }
    let words = || {
        let flags = Json::parse(text.as_bytes()).ok()?;
        let words = flags
            .as_array()?
            .iter()
            .map(|flag| flag.as_str().map(str::to_owned));
        words.collect::<Option<Vec<_>>>()
    };
    words().ok_or_else(|| StoreError::Corrupt(format!("{text:?} are not flags")))
}

fn digest(row: &AnyRow) -> Result<[u8; 32], StoreError> {
    let (text, mut digest) = (column::<&str>(row, "digest")?, [0; 32]);
    hex::decode_to_slice(text, &mut digest)
        .map_err(|_not_hex| StoreError::Corrupt(format!("{text:?} is not a digest")))?;
    Ok(digest)
}

fn origin(row: &AnyRow) -> Result<Origin, StoreError> {
    let (provider, hub): (Option<String>, Option<String>) = (column(row, "provider")?, column(row, "hub")?);
    Ok(match (provider, hub) {
        (_, Some(hub)) => Origin::Peer { hub },
        (Some(provider), None) => Origin::Ingested { provider },
        (None, None) => Origin::Signed,
    })
}

pub(super) fn stored_listing(row: &AnyRow) -> Result<StoredListing, StoreError> {
    Ok(StoredListing {
        id: column(row, "id")?,
        number: number(row, "number")?,
        agent: agent(row)?,
        listing_id: column(row, "listing_id")?,
        version: number(row, "version")?,
        deleted: column::<i64>(row, "deleted")? != 0,
        json: column::<String>(row, "json")?.into_bytes(),
        digest: digest(row)?,
        origin: origin(row)?,
        flags: flags(row)?,
        change_seq: number(row, "change_seq")?,
        stored_at: time(row, "stored_at_ms")?,
        expires_at: optional_time(row, "expires_at_ms")?,
    })
}

pub(super) fn provider(row: &AnyRow) -> Result<Provider, StoreError> {
    Ok(Provider {
        id: column(row, "id")?,
        name: column(row, "name")?,
        agent: agent(row)?,
        created_at: time(row, "created_at_ms")?,
        revoked_at: optional_time(row, "revoked_at_ms")?,
        last_used_at: optional_time(row, "last_used_at_ms")?,
    })
}
