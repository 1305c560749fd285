//! A whole registry, row by row in order: copied into another database, and compared with it.

use std::fmt;

use sha2::{Digest as _, Sha256};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, SqlSafeStr};

use super::SqlStore;
use super::dialect::Role;
use super::tables::{Table, Value, tables};
use super::writer::unavailable;
use crate::error::StoreError;

/// What a registry holds, in a form that is the same for the same rows in every engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// Each table with the number of its rows.
    pub rows: Vec<(&'static str, u64)>,
    /// SHA-256 over all rows in the order of their keys, in hexadecimal.
    pub sha256: String,
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (table, rows) in &self.rows {
            write!(f, "{table} {rows}, ")?;
        }
        write!(f, "sha256 {}", self.sha256)
    }
}

impl SqlStore {
    /// Copies agents with their histories, standings and quotas, tokens, spent challenges, invites, providers, listings,
    /// what is known of peers, and what the market keeps into another registry of the same domain, as they are when it begins, and says how many rows
    /// it went through.
    ///
    /// Each page of rows is a transaction. A copy that was broken off is made whole by another one,
    /// and one that is repeated changes nothing; nothing is removed but what goes in time and the
    /// original does not have any more (tokens, spent challenges, tombstones; of peers, those that were forgotten, old
    /// refusals, nonces, lines of the audit log, histories; of the market, revoked keys and answers that were forgotten), and no
    /// agent's history and no ledger gets shorter. Windows and evidence of
    /// strangers that the original forgot between two copies stay. Two logs of listings that both went on cannot be made
    /// one: that fails, or leaves the target as it is. Whether the two are equal, [`Self::digest`] tells.
    ///
    /// # Errors
    ///
    /// [`StoreError::OtherDomain`] if the two are not of one domain, [`StoreError::Unavailable`] or
    /// [`StoreError::OutcomeUnknown`] if a database failed: copy again.
    pub async fn copy_to(&self, target: &Self) -> Result<u64, StoreError> {
        if self.domain != target.domain {
            return Err(StoreError::OtherDomain {
                found: target.domain.to_string(),
                configured: self.domain.to_string(),
            });
        }
        let mut to = target
            .target
            .connect(Role::Maintainer)
            .await
            .map_err(unavailable)?;
        let begin = target.target.dialect.begin();
        let mut rows = 0;
        let mut reading = Reading::begin(self).await?;
        for table in tables() {
            let mut after = table.before_all();
            loop {
                let page = reading.page(table, &after).await?;
                let is_last = page.len() < table.page_rows;
                put(&mut to, begin, table, &after, &page, is_last).await?;
                rows += page.len() as u64;
                match page.into_iter().next_back() {
                    Some(last) if !is_last => after = table.key(last),
                    _ => break,
                }
            }
        }
        to.close().await.map_err(unavailable)?;
        Ok(rows)
    }

    /// Counts and hashes all rows as they are when it begins. Two registries with the same digest
    /// hold the same. Reads everything: about a second for each 100,000 rows.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if the database failed.
    pub async fn digest(&self) -> Result<Digest, StoreError> {
        let mut reading = Reading::begin(self).await?;
        let (mut hash, mut rows) = (Sha256::new(), Vec::new());
        for table in tables() {
            let (mut count, mut after) = (0, table.before_all());
            loop {
                let page = reading.page(table, &after).await?;
                count += page.len() as u64;
                page.iter().flatten().for_each(|value| value.feed(&mut hash));
                match page.into_iter().next_back() {
                    Some(last) => after = table.key(last),
                    None => break,
                }
            }
            hash.update(count.to_be_bytes());
            rows.push((table.name, count));
        }
        Ok(Digest {
            rows,
            sha256: hex::encode(hash.finalize()),
        })
    }
}

/// A database as it was at one moment.
struct Reading {
    conn: AnyConnection,
}

impl Reading {
    async fn begin(store: &SqlStore) -> Result<Self, StoreError> {
        let mut conn = store.target.connect(Role::Checker).await.map_err(unavailable)?;
        // It ends with the connection.
        let begin = sqlx::raw_sql(store.target.dialect.begin_snapshot());
        begin.execute(&mut conn).await.map_err(unavailable)?;
        Ok(Self { conn })
    }

    /// The next rows after a key.
    async fn page(&mut self, table: &Table, after: &[Value]) -> Result<Vec<Vec<Value>>, StoreError> {
        let mut select = sqlx::query(AssertSqlSafe(table.select()));
        for key in after {
            select = key.bind(select);
        }
        let rows = select.fetch_all(&mut self.conn).await.map_err(unavailable)?;
        let page = rows
            .iter()
            .map(|row| table.values(row))
            .collect::<sqlx::Result<_>>();
        page.map_err(|error| StoreError::Corrupt(format!("table {}: {error}", table.name)))
    }
}

/// Makes the rows of `table` after `after`, up to the last one of `page`, those of `page`.
async fn put(
    conn: &mut AnyConnection,
    begin: &'static str,
    table: &Table,
    after: &[Value],
    page: &[Vec<Value>],
    is_last: bool,
) -> Result<(), StoreError> {
    let mut transaction = conn.begin_with(begin.into_sql_str()).await.map_err(unavailable)?;
    if table.is_swept {
        let up_to = if is_last { None } else { page.last() };
        let mut sweep = sqlx::query(AssertSqlSafe(table.sweep(up_to.is_some())));
        for key in after
            .iter()
            .chain(up_to.into_iter().flat_map(|row| row.iter().take(table.keys)))
        {
            sweep = key.bind(sweep);
        }
        sweep.execute(&mut *transaction).await.map_err(unavailable)?;
    }
    if !page.is_empty() {
        let mut insert = sqlx::query(AssertSqlSafe(table.insert(page.len())));
        for value in page.iter().flatten() {
            insert = value.bind(insert);
        }
        insert.execute(&mut *transaction).await.map_err(unavailable)?;
    }
    for statement in table.afterwards.iter().filter(|_| is_last) {
        let afterwards = sqlx::query(*statement).execute(&mut *transaction).await;
        afterwards.map_err(unavailable)?;
    }
    let commit = transaction.commit().await;
    commit.map_err(|error| StoreError::OutcomeUnknown(std::sync::Arc::new(error)))
}
