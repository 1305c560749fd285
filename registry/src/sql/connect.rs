//! Opening a database: connections that are set up before use, migrations, and whose it is.

use std::path::Path;
use std::time::Duration;

use aip_protocol::name::Domain;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, ConnectOptions, Connection, SqlSafeStr};

use super::dialect::{Dialect, Role};
use super::rows::column;
use super::statements;
use super::writer::unavailable;
use crate::error::StoreError;
use crate::limits::{OPEN_ATTEMPTS_MAX, OPEN_PAUSE_MS, READ_CONNECTIONS_MAX, READ_WAIT_SECS};

/// The schema that this binary knows, from the folder that all dialects share.
static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// The fact that says whose database it is.
const DOMAIN_FACT: &str = "domain";

/// A database, and how to talk to it.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) dialect: Dialect,
    options: AnyConnectOptions,
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
            options,
        })
    }

    /// A connection that is set up for its role.
    pub(super) async fn connect(&self, role: Role) -> sqlx::Result<AnyConnection> {
        let mut conn = AnyConnection::connect_with(&self.options).await?;
        set_up(self.dialect, role, &mut conn).await?;
        Ok(conn)
    }

    /// The connections that read. They are made when they are needed.
    pub(super) fn readers(&self) -> AnyPool {
        let dialect = self.dialect;
        AnyPoolOptions::new()
            .max_connections(READ_CONNECTIONS_MAX)
            .acquire_timeout(Duration::from_secs(READ_WAIT_SECS))
            .test_before_acquire(dialect.loses_idle_connections())
            .after_connect(move |conn, _| Box::pin(set_up(dialect, Role::Reader, conn)))
            .connect_lazy_with(self.options.clone())
    }

    /// Opens for writing: migrates an older schema, refuses a newer one and another hub's data.
    /// Several processes can open the same new file at once; they take turns.
    pub(super) async fn open(&self, domain: &Domain) -> Result<AnyConnection, StoreError> {
        let mut attempt = 1;
        loop {
            match self.try_open(domain).await {
                Err(OpenError::Busy(_)) if attempt < OPEN_ATTEMPTS_MAX => attempt += 1,
                Err(OpenError::Busy(error)) => return Err(unavailable(error)),
                Err(OpenError::Final(error)) => return Err(error),
                Ok(conn) => return Ok(conn),
            }
            tokio::time::sleep(Duration::from_millis(OPEN_PAUSE_MS)).await;
        }
    }

    async fn try_open(&self, domain: &Domain) -> Result<AnyConnection, OpenError> {
        let judge = |error| self.judge(error);
        let mut conn = self.connect(Role::Writer).await.map_err(judge)?;
        // All in one transaction, so that of several openers one migrates and the others see it done.
        let mut transaction = conn
            .begin_with(self.dialect.begin().into_sql_str())
            .await
            .map_err(judge)?;
        MIGRATIONS
            .run_direct(None, &mut *transaction, false)
            .await
            .map_err(|error| match error {
                MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => self.judge(error),
                error => OpenError::Final(migration_refusal(&error)),
            })?;
        claim(&mut transaction, domain).await?;
        transaction.commit().await.map_err(judge)?;
        Ok(conn)
    }

    fn judge(&self, error: sqlx::Error) -> OpenError {
        if self.dialect.is_busy(&error) {
            OpenError::Busy(error)
        } else {
            OpenError::Final(StoreError::Open(error.to_string()))
        }
    }
}

enum OpenError {
    /// Somebody else has it right now.
    Busy(sqlx::Error),
    /// Trying again would not help.
    Final(StoreError),
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        Self::Final(error)
    }
}

async fn set_up(dialect: Dialect, role: Role, conn: &mut AnyConnection) -> sqlx::Result<()> {
    for statement in dialect.session(role) {
        sqlx::raw_sql(AssertSqlSafe(statement))
            .execute(&mut *conn)
            .await?;
    }
    Ok(())
}

/// The newest schema version that this binary knows.
fn newest_schema() -> i64 {
    MIGRATIONS
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or_default()
}

fn migration_refusal(error: &MigrateError) -> StoreError {
    match error {
        MigrateError::VersionMissing(found) if *found > newest_schema() => StoreError::SchemaNewer {
            found: *found,
            known: newest_schema(),
        },
        error => StoreError::Open(error.to_string()),
    }
}

/// Writes the domain into a new database, compares it with an old one's.
async fn claim(conn: &mut AnyConnection, domain: &Domain) -> Result<(), StoreError> {
    let configured = domain.to_string();
    let add = sqlx::query(statements::ADD_FACT)
        .bind(DOMAIN_FACT)
        .bind(configured.clone());
    add.execute(&mut *conn).await.map_err(unavailable)?;
    let get = sqlx::query(statements::GET_FACT).bind(DOMAIN_FACT);
    let row = get.fetch_one(&mut *conn).await.map_err(unavailable)?;
    let found: String = column(&row, "value")?;
    if found == configured {
        Ok(())
    } else {
        Err(StoreError::OtherDomain { found, configured })
    }
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
        for (role, query_only) in [(Role::Writer, "0"), (Role::Reader, "1")] {
            let mut conn = target.connect(role).await.expect("a connection");
            assert_eq!(pragma(&mut conn, "busy_timeout").await, "5000");
            assert_eq!(pragma(&mut conn, "journal_mode").await, "wal");
            assert_eq!(pragma(&mut conn, "synchronous").await, "2", "FULL");
            assert_eq!(pragma(&mut conn, "foreign_keys").await, "1");
            assert_eq!(pragma(&mut conn, "query_only").await, query_only);
        }
        let mut pooled = target.readers().acquire().await.expect("a connection");
        assert_eq!(pragma(&mut pooled, "busy_timeout").await, "5000");
        assert_eq!(pragma(&mut pooled, "query_only").await, "1");
    }
}
