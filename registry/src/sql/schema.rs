//! The schema: migrations under a lock, whether a database has the schema this binary knows, and whose it is.

use std::collections::BTreeMap;

use aip_protocol::name::Domain;
use sqlx::migrate::{AppliedMigration, Migrate, MigrateError, Migration, Migrator};
use sqlx::{AnyConnection, AssertSqlSafe, SqlSafeStr};

use super::dialect::Dialect;
use super::rows::column;
use super::statements;
use crate::error::StoreError;
use crate::limits::MIGRATION_LOCK_SECS;

/// The schema that this binary knows, from the folder that all dialects share.
static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// Where a database keeps which migrations it had.
const TABLE: &str = "_sqlx_migrations";

/// The advisory lock of PostgreSQL that whoever migrates a registry holds: "aipregis" in ASCII.
const ADVISORY_LOCK: i64 = 0x6169_7072_6567_6973;

/// The fact that says whose database it is.
const DOMAIN_FACT: &str = "domain";

/// What a migration did. Versions are the numbers of the files in `migrations/`; 0 is an empty database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrated {
    /// The version found.
    pub from: i64,
    /// The version now.
    pub to: i64,
}

/// Why a database cannot be opened or migrated.
pub(super) enum SchemaError {
    /// It did not do what it was asked; the dialect says what that means.
    Database(sqlx::Error),
    /// It is not one to use.
    Refused(StoreError),
}

impl From<sqlx::Error> for SchemaError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for SchemaError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<MigrateError> for SchemaError {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => Self::Database(error),
            MigrateError::VersionMissing(found) if found > newest_known() => Self::Refused(newer(found)),
            error => Self::Refused(StoreError::Open(error.to_string())),
        }
    }
}

/// Brings the schema up to date, within the transaction that `conn` is in.
pub(super) async fn migrate(dialect: Dialect, conn: &mut AnyConnection) -> Result<Migrated, SchemaError> {
    if let Dialect::Postgres(_) = dialect {
        // Freed by the end of the transaction, so that the next one in the queue sees what this one did.
        for statement in [
            format!("SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"),
            // A hub at work is not kept waiting behind a change of a table that it uses.
            format!("SET LOCAL lock_timeout = '{MIGRATION_LOCK_SECS}s'"),
        ] {
            sqlx::raw_sql(AssertSqlSafe(statement))
                .execute(&mut *conn)
                .await?;
        }
        check_server(conn).await?;
    }
    conn.ensure_migrations_table(TABLE).await?;
    let from = newest(&conn.list_applied_migrations(TABLE).await?);
    migrator(dialect).run_direct(None, &mut *conn, false).await?;
    let to = newest_known();
    if from != to {
        tracing::info!(from, to, "the registry's schema was migrated");
    }
    Ok(Migrated { from, to })
}

/// Refuses a schema that is older or newer than the one this binary knows, without changing anything.
pub(super) async fn check(dialect: Dialect, conn: &mut AnyConnection) -> Result<(), SchemaError> {
    if let Dialect::Postgres(_) = dialect {
        check_server(conn).await?;
    }
    let applied = match conn.list_applied_migrations(TABLE).await {
        Err(MigrateError::Execute(error)) if dialect.is_missing_table(&error) => Vec::new(),
        applied => applied?,
    };
    let found = newest(&applied);
    if found > newest_known() {
        return Err(newer(found).into());
    }
    let applied: BTreeMap<_, _> = applied.into_iter().map(|a| (a.version, a.checksum)).collect();
    for migration in MIGRATIONS.iter() {
        match applied.get(&migration.version) {
            Some(checksum) if *checksum == migration.checksum => {}
            Some(_) => return Err(MigrateError::VersionMismatch(migration.version).into()),
            None => {
                let known = newest_known();
                return Err(StoreError::SchemaOlder { found, known }.into());
            }
        }
    }
    Ok(())
}

