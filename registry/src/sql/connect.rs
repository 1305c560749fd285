//! Connections that are set up before use, and opening a database.

use std::path::Path;
use std::time::Duration;

use aip_protocol::name::Domain;
use sqlx::any::AnyConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AnyConnection, AssertSqlSafe, ConnectOptions, Connection, SqlSafeStr};
use tokio::time::Instant;

use super::dialect::{Dialect, Role, Verdict};
use super::postgres::PostgresOptions;
use super::schema::{self, Migrated, SchemaError};
use super::writer::unavailable;
use crate::error::StoreError;
use crate::limits::{OPEN_PAUSE_MS, OPEN_WAIT_SECS, READ_CONNECTIONS_MAX};

/// A database, and how to talk to it.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) dialect: Dialect,
    /// Connections that read.
    pub(super) readers_max: u32,
    /// Whether opening migrates.
    migrates: bool,
    options: AnyConnectOptions,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The options hold an address with a password.
        f.debug_struct("Target")
            .field("dialect", &self.dialect)
            .finish_non_exhaustive()
    }
}

impl Target {
    /// A file that SQLite makes if it does not exist.
    pub(super) fn sqlite(path: &Path) -> Result<Self, StoreError> {
        sqlx::any::install_default_drivers();
        let path =
            std::path::absolute(path).map_err(|e| StoreError::Open(format!("{}: {e}", path.display())))?;
        let text = path
            .to_str()
            .ok_or_else(|| StoreError::Open(format!("{} is not UTF-8", path.display())))?;
        // The URL form is decoded once on the way in, so a literal `%` goes in encoded.
        let url = SqliteConnectOptions::new()
            .filename(text.replace('%', "%25"))
            .create_if_missing(true)
            .to_url_lossy();
        let options = AnyConnectOptions::from_url(&url).map_err(|e| StoreError::Open(e.to_string()))?;
        Ok(Self {
            dialect: Dialect::Sqlite,
            readers_max: READ_CONNECTIONS_MAX,
            migrates: true,
            options,
        })
    }

    /// A database of a PostgreSQL server.
    pub(super) fn postgres(options: &PostgresOptions) -> Result<Self, StoreError> {
        sqlx::any::install_default_drivers();
        Ok(Self {
            dialect: Dialect::Postgres(options.patience()),
            readers_max: options.connections_max.saturating_sub(1).max(1),
            migrates: options.migrate,
            options: AnyConnectOptions::from_url(&options.address())
                .map_err(|e| StoreError::Open(e.to_string()))?,
        })
    }

