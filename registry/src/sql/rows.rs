//! Between Rust values and the two column types that every dialect has: text and 64-bit integers.

use aip_protocol::name::Name;
use aip_protocol::time::Timestamp;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, Row};

use crate::agent::{AgentSummary, QuotaOverride, Standing};
use crate::directory::AgentRecord;
use crate::error::StoreError;
use crate::grants::{Invite, InviteId, TokenRecord};

/// What stands for a placeholder.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bind<'a> {
    Text(&'a str),
    Number(i64),
    OptionalText(Option<&'a str>),
    OptionalNumber(Option<i64>),
}

/// Whether there can be a row with these values: a text with NUL is never kept, and PostgreSQL fails where it is asked for one.
pub(super) fn can_be_there(values: &[Bind<'_>]) -> bool {
    !values.iter().any(|value| match value {
        Bind::Text(text) | Bind::OptionalText(Some(text)) => text.contains('\0'),
        Bind::Number(_) | Bind::OptionalText(None) | Bind::OptionalNumber(_) => false,
    })
}

/// A statement with its values.
pub(super) fn query<'q>(statement: &'static str, values: &[Bind<'_>]) -> Query<'q, Any, AnyArguments> {
    let query = sqlx::query(statement);
    values.iter().fold(query, |query, value| match *value {
        Bind::Text(text) => query.bind(text.to_owned()),
        Bind::Number(number) => query.bind(number),
        Bind::OptionalText(text) => query.bind(text.map(str::to_owned)),
        Bind::OptionalNumber(number) => query.bind(number),
    })
}

/// Reads a column; a column of another type means that the schema is not ours.
pub(super) fn column<'r, T>(row: &'r AnyRow, name: &str) -> Result<T, StoreError>
where
    T: sqlx::Decode<'r, sqlx::Any> + sqlx::Type<sqlx::Any>,
{
    row.try_get(name)
        .map_err(|e| StoreError::Corrupt(format!("column {name}: {e}")))
}

/// A row that cannot be read, within a change.
pub(super) fn broken(error: StoreError) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(error))
}

/// Counts are never negative, and never beyond 2^63.
pub(super) fn to_i64(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

pub(super) fn number<T: TryFrom<i64>>(row: &AnyRow, name: &str) -> Result<T, StoreError> {
    let value: i64 = column(row, name)?;
    T::try_from(value).map_err(|_out_of_range| StoreError::Corrupt(format!("column {name} holds {value}")))
}

pub(super) fn optional_number(row: &AnyRow, name: &str) -> Result<Option<u64>, StoreError> {
    let value: Option<i64> = column(row, name)?;
    Ok(value.and_then(|v| u64::try_from(v).ok()))
}

pub(super) fn time(row: &AnyRow, name: &str) -> Result<Timestamp, StoreError> {
    Ok(Timestamp::from_unix_millis(column(row, name)?))
}

pub(super) fn optional_time(row: &AnyRow, name: &str) -> Result<Option<Timestamp>, StoreError> {
    Ok(column::<Option<i64>>(row, name)?.map(Timestamp::from_unix_millis))
}

fn agent_name(row: &AnyRow) -> Result<Name, StoreError> {
    let text: String = column(row, "name")?;
    Name::parse(&text).map_err(|_refusal| StoreError::Corrupt(format!("{text:?} is not a name")))
}

fn invite_id(text: &str) -> Result<InviteId, StoreError> {
    InviteId::parse(text).ok_or_else(|| StoreError::Corrupt(format!("{text:?} is not the id of an invite")))
}

/// How a standing is written.
pub(super) fn standing_text(standing: Standing) -> &'static str {
    match standing {
        Standing::Active => "active",
        Standing::Suspended => "suspended",
    }
}

fn standing(row: &AnyRow) -> Result<Standing, StoreError> {
    match column::<&str>(row, "standing")? {
        "active" => Ok(Standing::Active),
        "suspended" => Ok(Standing::Suspended),
        other => Err(StoreError::Corrupt(format!("{other:?} is not a standing"))),
    }
}

fn quota(row: &AnyRow) -> Result<QuotaOverride, StoreError> {
    Ok(QuotaOverride {
        mailbox_messages: optional_number(row, "mailbox_messages")?,
        mailbox_bytes: optional_number(row, "mailbox_bytes")?,
        sender_messages: optional_number(row, "sender_messages")?,
    })
}

/// An agent from one row for each of its operations; `None` without rows.
pub(super) fn agent_record(rows: &[AnyRow]) -> Result<Option<AgentRecord>, StoreError> {
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    Ok(Some(AgentRecord {
        head: column(first, "head")?,
        operations: rows
            .iter()
            .map(|row| column(row, "operation"))
            .collect::<Result<_, _>>()?,
        standing: standing(first)?,
        quota: quota(first)?,
        registered_at: time(first, "registered_at_ms")?,
    }))
}

pub(super) fn agent_summary(row: &AnyRow) -> Result<AgentSummary, StoreError> {
    let invite: Option<String> = column(row, "invite")?;
    Ok(AgentSummary {
        name: agent_name(row)?,
        seq: number(row, "seq")?,
        head: column(row, "head")?,
        standing: standing(row)?,
        quota: quota(row)?,
        registered_at: time(row, "registered_at_ms")?,
        deactivated_at: optional_time(row, "deactivated_at_ms")?,
        invite: invite.as_deref().map(invite_id).transpose()?,
    })
}

pub(super) fn token_record(row: &AnyRow) -> Result<TokenRecord, StoreError> {
    Ok(TokenRecord {
        name: agent_name(row)?,
        kid: column(row, "kid")?,
        issued_at: time(row, "issued_at_ms")?,
        expires_at: time(row, "expires_at_ms")?,
    })
}

pub(super) fn invite(row: &AnyRow) -> Result<Invite, StoreError> {
    Ok(Invite {
        id: invite_id(column(row, "id")?)?,
        note: column(row, "note")?,
        uses_max: number(row, "uses_max")?,
        uses_left: number(row, "uses_left")?,
        created_at: time(row, "created_at_ms")?,
        expires_at: optional_time(row, "expires_at_ms")?,
        revoked_at: optional_time(row, "revoked_at_ms")?,
    })
}

/// A column that counts.
pub(super) fn count(row: &AnyRow, name: &str) -> Result<u64, StoreError> {
    number(row, name)
}
