//! SQLite through sqlx: one durable insert per transaction, and a plain select.

use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

/// Rows that the select chooses among.
const ROWS: i64 = 10_000;

/// Bytes of a document, about those of a registration.
const DOCUMENT_BYTES: usize = 600;

/// Opens a fresh database with full synchronisation and fills it.
pub(crate) async fn open(folder: &Path) -> anyhow::Result<SqlitePool> {
    std::fs::create_dir_all(folder)?;
    let options = SqliteConnectOptions::new()
        .filename(folder.join("yardstick.sqlite"))
        .create_if_missing(true)
        .busy_timeout(Duration::from_secs(30))
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .connect_with(options)
        .await?;
    sqlx::query("CREATE TABLE agents (name TEXT PRIMARY KEY, document TEXT NOT NULL)")
        .execute(&pool)
        .await?;
    let mut transaction = pool.begin().await?;
    for row in 0..ROWS {
        insert(&mut *transaction, &format!("agent{row}")).await?;
    }
    transaction.commit().await?;
    Ok(pool)
}

async fn insert<'c, E: sqlx::Executor<'c, Database = sqlx::Sqlite>>(
    executor: E,
    name: &str,
) -> anyhow::Result<()> {
    sqlx::query("INSERT INTO agents (name, document) VALUES ($1, $2)")
        .bind(name.to_owned())
        .bind("x".repeat(DOCUMENT_BYTES))
        .execute(executor)
        .await?;
    Ok(())
}

/// Durable single-row transactions per second.
#[expect(clippy::cast_precision_loss, reason = "counts of a short run fit a double")]
pub(crate) async fn inserts(pool: &SqlitePool, duration: Duration, prefix: &str) -> anyhow::Result<f64> {
    let started = Instant::now();
    let mut done = 0_u64;
    while started.elapsed() < duration {
        insert(pool, &format!("{prefix}{done}")).await?;
        done += 1;
    }
    Ok(done as f64 / started.elapsed().as_secs_f64())
}

/// The median latency of a select by key, in microseconds.
pub(crate) async fn select_p50_us(pool: &SqlitePool, duration: Duration) -> anyhow::Result<f64> {
    let started = Instant::now();
    let mut latencies = Vec::new();
    let mut row = 0;
    while started.elapsed() < duration {
        row = (row + 7_919) % ROWS;
        let at = Instant::now();
        let _document: (String,) = sqlx::query_as("SELECT document FROM agents WHERE name = $1")
            .bind(format!("agent{row}"))
            .fetch_one(pool)
            .await?;
        latencies.push(at.elapsed().as_secs_f64() * 1e6);
    }
    Ok(crate::report::median(&latencies))
}
