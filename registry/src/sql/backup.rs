//! Backups of a SQLite file, in two steps around whatever is backed up between them.

use std::path::Path;

use sqlx::{AnyConnection, Connection};

use super::SqlStore;
use super::dialect::{Dialect, Role};
use super::peers::statements::{KEEP_WINDOWS, PUT_WINDOWS_BACK};
use super::writer::unavailable;
use crate::error::StoreError;

/// A backup that has begun: it holds the windows of peers as they were then (`crate::peers` says why).
#[derive(Debug)]
pub struct Backup {
    conn: AnyConnection,
}

impl SqlStore {
    /// Begins a backup: before that of the mailboxes, which its end comes after.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotHere`] on PostgreSQL, which has tools of its own for it.
    pub async fn begin_backup(&self) -> Result<Backup, StoreError> {
        if let Dialect::Postgres(_) = self.target.dialect {
            return Err(StoreError::NotHere(
                "this registry is in PostgreSQL: copy it with `pg_dump --format=custom`, or with the server's own backups",
            ));
        }
        let mut conn = self.target.connect(Role::Writer).await.map_err(unavailable)?;
        run(&mut conn, KEEP_WINDOWS).await?;
        Ok(Backup { conn })
    }

    /// Writes a consistent copy of the database, as of now, to a file that must not exist yet.
    /// Readers and the writer go on meanwhile. The copy is synced when this returns.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotHere`] on PostgreSQL, which has tools of its own for it.
    pub async fn backup_to(&self, path: &Path) -> Result<(), StoreError> {
        self.begin_backup().await?.write_to(path).await
    }
}

impl Backup {
    /// Writes a consistent copy of the database, as of now but for the windows, to a file that must not exist yet. Readers
    /// and the writer go on meanwhile. The copy is synced when this returns.
    ///
    /// # Errors
    ///
    /// The file exists, or cannot be written.
    pub async fn write_to(mut self, path: &Path) -> Result<(), StoreError> {
        let shown = path.display();
        let text = path
            .to_str()
            .ok_or_else(|| StoreError::Open(format!("{shown} is not UTF-8")))?;
        if path.exists() {
            return Err(StoreError::Open(format!(
                "{shown} exists already: a backup never overwrites"
            )));
        }
        for with_path in ["VACUUM INTO $1", "ATTACH DATABASE $1 AS copy"] {
            let asked = sqlx::query(with_path).bind(text).execute(&mut self.conn).await;
            asked.map_err(unavailable)?;
        }
        run(&mut self.conn, PUT_WINDOWS_BACK).await?;
        self.conn.close().await.map_err(unavailable)?;
        let file = tokio::fs::File::open(path).await;
        let synced = match file {
            Ok(file) => file.sync_all().await,
            Err(error) => Err(error),
        };
        synced.map_err(|error| StoreError::Open(format!("{shown}: {error}")))
    }
}

async fn run(conn: &mut AnyConnection, statements: &'static str) -> Result<(), StoreError> {
    let run = sqlx::raw_sql(statements).execute(conn).await;
    run.map(drop).map_err(unavailable)
}
