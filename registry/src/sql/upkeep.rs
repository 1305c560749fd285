//! What an operator does with the database as a whole: check it, and mend what a clock has done. Backups are in `backup.rs`.

use aip_protocol::name::Name;
use aip_protocol::time::Timestamp;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};

use super::SqlStore;
use super::dialect::{Dialect, Role};
use super::writer::{Write, unavailable};
use super::{listings, market, peers, statements};
use crate::agent::Agent;
use crate::directory::Directory;
use crate::error::StoreError;
use crate::limits::{INTEGRITY_PROBLEMS_MAX, LIST_PAGE_MAX};

/// Ends the tokens that a clock far ahead has issued.
struct DropLaterTokens {
    now: Timestamp,
}

impl Write for DropLaterTokens {
    type Outcome = u64;

    async fn apply(&self, conn: &mut AnyConnection) -> sqlx::Result<u64> {
        let drop = sqlx::query(statements::DROP_LATER_TOKENS).bind(self.now.unix_millis());
        Ok(drop.execute(conn).await?.rows_affected())
    }
}

impl SqlStore {
    /// Ends the tokens that were issued later than `now`, by a clock that was ahead, and says how many there were: they
    /// would be good for too long, and count as newer than every new one. Their agents sign in again.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::OutcomeUnknown`] if the database failed.
    pub async fn drop_tokens_after(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.write(DropLaterTokens { now }).await
    }

    /// Checks references, and on SQLite pages and indexes, and lists what is wrong: nothing, if all is
    /// well. Pages and indexes of PostgreSQL are checked by `pg_amcheck`.
    pub async fn check_integrity(&self) -> Result<Vec<String>, StoreError> {
        let mut conn = self.target.connect(Role::Checker).await.map_err(unavailable)?;
        let problems = match self.target.dialect {
            Dialect::Sqlite => check_sqlite(&mut conn).await,
            Dialect::Postgres(_) => check_postgres(&mut conn).await,
        };
        let mut problems = problems.map_err(unavailable)?;
        for checks in [
            listings::statements::CHECKS.as_slice(),
            peers::statements::CHECKS.as_slice(),
            market::statements::CHECKS.as_slice(),
        ] {
            let found = find(&mut conn, checks).await;
            problems.extend(found.map_err(unavailable)?);
        }
        problems.truncate(INTEGRITY_PROBLEMS_MAX);
        conn.close().await.map_err(unavailable)?;
        Ok(problems)
    }

    /// Replays every history with all its signatures, and lists what is wrong: nothing, if all is
    /// well. Takes about 0.1 ms for each operation.
    pub async fn check_histories(&self) -> Result<Vec<String>, StoreError> {
        let mut problems = Vec::new();
        let mut after: Option<Name> = None;
        loop {
            let page = self.list(after.as_ref(), LIST_PAGE_MAX).await?;
            for agent in &page {
                let checked = match self.get(&agent.name).await? {
                    Some(record) => Agent::check_record(&agent.name, &record),
                    None => Err(StoreError::Corrupt(format!("{} has no history", agent.name))),
                };
                problems.extend(checked.err().map(|problem| problem.to_string()));
            }
            match page.last() {
                Some(last) if problems.len() < INTEGRITY_PROBLEMS_MAX => after = Some(last.name.clone()),
                _ => break,
            }
        }
        problems.truncate(INTEGRITY_PROBLEMS_MAX);
        Ok(problems)
    }
}

async fn check_sqlite(conn: &mut AnyConnection) -> sqlx::Result<Vec<String>> {
    let mut problems = Vec::new();
    let check = format!("PRAGMA integrity_check({INTEGRITY_PROBLEMS_MAX})");
    for row in sqlx::query(AssertSqlSafe(check)).fetch_all(&mut *conn).await? {
        let line: String = row.try_get(0)?;
        if line != "ok" {
            problems.push(line);
        }
    }
    let strays = sqlx::query("PRAGMA foreign_key_check").fetch_all(conn).await?;
    for row in strays.iter().take(INTEGRITY_PROBLEMS_MAX) {
        let table: String = row.try_get(0)?;
        problems.push(format!("a row of {table} refers to nothing"));
    }
    Ok(problems)
}

async fn check_postgres(conn: &mut AnyConnection) -> sqlx::Result<Vec<String>> {
    find(conn, &statements::POSTGRES_CHECKS).await
}

/// What the statements find, in the sentences beside them.
async fn find(
    conn: &mut AnyConnection,
    checks: &[(&'static str, &'static str)],
) -> sqlx::Result<Vec<String>> {
    let mut problems = Vec::new();
    for (statement, sentence) in checks {
        let limit = i64::try_from(INTEGRITY_PROBLEMS_MAX).unwrap_or(i64::MAX);
        let rows = sqlx::query(*statement).bind(limit).fetch_all(&mut *conn).await?;
        for row in rows {
            let found: String = row.try_get(0)?;
            problems.push(sentence.replace("{}", &found));
        }
    }
    Ok(problems)
}
