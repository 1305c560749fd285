//! The questions: each one statement on a connection that reads.

use aip_protocol::name::Name;

use super::readers::Readers;
use super::rows::{self, Bind, to_i64};
use super::statements;
use crate::agent::AgentSummary;
use crate::directory::{AgentRecord, Counts};
use crate::error::StoreError;
use crate::grants::{Invite, InviteId, TokenRecord};
use crate::secret::SecretHash;

pub(super) async fn agent(readers: &Readers, name: &Name) -> Result<Option<AgentRecord>, StoreError> {
    let values = [Bind::Text(name.as_str())];
    rows::agent_record(&readers.rows(statements::GET_AGENT, &values).await?)
}

pub(super) async fn history(
    readers: &Readers,
    name: &Name,
    from_seq: u64,
    limit: u32,
) -> Result<Vec<String>, StoreError> {
    let values = [
        Bind::Text(name.as_str()),
        Bind::Number(to_i64(from_seq)),
        Bind::Number(to_i64(limit)),
    ];
    let found = readers.rows(statements::GET_HISTORY, &values).await?;
    found.iter().map(|row| rows::column(row, "operation")).collect()
}

pub(super) async fn agents(
    readers: &Readers,
    after: Option<&Name>,
    limit: u32,
) -> Result<Vec<AgentSummary>, StoreError> {
    // No name is empty, so that the empty text comes before all.
    let values = [
        Bind::Text(after.map_or("", Name::as_str)),
        Bind::Number(to_i64(limit)),
    ];
    let found = readers.rows(statements::LIST_AGENTS, &values).await?;
    found.iter().map(rows::agent_summary).collect()
}

pub(super) async fn counts(readers: &Readers) -> Result<Counts, StoreError> {
    let found = readers.rows(statements::COUNT_ALL, &[]).await?;
    let row = found
        .first()
        .ok_or_else(|| StoreError::Corrupt("a count has no row".to_owned()))?;
    Ok(Counts {
        agents: rows::count(row, "agents")?,
        suspended: rows::count(row, "suspended")?,
        deactivated: rows::count(row, "deactivated")?,
        tokens: rows::count(row, "tokens")?,
        invites: rows::count(row, "invites")?,
    })
}

pub(super) async fn token(readers: &Readers, hash: &SecretHash) -> Result<Option<TokenRecord>, StoreError> {
    let hex = hash.to_hex();
    let found = readers.rows(statements::FIND_TOKEN, &[Bind::Text(&hex)]).await?;
    let Some(row) = found.first() else {
        return Ok(None);
    };
    let stored: String = rows::column(row, "hash")?;
    let same = SecretHash::from_hex(&stored).is_some_and(|stored| stored.matches(hash));
    if same {
        rows::token_record(row).map(Some)
    } else {
        Ok(None)
    }
}

pub(super) async fn invites(
    readers: &Readers,
    after: Option<&InviteId>,
    limit: u32,
) -> Result<Vec<Invite>, StoreError> {
    let values = [
        Bind::Text(after.map_or("", InviteId::as_str)),
        Bind::Number(to_i64(limit)),
    ];
    let found = readers.rows(statements::LIST_INVITES, &values).await?;
    found.iter().map(rows::invite).collect()
}
