//! Mail between hubs: how fast it passes at several distances, and what peers cost that are dead or have nothing to do.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aip_engines::Proxy;
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::Domain;
use anyhow::{Context, anyhow, bail};
use tempfile::TempDir;
use tokio::time::sleep;

use super::{KEY, Options};
use crate::agents::{Agent, Crowd, now, posts, seeded};
use crate::hub::Hub;
use crate::load::{self, Pace, Requests};
use crate::process::{free_port, memory, usage};
use crate::report::{Bound, Row};

/// No limit of a single peer is in the way.
pub(super) const SETTINGS: &str = "[federation]\nramp = false\npeer_items_per_sec = 1000000\npeer_bytes_per_sec = 1000000000000\n\
                        queue_messages_max = 1000000\nqueue_bytes_max = 100000000000\n\
                        queue_messages_per_sender_max = 1000000\n";
/// Round trips between the hubs, in milliseconds.
const ROUND_TRIPS: [(&str, u64); 3] = [("peers-0", 0), ("peers-50", 50), ("peers-300", 300)];
/// Agents on either side.
const AGENTS: usize = 200;
const WIDTH: usize = 16;
/// Messages of one round at most: what is prepared is signed and sealed beforehand.
const MESSAGES_MAX: usize = 20_000;
/// Ends what would hang.
const DEADLINE: Duration = Duration::from_mins(5);
const DEAD: u16 = 1_000;
/// Who writes to them: one sender may write to a hundred domains an hour that the hub never met.
const DEAD_SENDERS: usize = 20;
const IDLE: u16 = 10_000;
/// How long a quiet hub is watched.
const WATCHED: Duration = Duration::from_mins(1);
/// Messages that wait while the hubs are cut off from each other, and for how long they are.
const PARTED: usize = 10_000;
const PARTED_FOR: Duration = Duration::from_secs(20);

/// Measures the goals.
pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (id, millis) in ROUND_TRIPS {
        if options.wants(&[id]) {
            rows.push(between(options, id, millis).await?);
        }
    }
    if options.wants(&["peers-heal"]) {
        rows.push(heal(options).await?);
    }
    if options.wants(&["peers-dead"]) {
        rows.extend(dead(options).await?);
    }
    if options.wants(&["peers-idle"]) {
        rows.extend(idle(options).await?);
    }
    Ok(rows)
}

/// Two hubs, the way to one of them, and agents of both.
struct Pair {
    alpha: Hub,
    beta: Hub,
    there: PathBuf,
    way: Proxy,
    senders: Crowd,
    recipients: Crowd,
    _scratch: TempDir,
}

impl Pair {
    async fn start(options: &Options) -> anyhow::Result<Self> {
        let scratch = options.scratch()?;
        let (here, there) = (scratch.path().join("here"), scratch.path().join("there"));
        let port = free_port()?;
        let way = Proxy::to(std::net::SocketAddr::from(([127, 0, 0, 1], port)));
        let alpha = Hub::start_with(&here, free_port()?, SETTINGS)?;
        let public = format!("{SETTINGS}[hub]\npublic_url = \"http://{}\"\n", way.addr());
        let beta = Hub::start_with(&there, port, &public)?;
        let senders = Crowd::register(alpha.port, &alpha.domain, "s", AGENTS, &KEY).await?;
        let recipients = Crowd::register(beta.port, &beta.domain, "r", AGENTS, &KEY).await?;
        Ok(Self {
            alpha,
            beta,
            there,
            way,
            senders,
            recipients,
            _scratch: scratch,
        })
    }

    /// Messages from hub to hub.
    fn wire(&mut self, count: usize) -> Vec<Vec<u8>> {
        self.senders.envelopes_between(&self.recipients, count)
    }

    /// Hands messages in at the one hub; says how many the other one has stored once all are there.
    async fn hand_in(&self, wire: &[Vec<u8>]) -> anyhow::Result<u64> {
        let wanted = stored(&self.beta, &self.there).await? + u64::try_from(wire.len())?;
        let requests = Requests::once(posts("/api/v1/messages", wire));
        load::run(self.alpha.port, WIDTH, DEADLINE, Pace::Closed, &requests).await?;
        Ok(wanted)
    }

