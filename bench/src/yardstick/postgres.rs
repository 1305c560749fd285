//! PostgreSQL through sqlx: one durable insert per transaction, many connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgPool, PgPoolOptions};
use tokio::task::JoinSet;

/// Bytes of a document, about those of a registration.
const DOCUMENT_BYTES: usize = 600;

/// Connects `width` times and makes an empty table.
pub(crate) async fn open(url: &str, width: u32) -> anyhow::Result<PgPool> {
    let pool = PgPoolOptions::new()
        .min_connections(width)
        .max_connections(width)
        .connect(url)
        .await?;
    sqlx::query("CREATE TABLE agents (name TEXT PRIMARY KEY, document TEXT NOT NULL)")
        .execute(&pool)
        .await?;
    Ok(pool)
}

/// Durable single-row inserts per second on all connections at once; names begin with `prefix`.
#[expect(clippy::cast_precision_loss, reason = "counts of a short run fit a double")]
pub(crate) async fn inserts(pool: &PgPool, duration: Duration, prefix: &str) -> anyhow::Result<f64> {
    let done = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for task in 0..pool.size() {
        let (pool, done, prefix) = (pool.clone(), done.clone(), format!("{prefix}t{task}x"));
        tasks.spawn(async move {
            let mut connection = pool.acquire().await?;
            let document = "x".repeat(DOCUMENT_BYTES);
            let mut row = 0_u64;
            while started.elapsed() < duration {
                sqlx::query("INSERT INTO agents (name, document) VALUES ($1, $2)")
                    .bind(format!("{prefix}{row}"))
                    .bind(document.as_str())
                    .execute(&mut *connection)
                    .await?;
                row += 1;
            }
            done.fetch_add(row, Ordering::Relaxed);
            anyhow::Ok(())
        });
    }
    while let Some(finished) = tasks.join_next().await {
        finished??;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
}
