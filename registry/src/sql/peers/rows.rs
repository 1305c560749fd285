//! Peers and what is known of them from rows, and how some of it is written.

use aip_federation::peers::{AuditEntry, Evidence, Frozen, KnownHistory, PeerLimits, PeerRecord, Stance};
use aip_protocol::error::ErrorCode;
use aip_protocol::json::Json;
use aip_protocol::multikey::VerifyingKey;
use aip_protocol::name::{Did, Domain};
use sqlx::any::AnyRow;

use crate::error::StoreError;
use crate::peers::Window;
use crate::sql::rows::{column, count, number, optional_number, optional_time, time};

fn damaged(text: &str, what: &str) -> StoreError {
    StoreError::Corrupt(format!("{text:?} {what}"))
}

pub(super) fn domain(row: &AnyRow, name: &str) -> Result<Domain, StoreError> {
    let text: String = column(row, name)?;
    Domain::parse(&text).map_err(|_refusal| damaged(&text, "is not a domain"))
}

/// How keys are written.
pub(super) fn keys_text(keys: &[VerifyingKey]) -> String {
    let keys: Vec<_> = keys.iter().map(VerifyingKey::as_str).collect();
    keys.join(" ")
}

fn keys(row: &AnyRow) -> Result<Vec<VerifyingKey>, StoreError> {
    let text: String = column(row, "pinned")?;
    let keys = text.split(' ').filter(|key| !key.is_empty());
    let keys = keys.map(VerifyingKey::parse).collect::<Result<_, _>>();
    keys.map_err(|_refusal| damaged(&text, "are not keys"))
}

/// How a stance is written.
pub(super) fn stance_text(stance: Stance) -> &'static str {
    match stance {
        Stance::Undecided => "undecided",
        Stance::Allowed => "allowed",
        Stance::Blocked => "blocked",
        Stance::Limited => "limited",
    }
}

fn stance(row: &AnyRow) -> Result<Stance, StoreError> {
    match column::<&str>(row, "stance")? {
        "undecided" => Ok(Stance::Undecided),
        "allowed" => Ok(Stance::Allowed),
        "blocked" => Ok(Stance::Blocked),
        "limited" => Ok(Stance::Limited),
        other => Err(damaged(other, "is not a stance")),
    }
}

fn frozen(row: &AnyRow) -> Result<Option<Frozen>, StoreError> {
    let Some(code) = column::<Option<String>>(row, "frozen_code")? else {
        return Ok(None);
    };
    Ok(Some(Frozen {
        code,
        kid: column(row, "frozen_kid")?,
        since: time(row, "frozen_since_ms")?,
    }))
}

fn limits(row: &AnyRow) -> Result<PeerLimits, StoreError> {
    let small = |name| -> Result<_, StoreError> {
        Ok(optional_number(row, name)?.map(|number| u32::try_from(number).unwrap_or(u32::MAX)))
    };
    Ok(PeerLimits {
        items_per_sec: small("items_per_sec")?,
        bytes_per_sec: optional_number(row, "bytes_per_sec")?,
        queue_items: small("queue_items")?,
    })
}

fn json(text: &str) -> Result<Json, StoreError> {
    Json::parse(text.as_bytes()).map_err(|_refusal| damaged(text, "is not JSON"))
}

fn list(row: &AnyRow, name: &str) -> Result<Vec<Json>, StoreError> {
    let text: String = column(row, name)?;
    match json(&text)? {
        Json::Array(list) => Ok(list),
        _ => Err(damaged(&text, "is not a list")),
    }
}

pub(super) fn peer(row: &AnyRow) -> Result<PeerRecord, StoreError> {
    let document: Option<String> = column(row, "document")?;
    Ok(PeerRecord {
        domain: domain(row, "domain")?,
        pinned: keys(row)?,
        document: document.as_deref().map(json).transpose()?,
        fresh_until: optional_time(row, "fresh_until_ms")?,
        frozen: frozen(row)?,
        stance: stance(row)?,
        limits: limits(row)?,
        first_seen: time(row, "first_seen_ms")?,
        last_in: optional_time(row, "last_in_ms")?,
        last_out: optional_time(row, "last_out_ms")?,
        good_items: count(row, "good_items")?,
    })
}

pub(super) fn window(row: &AnyRow) -> Result<Window, StoreError> {
    let (floor, above): (_, String) = (count(row, "floor")?, column(row, "above")?);
    Window::read(floor, &above).ok_or_else(|| damaged(&above, "is not a window"))
}

pub(super) fn refusal(row: &AnyRow) -> Result<(u64, ErrorCode), StoreError> {
    let code: String = column(row, "code")?;
    let known = code.parse();
    Ok((
        number(row, "peer_seq")?,
        known.map_err(|_unknown| damaged(&code, "is not a code"))?,
    ))
}

pub(super) fn history(row: &AnyRow) -> Result<KnownHistory, StoreError> {
    let did: String = column(row, "did")?;
    Ok(KnownHistory {
        did: Did::parse(&did).map_err(|_refusal| damaged(&did, "is not a DID"))?,
        operations: list(row, "operations")?,
        fetched_at: time(row, "fetched_at_ms")?,
    })
}

pub(super) fn evidence(row: &AnyRow) -> Result<Evidence, StoreError> {
    Ok(Evidence {
        number: count(row, "number")?,
        peer: domain(row, "peer")?,
        code: column(row, "code")?,
        subject: column(row, "subject")?,
        objects: list(row, "objects")?,
        at: time(row, "at_ms")?,
    })
}

pub(super) fn audit_entry(row: &AnyRow) -> Result<AuditEntry, StoreError> {
    Ok(AuditEntry {
        number: count(row, "number")?,
        peer: domain(row, "peer")?,
        actor: column(row, "actor")?,
        action: column(row, "action")?,
        detail: column(row, "detail")?,
        at: time(row, "at_ms")?,
    })
}