    /// Waits until so many messages are stored at the other hub.
    async fn arrived(&self, wanted: u64) -> anyhow::Result<()> {
        let begun = Instant::now();
        while stored(&self.beta, &self.there).await? < wanted {
            if begun.elapsed() > DEADLINE {
                bail!(
                    "{} of {wanted} messages passed",
                    stored(&self.beta, &self.there).await?
                );
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}

/// What passes from hub to hub, against what one hub accepts from its own agents for its own agents.
async fn between(options: &Options, id: &'static str, round_trip_millis: u64) -> anyhow::Result<Row> {
    let mut pair = Pair::start(options).await?;
    pair.way.delay(Duration::from_millis(round_trip_millis / 2));
    let (mut rounds, mut figures) = (Vec::new(), String::new());
    for _ in 0..options.rounds() {
        let wire = pair.senders.envelopes(MESSAGES_MAX);
        let requests = Requests::once(posts("/api/v1/messages", &wire));
        let alone = load::run(pair.alpha.port, WIDTH, options.secs(), Pace::Closed, &requests).await?;
        let wire = pair.wire(usize::try_from(alone.answers)?);
        let begun = Instant::now();
        let wanted = pair.hand_in(&wire).await?;
        pair.arrived(wanted).await?;
        #[expect(clippy::cast_precision_loss, reason = "counts of a short run fit a double")]
        let passed = alone.answers as f64 / begun.elapsed().as_secs_f64();
        rounds.push(passed / alone.rate);
        figures = format!("{passed:.0}/s between hubs, {:.0}/s accepted by one", alone.rate);
    }
    Ok(Row {
        id,
        what: "messages that pass between hubs / accepted by one hub",
        bound: Bound::AtLeast(0.5),
        rounds,
        figures,
    })
}

/// From the moment that the way is whole again until all that waited has arrived.
async fn heal(options: &Options) -> anyhow::Result<Row> {
    let mut pair = Pair::start(options).await?;
    let first = pair.wire(1);
    let wanted = pair.hand_in(&first).await?;
    pair.arrived(wanted).await?;
    let mut rounds = Vec::new();
    for _ in 0..options.rounds() {
        let wire = pair.wire(PARTED);
        pair.way.cut();
        let cut = Instant::now();
        let wanted = pair.hand_in(&wire).await?;
        sleep(PARTED_FOR.saturating_sub(cut.elapsed())).await;
        pair.way.heal();
        let healed = Instant::now();
        pair.arrived(wanted).await?;
        rounds.push(healed.elapsed().as_secs_f64());
    }
    Ok(Row {
        id: "peers-heal",
        what: "seconds until 10,000 messages have passed after a partition of 20 s",
        bound: Bound::AtMost(30.0),
        figures: format!("{rounds:.1?} s"),
        rounds,
    })
}

/// Messages of peers that a hub has stored.
pub(super) async fn stored(hub: &Hub, folder: &Path) -> anyhow::Result<u64> {
    let metrics = hub.metrics(folder).await?;
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("aip_federation_items_total{result=\"stored\"} "));
    line.map_or(Ok(0), |count| count.parse().context("a count"))
}

/// Peers that nobody answers for, each with a message that waits.
async fn dead(options: &Options) -> anyhow::Result<Vec<Row>> {
    let scratch = options.scratch()?;
    let folder = scratch.path().join("hub");
    let hub = Hub::start_with(&folder, free_port()?, SETTINGS)?;
    let senders = Crowd::register(hub.port, &hub.domain, "s", DEAD_SENDERS, &KEY).await?;
    let (before, mut rng) = (memory(hub.pid()).anonymous_kib, seeded("dead"));
    let mut wire = Vec::new();
    for (port, from) in (1..=DEAD).zip(senders.agents.iter().cycle()) {
        // Nothing listens on these ports: they are the system's own.
        let domain = Domain::parse(&format!("localhost:{port}")).map_err(|refusal| anyhow!("{refusal}"))?;
        let to = Agent::new(&domain, "nobody", SigningKey::from_seed(KEY), &mut rng)?;
        wire.push(from.envelope(&to, now(), &mut rng));
    }
    let requests = Requests::once(posts("/api/v1/messages", &wire));
    load::run(hub.port, WIDTH, DEADLINE, Pace::Closed, &requests).await?;
    // The first minute is that of the first attempts: what it costs from then on is the question.
    sleep(WATCHED).await;
    costs(&hub, before, ("peers-dead", 0.05, 50.0)).await
}

/// Peers that are known, and for which nothing waits.
async fn idle(options: &Options) -> anyhow::Result<Vec<Row>> {
    let scratch = options.scratch()?;
    let folder = scratch.path().join("hub");
    let hub = Hub::start_with(&folder, free_port()?, SETTINGS)?;
    let before = memory(hub.pid()).anonymous_kib;
    for number in 0..IDLE {
        hub.decide(&folder, &format!("peer-{number}.example"), "allowed")
            .await?;
    }
    costs(&hub, before, ("peers-idle", 0.05, 20.0)).await
}

/// The share of one core, and the memory beyond `before`, over [`WATCHED`].
async fn costs(
    hub: &Hub,
    before_kib: f64,
    (id, cores_max, mebibytes_max): (&'static str, f64, f64),
) -> anyhow::Result<Vec<Row>> {
    let begun = usage(hub.pid());
    sleep(WATCHED).await;
    let spent = usage(hub.pid()).cpu_secs - begun.cpu_secs;
    let grown = (memory(hub.pid()).anonymous_kib - before_kib) / 1024.0;
    let row = |what, bound, value, figures| Row {
        id,
        what,
        bound,
        rounds: vec![value],
        figures,
    };
    let cores = spent / WATCHED.as_secs_f64();
    Ok(vec![
        row(
            "share of one core",
            Bound::AtMost(cores_max),
            cores,
            format!("{spent:.2} s in 60 s"),
        ),
        row(
            "memory in MiB",
            Bound::AtMost(mebibytes_max),
            grown,
            format!("{grown:.1} MiB more than before"),
        ),
    ])
}
