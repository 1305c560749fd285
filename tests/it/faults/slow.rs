//! A client that never reads.

use std::sync::Arc;

use aip_client::inbox::MemoryInbox;
use aip_client::{Client, Draft, ListenOptions, SealedEnvelope, SentStatus, SessionState};
use aip_tests::TestHub;
use aip_tests::clients::{QUICK, agent, handle};
use aip_tests::raw_socket::{RawOptions, RawSocket};
use anyhow::{Context, Result, ensure};
use tokio::task::JoinSet;

use super::{DEADLINE, roomy, until};

/// Messages that wait for the one that never reads, and the size of their text: 32 MiB on the wire in all.
const MESSAGES: usize = 2_000;
const BYTES: usize = 11 * 1024;
/// Messages in one request.
const BATCH: usize = 50;
/// Tasks that make them.
const OFFERING: usize = 4;
/// Agents that do read.
const OTHERS: usize = 10;
/// Messages that each of them gets meanwhile.
const MESSAGES_EACH: usize = 20;
/// What the hub may grow by: a quarter of what waits. Its share in flight is 1 MiB (spec §6); the rest is the work for
/// the others, and what the allocator keeps.
const GROWTH_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// A socket that shows no sign of life is closed after this time.
const SILENCE: &str = "silence_timeout_secs = 5\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_35_a_client_that_never_reads_costs_little_and_loses_nothing() -> Result<()> {
    let config = roomy("")
        .config
        .unwrap_or_default()
        .replace("[receive]", &format!("[receive]\n{SILENCE}"));
    let hub = TestHub::start_with(aip_tests::HubOptions {
        config: Some(config),
        ..Default::default()
    });
    let (alice, stuck) = (agent(&hub, "alice").await?, agent(&hub, "stuck").await?);
    offer(&hub, &alice, "stuck").await?;
    let others = Others::start(&hub, &alice).await?;
    // Once around before the reading: what the hub keeps for every agent is there then.
    others.exchange().await?;
    let before = hub.resident_bytes().context("a running hub")?;

    let options = RawOptions {
        credit: 1_000,
        receive_buffer: 4_096,
        ..RawOptions::default()
    };
    let (socket, ready) = RawSocket::open(&hub, &stuck, options).await?;
    ensure!(ready["pending"] == MESSAGES, "{ready}");
    let sessions = OTHERS + 1;
    until("the socket is there", || async { gauge(&hub).await == sessions }).await;
    // It is not read from here on.
    others.exchange().await?;
    let grown = hub
        .resident_bytes()
        .context("a running hub")?
        .saturating_sub(before);
    ensure!(grown < GROWTH_BYTES_MAX, "the hub has grown by {grown} bytes");
    until("the silent socket is closed", || async {
        gauge(&hub).await == OTHERS
    })
    .await;
    others.exchange().await?;
    drop(socket);

    let (socket, ready) = RawSocket::open(&hub, &stuck, RawOptions::default()).await?;
    ensure!(ready["pending"] == MESSAGES, "messages stay queued: {ready}");
    socket.close().await;
    take_some(&stuck).await
}

async fn gauge(hub: &TestHub) -> usize {
    let sessions = hub.metric("aip_presence_sessions").await.unwrap_or_default();
    // Small whole numbers only.
    format!("{sessions:.0}").parse().unwrap_or_default()
}

async fn offer(hub: &TestHub, alice: &Client, to: &str) -> Result<()> {
    let mut tasks = JoinSet::new();
    for _ in 0..OFFERING {
        let (alice, draft) = (alice.clone(), Draft::text(handle(hub, to), "x".repeat(BYTES)));
        tasks.spawn(async move {
            for _ in 0..MESSAGES / BATCH / OFFERING {
                offer_batch(&alice, &draft).await?;
            }
            Ok(())
        });
    }
    all(&mut tasks).await
}

async fn offer_batch(alice: &Client, draft: &Draft) -> Result<()> {
    let mut batch: Vec<SealedEnvelope> = Vec::new();
    for _ in 0..BATCH {
        batch.push(alice.seal(draft).await?);
    }
    for answer in alice.submit_batch(&batch).await {
        ensure!(answer?.status == SentStatus::Stored, "not stored");
    }
    Ok(())
}

async fn all(tasks: &mut JoinSet<Result<()>>) -> Result<()> {
    let all = async {
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(())
    };
    tokio::time::timeout(DEADLINE, all)
        .await
        .context("it does not end")?
}

/// The first ones come, in order.
async fn take_some(stuck: &Client) -> Result<()> {
    let options = ListenOptions {
        backoff: QUICK,
        ..ListenOptions::default()
    };
    let mut listener = stuck.listen(Arc::new(MemoryInbox::default()), options);
    for seq in 1..=50 {
        let message = tokio::time::timeout(DEADLINE, listener.next()).await??;
        ensure!(message.seq == seq, "{} came as number {seq}", message.seq);
        listener.ack(&message).await?;
    }
    listener.close().await;
    Ok(())
}

/// Agents with sockets that are read.
struct Others {
    alice: Client,
    listeners: Vec<(String, Arc<tokio::sync::Mutex<aip_client::Listener>>)>,
}

impl Others {
    async fn start(hub: &TestHub, alice: &Client) -> Result<Self> {
        let mut listeners = Vec::new();
        for n in 0..OTHERS {
            let name = format!("reader-{n}");
            let client = agent(hub, &name).await?;
            let options = ListenOptions {
                backoff: QUICK,
                ..ListenOptions::default()
            };
            let listener = client.listen(Arc::new(MemoryInbox::default()), options);
            ensure!(
                matches!(listener.ready().await?, SessionState::Connected { .. }),
                "no session"
            );
            listeners.push((handle(hub, &name), Arc::new(tokio::sync::Mutex::new(listener))));
        }
        Ok(Self {
            alice: alice.clone(),
            listeners,
        })
    }

    /// Each gets its messages and acknowledges them.
    async fn exchange(&self) -> Result<()> {
        let mut tasks: JoinSet<Result<()>> = JoinSet::new();
        for (to, listener) in &self.listeners {
            let (alice, to, listener) = (self.alice.clone(), to.clone(), Arc::clone(listener));
            tasks.spawn(async move {
                let mut listener = listener.lock().await;
                for _ in 0..MESSAGES_EACH {
                    let sent = alice.send(&Draft::text(&to, "how are you?")).await?;
                    let message = listener.next().await?;
                    ensure!(message.id == sent.id, "another message came");
                    listener.ack(&message).await?;
                }
                Ok(())
            });
        }
        all(&mut tasks).await
    }
}
