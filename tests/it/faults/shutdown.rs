//! SIGTERM with many sockets and writes in flight.

use std::time::Duration;

use aip_client::Client;
use aip_tests::clients::agent;
use aip_tests::raw_socket::{RawOptions, RawSocket};
use aip_tests::{TestHub, seed};
use anyhow::{Context, Result, ensure};
use tokio::task::JoinSet;

use super::load::Load;
use super::{DEADLINE, assert_good, restart, roomy};

/// Agents with sockets, and sockets that share the mailbox of each.
const AGENTS: usize = 20;
const SOCKETS_EACH: usize = 10;
/// The time that the hub gives itself; it says so in its log when it was not enough.
const SHUTDOWN: &str = "[http]\nshutdown_timeout_secs = 30\n";
const OVERTIME: &str = "The shutdown time is over";
/// Ends a hang only.
const EXIT_WITHIN: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn row_80_sigterm_closes_every_socket_and_loses_nothing() -> Result<()> {
    let seed = seed("shutdown");
    let mut hub = TestHub::start_with(roomy(SHUTDOWN));
    let load = Load::start(&hub, seed).await?;
    let mut sockets = JoinSet::new();
    for n in 0..AGENTS {
        let client = agent(&hub, &format!("idle-{n}")).await?;
        for _ in 0..SOCKETS_EACH {
            let socket = open(&hub, &client).await?;
            sockets.spawn(socket.closed());
        }
    }
    load.progress(100).await;
    let status = tokio::task::block_in_place(|| hub.terminate(EXIT_WITHIN)).context("it does not end")?;
    ensure!(status.success(), "{status}: {}", hub.log_of_this_run());
    ensure!(
        !hub.log_of_this_run().contains(OVERTIME),
        "it had to hurry: {}",
        hub.log_of_this_run()
    );
    let codes = tokio::time::timeout(DEADLINE, sockets.join_all()).await?;
    ensure!(codes.len() == AGENTS * SOCKETS_EACH, "{} sockets", codes.len());
    ensure!(codes.iter().all(|code| *code == Some(1001)), "{codes:?}");
    restart(&mut hub);
    assert_good("shutdown", seed, &load.finish().await?);
    Ok(())
}

async fn open(hub: &TestHub, client: &Client) -> Result<RawSocket> {
    let options = RawOptions {
        share: true,
        ..RawOptions::default()
    };
    let opened = tokio::time::timeout(DEADLINE, RawSocket::open(hub, client, options)).await?;
    Ok(opened?.0)
}
