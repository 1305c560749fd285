//! Redis dies, or stands still: what it makes fast is slower, and nothing else.

use aip_engines::{Redis, RedisOptions};
use aip_tests::cluster::Engines;
use aip_tests::{rounds_of, standstill};
use anyhow::Result;

use super::ground::Ground;
use super::{engines, hurt};

/// Processes of the hub.
const PROCESSES: usize = 2;

async fn start(fault: &'static str) -> Result<(Redis, Ground)> {
    let redis = hurt(|| Redis::start(RedisOptions::default()));
    let way = Engines {
        shared: redis.url(),
        ..engines()
    };
    let ground = Ground::start(fault, &vec![way; PROCESSES]).await?;
    Ok((redis, ground))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_killed_and_started_again() -> Result<()> {
    let (mut redis, mut ground) = start("Redis is killed").await?;
    for _ in 0..rounds_of(3) {
        ground.goes_on().await;
        hurt(|| redis.kill());
        // The load goes on without it.
        ground.goes_on().await;
        hurt(|| redis.restart());
        ground.recovers().await?;
    }
    ground
        .judge(&["aip_redis_reconnects_total", "aip_redis_rate_fallbacks_total"])
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_stands_still() -> Result<()> {
    let (mut redis, mut ground) = start("Redis stands still").await?;
    for _ in 0..rounds_of(1) {
        ground.goes_on().await;
        hurt(|| redis.pause());
        ground.goes_on().await;
        tokio::time::sleep(standstill()).await;
        hurt(|| redis.resume());
        ground.recovers().await?;
    }
    ground
        .judge(&["aip_redis_timeouts_total", "aip_redis_rate_fallbacks_total"])
        .await
}