/// Whether the server can keep what it is given.
async fn check_server(conn: &mut AnyConnection) -> Result<(), SchemaError> {
    let row = sqlx::query(statements::SERVER_SETTINGS)
        .fetch_one(&mut *conn)
        .await?;
    let encoding: String = column(&row, "encoding")?;
    if encoding != "UTF8" {
        return Err(StoreError::Open(format!(
            "it is encoded in {encoding}: make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        ))
        .into());
    }
    if column::<String>(&row, "fsync")? != "on" {
        tracing::warn!(
            "fsync is off on the PostgreSQL server: a crash of its machine loses what was acknowledged"
        );
    }
    Ok(())
}

/// Writes the domain into a new database, compares it with an old one's.
pub(super) async fn claim(conn: &mut AnyConnection, domain: &Domain) -> Result<(), SchemaError> {
    let configured = domain.to_string();
    let add = sqlx::query(statements::ADD_FACT)
        .bind(DOMAIN_FACT)
        .bind(configured.clone());
    add.execute(&mut *conn).await?;
    let get = sqlx::query(statements::GET_FACT).bind(DOMAIN_FACT);
    let row = get.fetch_one(&mut *conn).await?;
    let found: String = column(&row, "value")?;
    if found == configured {
        Ok(())
    } else {
        Err(StoreError::OtherDomain { found, configured }.into())
    }
}

/// The migrations as an engine takes them.
fn migrator(dialect: Dialect) -> Migrator {
    let text = |migration: &Migration| match dialect {
        Dialect::Sqlite => migration.clone(),
        // The checksum stays that of the file.
        Dialect::Postgres(_) => Migration {
            sql: AssertSqlSafe(sorted_by_bytes(migration.sql.as_str())).into_sql_str(),
            ..migration.clone()
        },
    };
    let mut migrator = Migrator::with_migrations(MIGRATIONS.iter().map(text).collect());
    // A lock of the session would be freed before the transaction is committed.
    migrator.set_locking(false);
    migrator
}

/// Gives every column of text PostgreSQL's collation of bytes, whatever that of the database is:
/// names sort as on SQLite, and an index does not depend on the system's locale files.
fn sorted_by_bytes(sql: &str) -> String {
    let word = |word: &str| match word {
        "TEXT" => r#"TEXT COLLATE "C""#.to_owned(),
        "TEXT," => r#"TEXT COLLATE "C","#.to_owned(),
        other => other.to_owned(),
    };
    let line = |line: &str| {
        let (code, comment) = line.split_once("--").unwrap_or((line, ""));
        let code: Vec<_> = code.split(' ').map(word).collect();
        if comment.is_empty() {
            code.join(" ")
        } else {
            format!("{}--{comment}", code.join(" "))
        }
    };
    sql.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn newest(applied: &[AppliedMigration]) -> i64 {
    applied
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or_default()
}

/// The newest version that this binary knows.
fn newest_known() -> i64 {
    let versions = MIGRATIONS.iter().map(|migration| migration.version);
    versions.max().unwrap_or_default()
}

fn newer(found: i64) -> StoreError {
    StoreError::SchemaNewer {
        found,
        known: newest_known(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_of_text_is_sorted_by_bytes_and_comments_stay() {
        assert_eq!(
            sorted_by_bytes("a TEXT NOT NULL, -- TEXT\nb   TEXT,\nc BIGINT -- a TEXT, b"),
            "a TEXT COLLATE \"C\" NOT NULL, -- TEXT\nb   TEXT COLLATE \"C\",\nc BIGINT -- a TEXT, b"
        );
        for migration in MIGRATIONS.iter() {
            let sql = sorted_by_bytes(migration.sql.as_str());
            let code = |line: &str| line.split("--").next().unwrap_or_default().to_owned();
            let texts = sql.lines().map(code).collect::<String>();
            assert_eq!(
                texts.matches("TEXT").count(),
                texts.matches("TEXT COLLATE \"C\"").count()
            );
        }
    }
}
