//! What an operator does with the database as a whole: back it up, check it.

use std::path::Path;

use sqlx::{AssertSqlSafe, Connection, Row};

use super::SqlStore;
use super::dialect::Role;
use super::writer::unavailable;
use crate::error::StoreError;
use crate::limits::INTEGRITY_PROBLEMS_MAX;

impl SqlStore {
    /// Writes a consistent copy of the database, as of now, to a file that must not exist yet.
    /// Readers and the writer go on meanwhile. The copy is synced when this returns.
    pub async fn backup_to(&self, path: &Path) -> Result<(), StoreError> {
        let shown = path.display();
        let text = path
            .to_str()
            .ok_or_else(|| StoreError::Open(format!("{shown} is not UTF-8")))?;
        if path.exists() {
            return Err(StoreError::Open(format!(
                "{shown} exists already: a backup never overwrites"
            )));
        }
        let mut conn = self.target.connect(Role::Writer).await.map_err(unavailable)?;
        sqlx::query("VACUUM INTO $1")
            .bind(text)
            .execute(&mut conn)
            .await
            .map_err(unavailable)?;
        conn.close().await.map_err(unavailable)?;
        let file = tokio::fs::File::open(path).await;
        let synced = match file {
            Ok(file) => file.sync_all().await,
            Err(error) => Err(error),
        };
        synced.map_err(|error| StoreError::Open(format!("{shown}: {error}")))
    }

    /// Checks pages, indexes and references, and lists what is wrong: nothing, if all is well.
    pub async fn check_integrity(&self) -> Result<Vec<String>, StoreError> {
        let mut problems = Vec::new();
        let check = format!("PRAGMA integrity_check({INTEGRITY_PROBLEMS_MAX})");
        let rows = sqlx::query(AssertSqlSafe(check))
            .fetch_all(&self.readers)
            .await
            .map_err(unavailable)?;
        for row in rows {
            let line: String = row.try_get(0).map_err(unavailable)?;
            if line != "ok" {
                problems.push(line);
            }
        }
        let strays = sqlx::query("PRAGMA foreign_key_check")
            .fetch_all(&self.readers)
            .await
            .map_err(unavailable)?;
        for row in strays.iter().take(INTEGRITY_PROBLEMS_MAX) {
            let table: String = row.try_get(0).map_err(unavailable)?;
            problems.push(format!("a row of {table} refers to nothing"));
        }
        Ok(problems)
    }
}
