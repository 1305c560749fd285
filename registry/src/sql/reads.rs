//! The questions: each one statement on a connection of the reading pool.

use aip_protocol::name::Name;
use sqlx::AnyPool;

use super::rows::{self, to_i64};
use super::statements;
use super::writer::unavailable;
use crate::agent::AgentSummary;
use crate::directory::{AgentRecord, Counts};
use crate::error::StoreError;
use crate::grants::{Invite, InviteId, TokenRecord};
use crate::secret::SecretHash;

pub(super) async fn agent(pool: &AnyPool, name: &Name) -> Result<Option<AgentRecord>, StoreError> {
    let query = sqlx::query(statements::GET_AGENT).bind(name.as_str());
    rows::agent_record(&query.fetch_all(pool).await.map_err(unavailable)?)
}

pub(super) async fn history(
    pool: &AnyPool,
    name: &Name,
    from_seq: u64,
    limit: u32,
) -> Result<Vec<String>, StoreError> {
    let query = sqlx::query(statements::GET_HISTORY)
        .bind(name.as_str())
        .bind(to_i64(from_seq))
        .bind(to_i64(limit));
    let found = query.fetch_all(pool).await.map_err(unavailable)?;
    found.iter().map(|row| rows::column(row, "operation")).collect()
}

pub(super) async fn agents(
    pool: &AnyPool,
    after: Option<&Name>,
    limit: u32,
) -> Result<Vec<AgentSummary>, StoreError> {
    // No name is empty, so that the empty text comes before all.
    let query = sqlx::query(statements::LIST_AGENTS)
        .bind(after.map_or("", Name::as_str))
        .bind(to_i64(limit));
    query
        .fetch_all(pool)
        .await
        .map_err(unavailable)?
        .iter()
        .map(rows::agent_summary)
        .collect()
}

pub(super) async fn counts(pool: &AnyPool) -> Result<Counts, StoreError> {
    let row = sqlx::query(statements::COUNT_ALL)
        .fetch_one(pool)
        .await
        .map_err(unavailable)?;
    Ok(Counts {
        agents: rows::count(&row, "agents")?,
        suspended: rows::count(&row, "suspended")?,
        deactivated: rows::count(&row, "deactivated")?,
        tokens: rows::count(&row, "tokens")?,
        invites: rows::count(&row, "invites")?,
    })
}

pub(super) async fn token(pool: &AnyPool, hash: &SecretHash) -> Result<Option<TokenRecord>, StoreError> {
    let query = sqlx::query(statements::FIND_TOKEN).bind(hash.to_hex());
    let Some(row) = query.fetch_optional(pool).await.map_err(unavailable)? else {
        return Ok(None);
    };
    let stored: String = rows::column(&row, "hash")?;
    let same = SecretHash::from_hex(&stored).is_some_and(|stored| stored.matches(hash));
    if same {
        rows::token_record(&row).map(Some)
    } else {
        Ok(None)
    }
}

pub(super) async fn invites(
    pool: &AnyPool,
    after: Option<&InviteId>,
    limit: u32,
) -> Result<Vec<Invite>, StoreError> {
    let query = sqlx::query(statements::LIST_INVITES)
        .bind(after.map_or("", InviteId::as_str))
        .bind(to_i64(limit));
    query
        .fetch_all(pool)
        .await
        .map_err(unavailable)?
        .iter()
        .map(rows::invite)
        .collect()
}