    /// A connection that is set up for its role.
    pub(super) async fn connect(&self, role: Role) -> sqlx::Result<AnyConnection> {
        let connect = async {
            let mut conn = AnyConnection::connect_with(&self.options).await?;
            for statement in self.dialect.session(role) {
                sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut conn).await?;
            }
            Ok(conn)
        };
        bounded(self.dialect.connect_limit(), connect).await
    }

    /// Opens for writing: migrates an older schema or refuses it, refuses a newer one and another
    /// hub's data. Several processes can open the same new database at once; they take turns.
    pub(super) async fn open(&self, domain: &Domain) -> Result<AnyConnection, StoreError> {
        if self.dialect == Dialect::Sqlite {
            return self
                .patiently(|| self.migrate_once(domain))
                .await
                .map(|(conn, _)| conn);
        }
        if self.migrates {
            self.migrate(domain).await?;
        }
        self.patiently(|| self.open_once(domain)).await
    }

    /// Brings the schema up to date, under a lock, and writes down whose database it is.
    pub(super) async fn migrate(&self, domain: &Domain) -> Result<Migrated, StoreError> {
        let (conn, migrated) = self.patiently(|| self.migrate_once(domain)).await?;
        conn.close().await.map_err(unavailable)?;
        Ok(migrated)
    }

    async fn open_once(&self, domain: &Domain) -> Result<AnyConnection, SchemaError> {
        let mut conn = self.connect(Role::Writer).await?;
        schema::check(self.dialect, &mut conn).await?;
        let mut transaction = conn.begin_with(self.dialect.begin().into_sql_str()).await?;
        schema::claim(&mut transaction, domain).await?;
        transaction.commit().await?;
        Ok(conn)
    }

    /// All in one transaction, so that of several openers one migrates and the others see it done.
    async fn migrate_once(&self, domain: &Domain) -> Result<(AnyConnection, Migrated), SchemaError> {
        let role = match self.dialect {
            Dialect::Sqlite => Role::Writer,
            Dialect::Postgres(_) => Role::Maintainer,
        };
        let mut conn = self.connect(role).await?;
        let mut transaction = conn.begin_with(self.dialect.begin().into_sql_str()).await?;
        let migrated = schema::migrate(self.dialect, &mut transaction).await?;
        schema::claim(&mut transaction, domain).await?;
        transaction.commit().await?;
        Ok((conn, migrated))
    }

    /// Tries again while somebody else has the database, or it is not there yet, within a bound.
    async fn patiently<T, F>(&self, attempt: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, SchemaError>>,
    {
        let deadline = Instant::now() + Duration::from_secs(OPEN_WAIT_SECS);
        loop {
            match attempt().await {
                Ok(done) => return Ok(done),
                Err(SchemaError::Refused(error)) => return Err(error),
                Err(SchemaError::Database(error)) => match self.dialect.verdict(&error) {
                    Verdict::Other => return Err(StoreError::Open(sentence(&error))),
                    Verdict::Busy | Verdict::Lost if Instant::now() >= deadline => {
                        return Err(unavailable(error));
                    }
                    Verdict::Busy | Verdict::Lost => {}
                },
            }
            tokio::time::sleep(Duration::from_millis(OPEN_PAUSE_MS)).await;
        }
    }
}

/// What went wrong, without the line of the server's own source that the driver adds.
fn sentence(error: &sqlx::Error) -> String {
    match error.as_database_error() {
        Some(error) => error.message().to_owned(),
        None => error.to_string(),
    }
}

/// Waits no longer than `limit`, if there is one. What was asked may have happened or not.
pub(super) async fn bounded<T>(
    limit: Option<Duration>,
    work: impl Future<Output = sqlx::Result<T>>,
) -> sqlx::Result<T> {
    let Some(limit) = limit else {
        return work.await;
    };
    tokio::time::timeout(limit, work)
        .await
        .unwrap_or_else(|_elapsed| {
            let silence = std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer in time");
            Err(sqlx::Error::Io(silence))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pragma(conn: &mut AnyConnection, name: &str) -> String {
        let row = sqlx::query(AssertSqlSafe(format!("PRAGMA {name}")))
            .fetch_one(conn)
            .await
            .expect("a row");
        let number = sqlx::Row::try_get::<i64, _>(&row, 0).map(|n| n.to_string());
        number.or_else(|_| sqlx::Row::try_get(&row, 0)).expect("a value")
    }

    #[tokio::test]
    async fn row_46_every_connection_has_its_pragmas() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = Target::sqlite(&folder.path().join("db")).expect("a target");
        for (role, query_only) in [
            (Role::Writer, "0"),
            (Role::Reader, "1"),
            (Role::Maintainer, "0"),
            (Role::Checker, "1"),
        ] {
            let mut conn = target.connect(role).await.expect("a connection");
            assert_eq!(pragma(&mut conn, "busy_timeout").await, "5000");
            assert_eq!(pragma(&mut conn, "journal_mode").await, "wal");
            assert_eq!(pragma(&mut conn, "synchronous").await, "2", "FULL");
            assert_eq!(pragma(&mut conn, "foreign_keys").await, "1");
            assert_eq!(pragma(&mut conn, "query_only").await, query_only);
        }
    }

    #[test]
    fn a_target_does_not_show_its_password() {
        let options = PostgresOptions::new("postgres://hub:s3cret@localhost/aip").expect("an address");
        let target = Target::postgres(&options).expect("a target");
        assert!(!format!("{target:?}").contains("s3cret"));
    }
}
