//! Many sockets: what an idle one costs (P9), and how fast mail is pushed to a thousand (P10).

use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde_json::json;
use tokio::task::JoinSet;

use super::{KEY, Options};
use crate::agents::{Agent, Crowd, posts};
use crate::hub::{Hub, Straw, StrawStore};
use crate::load::{self, Pace, Requests};
use crate::process::usage;
use crate::report::{Bound, Row};
use crate::socket::Socket;

const IDLE_SOCKETS: usize = 10_000;
const PUSHED_SOCKETS: usize = 1_000;
const MESSAGES_EACH: usize = 20;
const CONNECTING: usize = 32;

/// Measures the goals of this file.
pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    if options.wants(&["P9"]) {
        rows.extend(idle(options).await?);
    }
    if options.wants(&["P10"]) {
        rows.push(push(options).await?);
    }
    Ok(rows)
}

async fn connect(hub: &Hub, agents: &[Agent], credit: u32) -> anyhow::Result<Vec<Socket>> {
    stream::iter(agents)
        .map(|agent| async move { anyhow::Ok(Socket::agent(hub.port, &hub.domain, agent, credit).await?.0) })
        .buffer_unordered(CONNECTING)
        .try_collect()
        .await
}

/// How long the sockets are watched: longer than the time after which the hub pings a silent one.
const WATCHED: Duration = Duration::from_secs(90);

/// One round only: ten thousand sockets take a while to connect, and memory does not jitter.
#[expect(clippy::cast_precision_loss, reason = "ten thousand sockets")]
async fn idle(options: &Options) -> anyhow::Result<Vec<Row>> {
    let scratch = options.scratch()?;
    let hub = Hub::start(&scratch.path().join("hub"))?;
    let crowd = Crowd::register(hub.port, &hub.domain, "idle", IDLE_SOCKETS, &KEY).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = usage(hub.pid());
    let sockets = connect(&hub, &crowd.agents, 64).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let after = usage(hub.pid());
    let count = sockets.len();
    // Each socket is read, so that the hub's pings are answered.
    let mut readers = JoinSet::new();
    for mut socket in sockets {
        readers.spawn(async move { while socket.text().await.is_ok() {} });
    }
    let watched = Instant::now();
    tokio::time::sleep(WATCHED).await;
    let idle_cpu = (usage(hub.pid()).cpu_secs - after.cpu_secs) / watched.elapsed().as_secs_f64();
    anyhow::ensure!(
        readers.len() == count && readers.try_join_next().is_none(),
        "an idle socket was closed"
    );
    let each = (after.resident_kib - before.resident_kib) / count as f64;
    let figures = format!(
        "{:.0} MiB before, {:.0} MiB after",
        before.resident_kib / 1024.0,
        after.resident_kib / 1024.0
    );
    Ok(vec![
        Row {
            id: "P9",
            what: "KiB per idle authenticated socket, 10,000",
            bound: Bound::AtMost(30.0),
            rounds: vec![each],
            figures,
        },
        Row {
            id: "P9",
            what: "CPU of 10,000 idle sockets, percent of a core",
            bound: Bound::AtMost(1.0),
            rounds: vec![idle_cpu * 100.0],
            figures: String::new(),
        },
    ])
}

async fn push(options: &Options) -> anyhow::Result<Row> {
    let scratch = options.scratch()?;
    let hub = Hub::start(&scratch.path().join("hub"))?;
    let straw = Straw::start(&scratch.path().join("straw"), &KEY, StrawStore::Dedup)?;
    let mut bare = Vec::new();
    for _ in 0..PUSHED_SOCKETS {
        bare.push(Socket::open(straw.port, "/ws", None).await?);
    }
    let mut rounds = Vec::new();
    let mut figures = String::new();
    for round in 0..options.rounds() {
        let mut crowd = Crowd::register(
            hub.port,
            &hub.domain,
            &format!("push{round}x"),
            PUSHED_SOCKETS * 2,
            &KEY,
        )
        .await?;
        let envelopes = crowd.envelopes(PUSHED_SOCKETS * MESSAGES_EACH);
        let frame = envelopes.first().cloned().unwrap_or_default();
        load::run(
            hub.port,
            64,
            Duration::from_mins(2),
            Pace::Closed,
            &Requests::once(posts("/api/v1/messages", &envelopes)),
        )
        .await?;
        let (_, readers) = crowd.agents.split_at(PUSHED_SOCKETS);
        let ours = pushed(connect(&hub, readers, 0).await?).await?;
        let theirs;
        (theirs, bare) = fanned(bare, straw.port, &frame).await?;
        rounds.push(ours / theirs);
        figures = format!("{ours:.0}/s, {theirs:.0}/s");
    }
    Ok(Row {
        id: "P10",
        what: "push to 1,000 sockets / bare actix-ws fan-out",
        bound: Bound::AtLeast(0.7),
        rounds,
        figures,
    })
}

/// Frames per second from the moment the readers give credit until all mail is there.
#[expect(clippy::cast_precision_loss, reason = "twenty thousand messages")]
async fn pushed(sockets: Vec<Socket>) -> anyhow::Result<f64> {
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for mut socket in sockets {
        tasks.spawn(async move {
            socket.send(&json!({"t": "credit", "n": 64})).await?;
            for _ in 0..MESSAGES_EACH {
                while !socket.text().await?.contains("\"t\":\"msg\"") {}
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok((PUSHED_SOCKETS * MESSAGES_EACH) as f64 / started.elapsed().as_secs_f64())
}

/// The same frames by a server that does nothing but send them.
#[expect(clippy::cast_precision_loss, reason = "twenty thousand messages")]
async fn fanned(sockets: Vec<Socket>, port: u16, frame: &[u8]) -> anyhow::Result<(f64, Vec<Socket>)> {
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for mut socket in sockets {
        tasks.spawn(async move {
            for _ in 0..MESSAGES_EACH {
                socket.text().await?;
            }
            anyhow::Ok(socket)
        });
    }
    let mut trigger = load::Connection::open(port).await?;
    trigger
        .call(&load::post(&format!("/fan/{MESSAGES_EACH}"), "text/plain", frame))
        .await?;
    let mut sockets = Vec::new();
    while let Some(done) = tasks.join_next().await {
        sockets.push(done?.context("a bare socket ended")?);
    }
    Ok((
        (PUSHED_SOCKETS * MESSAGES_EACH) as f64 / started.elapsed().as_secs_f64(),
        sockets,
    ))
}
