//! A hub on engines is killed and started again, and a thousand agents come back at once.

use std::time::{Duration, Instant};

use aip_engines::{Nats, NatsOptions, Postgres, PostgresOptions, Redis, RedisOptions};
use aip_protocol::name::Domain;
use anyhow::Context;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{KEY, Options};
use crate::agents::{Agent, Crowd, posts};
use crate::hub::{Engines, Hub};
use crate::load::{self, Pace, Requests};
use crate::process::free_port;
use crate::report::{Bound, Row, median};
use crate::socket::Socket;

const AGENTS: usize = 1_000;

/// How many connect at the same time before the hub is killed; afterwards all do.
const CONNECTING: usize = 32;

/// How long an agent may take until it counts as not served.
const SERVED_WITHIN: Duration = Duration::from_secs(30);

/// The pause of an agent that was not let in.
const PAUSE: Duration = Duration::from_millis(50);

/// The three engines, which live on while the hub does not.
struct World {
    _nats: Nats,
    _postgres: Postgres,
    _redis: Redis,
    engines: Engines,
}

impl World {
    fn start() -> anyhow::Result<Self> {
        let nats = Nats::try_start(&NatsOptions::default())?;
        let postgres = Postgres::try_start(&PostgresOptions::default())?;
        let redis = Redis::try_start(&RedisOptions::default())?;
        Ok(Self {
            engines: Engines {
                registry: postgres.database("hub"),
                mailboxes: nats.url(),
                shared: redis.url(),
                replicas: 1,
            },
            _nats: nats,
            _postgres: postgres,
            _redis: redis,
        })
    }
}

/// How long one agent waited, from its first attempt.
#[derive(Clone, Copy)]
struct Served {
    ready: Duration,
    message: Duration,
}

/// The figures of one round.
struct Round {
    served: usize,
    ready_ms: [f64; 2],
    message_ms: [f64; 2],
    hub_ready: Duration,
}

/// Measures the goals of this file.
pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let scratch = options.scratch()?;
    let folder = scratch.path().join("hub");
    let world = World::start()?;
    let mut hub = Hub::start_on(&folder, free_port()?, &world.engines)?;
    let mut crowd = Crowd::register(hub.port, &hub.domain, "back", AGENTS * 2, &KEY).await?;
    let mut rounds = Vec::new();
    for _ in 0..options.rounds() {
        let (_, agents) = crowd.agents.split_at(AGENTS);
        let connected = connect_all(&hub, agents).await?;
        // A message for each, which the agents of now do not take: they gave no credit.
        let requests = Requests::once(posts("/api/v1/messages", &crowd.envelopes(AGENTS)));
        let sent = load::run(hub.port, 64, Duration::from_mins(1), Pace::Closed, &requests).await?;
        anyhow::ensure!(
            sent.answers == AGENTS as u64,
            "{} messages were sent",
            sent.answers
        );
        let port = hub.port;
        drop(hub);
        drop(connected);
        hub = Hub::start_on(&folder, port, &world.engines)?;
        let (_, agents) = crowd.agents.split_at(AGENTS);
        rounds.push(come_back(&hub, agents).await?);
    }
    Ok(rows(&rounds))
}

async fn connect_all(hub: &Hub, agents: &[Agent]) -> anyhow::Result<Vec<Socket>> {
    stream::iter(agents)
        .map(|agent| async move { anyhow::Ok(Socket::agent(hub.port, &hub.domain, agent, 0).await?.0) })
        .buffer_unordered(CONNECTING)
        .try_collect()
        .await
}

/// All at once, each until it has its message and the ack of it is durable.
async fn come_back(hub: &Hub, agents: &[Agent]) -> anyhow::Result<Round> {
    let started = Instant::now();
    let all: Vec<Option<Served>> = stream::iter(agents)
        .map(|agent| async move {
            let served = until_served(hub.port, &hub.domain, agent, started);
            timeout(SERVED_WITHIN, served).await.ok()
        })
        .buffer_unordered(agents.len())
        .collect()
        .await;
    let served: Vec<Served> = all.into_iter().flatten().collect();
    Ok(Round {
        served: served.len(),
        ready_ms: percentiles_ms(served.iter().map(|agent| agent.ready)),
        message_ms: percentiles_ms(served.iter().map(|agent| agent.message)),
        hub_ready: hub.ready_after,
    })
}

/// Tries until it works; the caller limits the time.
async fn until_served(port: u16, domain: &Domain, agent: &Agent, started: Instant) -> Served {
    loop {
        if let Ok(served) = serve(port, domain, agent, started).await {
            return served;
        }
        sleep(PAUSE).await;
    }
}

async fn serve(port: u16, domain: &Domain, agent: &Agent, started: Instant) -> anyhow::Result<Served> {
    let (mut socket, ready) = Socket::agent(port, domain, agent, 8).await?;
    let ready_after = started.elapsed();
    let message = socket.frame("msg").await?;
    let served = Served {
        ready: ready_after,
        message: started.elapsed(),
    };
    let seq = message.get("seq").and_then(Value::as_u64).context("no seq")?;
    let epoch = ready.get("epoch").cloned().unwrap_or_default();
    socket
        .send(&json!({"t": "ack", "epoch": epoch, "upto": seq, "also": []}))
        .await?;
    socket.frame("acked").await?;
    Ok(served)
}

/// The 50th and the 99th percentile.
fn percentiles_ms(times: impl Iterator<Item = Duration>) -> [f64; 2] {
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    [50, 99].map(|share| {
        let at = times.get(times.len() * share / 100);
        at.map_or(f64::NAN, Duration::as_secs_f64) * 1e3
    })
}

#[expect(clippy::cast_precision_loss, reason = "a thousand agents")]
fn rows(rounds: &[Round]) -> Vec<Row> {
    let medians = |what: fn(&Round) -> [f64; 2]| {
        let of = |at: usize| {
            median(
                &rounds
                    .iter()
                    .filter_map(|r| what(r).get(at).copied())
                    .collect::<Vec<_>>(),
            )
        };
        format!("p50 {:.0} ms, p99 {:.0} ms", of(0), of(1))
    };
    let ready = rounds.last().map_or(0.0, |r| r.hub_ready.as_secs_f64());
    vec![
        Row {
            id: "reconnect",
            what: "of 1,000 agents that come back at once, served",
            bound: Bound::AtLeast(AGENTS as f64),
            rounds: rounds.iter().map(|r| r.served as f64).collect(),
            figures: format!("the hub was ready {ready:.2} s after its start"),
        },
        Row {
            id: "reconnect",
            what: "time to `ready`, p99, ms",
            bound: Bound::Stated,
            rounds: rounds.iter().map(|r| r.ready_ms[1]).collect(),
            figures: medians(|r| r.ready_ms),
        },
        Row {
            id: "reconnect",
            what: "time to the first message, p99, ms",
            bound: Bound::Stated,
            rounds: rounds.iter().map(|r| r.message_ms[1]).collect(),
            figures: medians(|r| r.message_ms),
        },
    ]
}
