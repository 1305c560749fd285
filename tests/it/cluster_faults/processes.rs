//! Processes of the hub that die, stand still, or are replaced one after the other.

use std::time::Duration;

use aip_tests::{TestHub, rounds_of, standstill};
use anyhow::{Context, Result, ensure};
use rand::RngExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::ground::{Ground, report};
use super::steady::Steady;
use super::{engines, hurt};

/// Processes of the hub.
const PROCESSES: usize = 3;
/// Pairs of agents that are to notice nothing.
const PAIRS: usize = 6;
const REST: Duration = Duration::from_millis(50);
/// For an answer that a process gives at once.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// Ends a hang only.
const EXIT_WITHIN: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_of_the_hub_is_killed() -> Result<()> {
    let ways = vec![engines(); PROCESSES];
    let mut ground = Ground::start("a process of the hub is killed", &ways).await?;
    for _ in 0..rounds_of(4) {
        ground.goes_on().await;
        let victim = ground.any_process();
        hurt(|| ground.cluster.hub_mut(victim).kill());
        ensure!(
            !tells(ground.cluster.hub(victim)).await,
            "a dead process tells its metrics"
        );
        ground.moment(1_000).await;
        if ground.chance.random_ratio(1, 3) {
            let after = Duration::from_millis(ground.chance.random_range(0..400));
            hurt(|| ground.cluster.hub_mut(victim).start_and_kill(after));
        }
        hurt(|| ground.cluster.hub_mut(victim).restart());
        ground.recovers().await?;
    }
    // What it took before it was killed, another process knows.
    ground.judge(&["aip_relay_duplicates_total"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_of_the_hub_stands_still() -> Result<()> {
    let ways = vec![engines(); PROCESSES];
    let mut ground = Ground::start("a process of the hub stands still", &ways).await?;
    for _ in 0..rounds_of(1) {
        ground.goes_on().await;
        let victim = ground.any_process();
        hurt(|| ground.cluster.hub(victim).pause());
        ensure!(
            !tells(ground.cluster.hub(victim)).await,
            "a process that stands still tells its metrics"
        );
        tokio::time::sleep(standstill()).await;
        ground.cluster.hub(victim).resume();
        ground.recovers().await?;
    }
    ground.judge(&[]).await
}

/// Each process is told to end and started again, one after the other, while everybody works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_processes_are_replaced_one_after_the_other() -> Result<()> {
    let ways = vec![engines(); PROCESSES];
    let mut ground = Ground::start("all processes are replaced", &ways).await?;
    let home = ground.cluster.home(&ground.url());
    let steady = Steady::start(&home, PAIRS, REST).await?;
    let rounds = rounds_of(2);
    for _ in 0..rounds {
        for number in 0..PROCESSES {
            ground.goes_on().await;
            hurt(|| replace(ground.cluster.hub_mut(number)))?;
            ground.recovers().await?;
        }
    }
    let passed = steady.finish().await?;
    report(&format!(
        "all processes are replaced: clients that were to notice nothing: {passed:?}"
    ));
    // With every round each of them is at a process that ends, at least once.
    let least = u64::try_from(rounds * PAIRS)?;
    ensure!(passed.reconnects >= least, "nobody had to reconnect: {passed:?}");
    ground.judge(&[]).await
}

/// Whether whoever asks for the metrics of a process gets an answer: how its end and its standstill show.
async fn tells(hub: &TestHub) -> bool {
    let address = hub.operator_url().trim_start_matches("http://");
    let reading = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await?;
        stream.read_u8().await
    };
    timeout(ANSWER_WITHIN, reading)
        .await
        .is_ok_and(|answer| answer.is_ok())
}

fn replace(hub: &mut TestHub) -> Result<()> {
    let status = hub.terminate(EXIT_WITHIN).context("it does not end")?;
    ensure!(status.success(), "{status}: {}", hub.log_of_this_run());
    hub.restart();
    Ok(())
}
