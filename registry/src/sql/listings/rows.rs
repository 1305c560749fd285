//! Listings and providers from rows.

use aip_protocol::json::{Json, Object};
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use sqlx::any::AnyRow;

use crate::error::StoreError;
use crate::listings::{Origin, Provider, Review, Rewording, Said, StoredListing, Trail, Verdict};
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
    let text = column::<&str>(row, "digest")?;
    hash(text).ok_or_else(|| StoreError::Corrupt(format!("{text:?} is not a digest")))
}

fn hash(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    hex::decode_to_slice(text, &mut hash).ok()?;
    Some(hash)
}

/// How what is known of earlier versions is written; the review has a column of its own.
pub(super) fn trail_text(trail: &Trail) -> String {
    let mut object = Object::new();
    for (name, rewording) in [("description", trail.description), ("schemas", trail.schemas)] {
        if let Some(Rewording { at, before }) = rewording {
            let at_ms = Json::Int(at.unix_millis());
            object.insert(name, [("at_ms", at_ms), ("before", hex::encode(before).into())]);
        }
    }
    if let Some(Said { description, schemas }) = trail.last {
        let said = [("description", description), ("schemas", schemas)];
        object.insert(
            "last",
            said.map(|(name, hash)| (name, Json::from(hex::encode(hash)))),
        );
    }
    if object.is_empty() {
        String::new()
    } else {
        Json::Object(object).to_string()
    }
}

fn trail(row: &AnyRow) -> Result<Trail, StoreError> {
    let text: String = column(row, "trail")?;
    let mut trail = if text.is_empty() {
        Trail::default()
    } else {
        read_trail(&text).ok_or_else(|| StoreError::Corrupt(format!("{text:?} is no trail")))?
    };
    let review: Option<String> = column(row, "review")?;
    if let Some(text) = review {
        let review = read_review(&text);
        trail.review = Some(review.ok_or_else(|| StoreError::Corrupt(format!("{text:?} is no review")))?);
    }
    Ok(trail)
}

/// `None` where it is none.
fn read_trail(text: &str) -> Option<Trail> {
    let json = Json::parse(text.as_bytes()).ok()?;
    let member_hash = |of: &Json, name: &str| of.get(name).and_then(Json::as_str).and_then(hash);
    let rewording = |name: &str| -> Option<Option<Rewording>> {
        let Some(of) = json.get(name) else {
            return Some(None);
        };
        let at = Timestamp::from_unix_millis(of.get("at_ms")?.as_int()?);
        Some(Some(Rewording {
            at,
            before: member_hash(of, "before")?,
        }))
    };
    let last = match json.get("last") {
        None => None,
        Some(of) => Some(Said {
            description: member_hash(of, "description")?,
            schemas: member_hash(of, "schemas")?,
        }),
    };
    Some(Trail {
        description: rewording("description")?,
        schemas: rewording("schemas")?,
        last,
        review: None,
    })
}

/// How an operator's verdict is written.
pub(super) fn review_text(review: Review) -> String {
    format!("{} {}", review.verdict.as_str(), hex::encode(review.texts))
}

fn read_review(text: &str) -> Option<Review> {
    let (verdict, texts) = text.split_once(' ')?;
    Some(Review {
        verdict: Verdict::parse(verdict)?,
        texts: hash(texts)?,
    })
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
        trail: trail(row)?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trail_is_read_as_it_was_written() {
        let at = Timestamp::from_unix_millis(1_795_000_000_123);
        let full = Trail {
            description: Some(Rewording { at, before: [1; 32] }),
            schemas: Some(Rewording { at, before: [2; 32] }),
            last: Some(Said {
                description: [3; 32],
                schemas: [4; 32],
            }),
            review: None,
        };
        assert_eq!(read_trail(&trail_text(&full)), Some(full));
        assert_eq!(trail_text(&Trail::default()), "");
        for wrong in [
            "x",
            "[]x",
            r#"{"description":{"at_ms":1}}"#,
            r#"{"last":{"description":"00"}}"#,
        ] {
            assert_eq!(read_trail(wrong), None, "{wrong}");
        }
        let review = Review {
            verdict: Verdict::Rejected,
            texts: [5; 32],
        };
        assert_eq!(read_review(&review_text(review)), Some(review));
        assert_eq!(read_review("rejected"), None);
    }
}
