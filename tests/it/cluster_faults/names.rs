//! PostgreSQL dies, or stands still.

use aip_engines::{Postgres, PostgresOptions};
use aip_tests::cluster::Engines;
use aip_tests::{rounds_of, standstill};
use anyhow::Result;

use super::ground::Ground;
use super::{engines, hurt};

/// Processes of the hub.
const PROCESSES: usize = 2;
/// Shorter than any standstill: whoever needs a name then is told to come back.
const TIMEOUT_SECS: u64 = 2;

async fn start(fault: &'static str) -> Result<(Postgres, Ground)> {
    let postgres = hurt(|| Postgres::start(PostgresOptions::default()));
    let mut way = Engines {
        registry: postgres.database("hub"),
        ..engines()
    };
    let timeouts = ["STATEMENT", "WAIT"].map(|what| format!("AIP_HUB__POSTGRES__{what}_TIMEOUT_SECS"));
    way.more
        .extend(timeouts.map(|name| (name, TIMEOUT_SECS.to_string())));
    let ground = Ground::start(fault, &vec![way; PROCESSES]).await?;
    Ok((postgres, ground))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgresql_is_killed_and_started_again() -> Result<()> {
    let (mut postgres, mut ground) = start("PostgreSQL is killed").await?;
    for _ in 0..rounds_of(3) {
        ground.goes_on().await;
        hurt(|| postgres.kill());
        ground.moment(2_000).await;
        hurt(|| postgres.restart());
        ground.recovers().await?;
    }
    ground.judge(&["aip_registry_connections_lost_total"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgresql_stands_still() -> Result<()> {
    let (mut postgres, mut ground) = start("PostgreSQL stands still").await?;
    for _ in 0..rounds_of(1) {
        ground.goes_on().await;
        hurt(|| postgres.pause());
        tokio::time::sleep(standstill()).await;
        hurt(|| postgres.resume());
        ground.recovers().await?;
    }
    ground.judge(&["aip_registry_connections_lost_total"]).await
}
