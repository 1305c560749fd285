//! NATS servers that die or stand still: one of three, the one that leads, all of them.

use std::time::Duration;

use aip_engines::NatsCluster;
use aip_tests::{rounds_of, standstill};
use anyhow::Result;

use super::ground::Ground;
use super::{hurt, on_servers};

const SERVERS: usize = 3;
/// Processes of the hub.
const PROCESSES: usize = 2;
/// The hub's streams of mailboxes (the first one) and of cursors.
const MAILBOXES: &str = "MB_0";
const CURSORS: &str = "CUR";
/// Longer than an election takes to begin: a leader that stands still is to lose its office.
const ELECTION: Duration = Duration::from_secs(10);

/// Three servers and a hub on them.
async fn start(fault: &'static str) -> Result<(NatsCluster, Ground)> {
    let nats = hurt(|| NatsCluster::start(SERVERS, false));
    let ways = vec![on_servers(&nats); PROCESSES];
    let ground = Ground::start(fault, &ways).await?;
    Ok((nats, ground))
}

/// The server that leads this stream of the hub.
fn leader(nats: &NatsCluster, ground: &Ground, stream: &str) -> usize {
    let prefix = ground.cluster.engines().prefix.to_uppercase();
    hurt(|| nats.await_stream_leader(&format!("{prefix}_{stream}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_nats_server_is_killed() -> Result<()> {
    let (mut nats, mut ground) = start("one NATS server is killed").await?;
    // Each of them in turn, so that each process loses its connection in some round.
    for round in 0..rounds_of(SERVERS) {
        ground.goes_on().await;
        hurt(|| nats.kill(round % SERVERS));
        ground.moment(1_000).await;
        hurt(|| nats.restart(round % SERVERS));
        ground.recovers().await?;
    }
    ground.judge(&["aip_nats_reconnects_total"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_of_a_stream_is_killed() -> Result<()> {
    let (mut nats, mut ground) = start("the leader of a stream is killed").await?;
    for _ in 0..rounds_of(2) {
        ground.goes_on().await;
        let leader = leader(&nats, &ground, MAILBOXES);
        hurt(|| nats.kill(leader));
        // The others elect another one, and the mailboxes work before the dead one is back.
        ground.recovers().await?;
        hurt(|| nats.restart(leader));
        ground.recovers().await?;
    }
    ground.judge(&["aip_nats_unanswered_total"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_nats_servers_are_killed_at_once() -> Result<()> {
    let (mut nats, mut ground) = start("all NATS servers are killed").await?;
    for _ in 0..rounds_of(2) {
        ground.goes_on().await;
        hurt(|| (0..SERVERS).for_each(|server| nats.kill(server)));
        ground.moment(2_000).await;
        hurt(|| nats.restart_all(&[0, 1, 2]));
        ground.recovers().await?;
    }
    ground.judge(&["aip_nats_reconnects_total"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_nats_server_stands_still() -> Result<()> {
    let (mut nats, mut ground) = start("one NATS server stands still").await?;
    for _ in 0..rounds_of(1) {
        ground.goes_on().await;
        // One that is missed at once: every ack needs it.
        let victim = leader(&nats, &ground, CURSORS);
        hurt(|| nats.pause(victim));
        tokio::time::sleep(standstill()).await;
        hurt(|| nats.resume(victim));
        ground.recovers().await?;
    }
    ground.judge(&["aip_nats_timeouts_total"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_of_a_stream_stands_still() -> Result<()> {
    let (mut nats, mut ground) = start("the leader of a stream stands still").await?;
    for _ in 0..rounds_of(1) {
        ground.goes_on().await;
        let leader = leader(&nats, &ground, MAILBOXES);
        hurt(|| nats.pause(leader));
        tokio::time::sleep(standstill().max(ELECTION)).await;
        hurt(|| nats.resume(leader));
        ground.recovers().await?;
    }
    ground.judge(&["aip_nats_timeouts_total"]).await
}
