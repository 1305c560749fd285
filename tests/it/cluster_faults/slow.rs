//! A client that never reads, among two hundred that do.

use std::sync::Arc;
use std::time::Duration;

use aip_client::inbox::MemoryInbox;
use aip_client::{Client, Draft, ListenOptions, SentStatus};
use aip_tests::clients::{QUICK, agent, handle};
use aip_tests::raw_socket::{RawOptions, RawSocket};
use aip_tests::rounds_of;
use anyhow::{Context, Result, ensure};

use super::engines;
use super::ground::Ground;
use super::steady::Steady;
use crate::faults::DEADLINE;

/// Processes of the hub.
const PROCESSES: usize = 2;
/// Agents that do read, and their rest between two messages.
const OTHERS: usize = 200;
const REST: Duration = Duration::from_secs(1);
/// Messages that wait for the one that never reads, and the size of their text: more than what may be in flight to a
/// socket, and more than the system keeps for one.
const MESSAGES: u64 = 150;
const BYTES: usize = 11 * 1024;
/// Messages in one request.
const BATCH: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_among_two_hundred_harms_nobody() -> Result<()> {
    let ways = vec![engines(); PROCESSES];
    let mut ground = Ground::start("a slow reader among 200", &ways).await?;
    let home = ground.cluster.home(&ground.url());
    let (alice, stuck) = (agent(&home, "alice").await?, agent(&home, "stuck").await?);
    let to = handle(&home, "stuck");
    let steady = Steady::start(&home, OTHERS, REST).await?;
    for _ in 0..rounds_of(1) {
        offer(&alice, &to).await?;
        let hub = ground.any_process();
        let options = RawOptions {
            credit: 1_000,
            receive_buffer: 4_096,
            ..RawOptions::default()
        };
        let (socket, ready) = RawSocket::open(ground.cluster.hub(hub), &stuck, options).await?;
        ensure!(ready["pending"] == MESSAGES, "{ready}");
        // It is not read from here on.
        steady.progress(3 * OTHERS as u64).await;
        drop(socket);
        ground.recovers().await?;
        take_all(&stuck).await?;
    }
    let passed = steady.finish().await?;
    ensure!(
        passed.reconnects == 0,
        "a slow reader is felt by others: {passed:?}"
    );
    ground.judge(&[]).await
}

async fn offer(alice: &Client, to: &str) -> Result<()> {
    let draft = Draft::text(to, "x".repeat(BYTES));
    let mut left = usize::try_from(MESSAGES)?;
    while left > 0 {
        let mut batch = Vec::new();
        for _ in 0..BATCH.min(left) {
            batch.push(alice.seal(&draft).await?);
        }
        for answer in alice.submit_batch(&batch).await {
            ensure!(answer?.status == SentStatus::Stored, "not stored");
        }
        left -= batch.len();
    }
    Ok(())
}

/// All of them come once the reader reads, each once and in order.
async fn take_all(stuck: &Client) -> Result<()> {
    let options = ListenOptions {
        backoff: QUICK,
        ..ListenOptions::default()
    };
    let mut listener = stuck.listen(Arc::new(MemoryInbox::default()), options);
    let mut before = 0;
    for _ in 0..MESSAGES {
        let next = tokio::time::timeout(DEADLINE, listener.next()).await;
        let message = next.context("a message is missing")??;
        ensure!(message.seq > before, "{} came after {before}", message.seq);
        before = message.seq;
        listener.ack(&message).await?;
    }
    listener.close().await;
    Ok(())
}
