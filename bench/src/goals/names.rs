//! Names: resolving from the cache (P11) and from the disk (P12), and registering (P13).

use std::time::Duration;

use super::{KEY, Options};
use crate::agents::{Agent, Crowd, now, seeded};
use crate::hub::{Hub, Straw, StrawStore};
use crate::load::{self, Pace, Requests};
use crate::report::{Bound, Row};
use crate::yardstick::sqlite;

const AGENTS: usize = 2_000;

fn resolve(agent: &Agent) -> bytes::Bytes {
    load::get(&format!("/api/v1/resolve/{}", agent.did.handle().encoded()))
}

/// One side against its yardstick, round after round.
#[derive(Default)]
struct Series {
    ratios: Vec<f64>,
    figures: String,
}

impl Series {
    fn add(&mut self, ours: f64, theirs: f64, unit: &str) {
        self.ratios.push(ours / theirs);
        self.figures = format!("{ours:.0}{unit}, {theirs:.0}{unit}");
    }

    fn row(self, id: &'static str, what: &'static str, bound: Bound) -> Row {
        Row {
            id,
            what,
            bound,
            rounds: self.ratios,
            figures: self.figures,
        }
    }
}

/// Measures the goals of this file.
pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let scratch = options.scratch()?;
    let folder = scratch.path().join("hub");
    let mut hub = Hub::start(&folder)?;
    let straw = Straw::start(&scratch.path().join("straw"), &KEY, StrawStore::Dedup)?;
    let pool = sqlite::open(&scratch.path().join("sqlite")).await?;
    let crowd = Crowd::register(hub.port, &hub.domain, "named", AGENTS, &KEY).await?;
    let hello = Requests::repeated(vec![load::get("/hello")]);
    let live = Requests::repeated(vec![load::get("/health/live")]);
    let all: Vec<_> = crowd.agents.iter().map(resolve).collect();
    let (mut cached, mut cold, mut registered) = (Series::default(), Series::default(), Series::default());
    for round in 0..options.rounds() {
        let port = hub.port;
        drop(hub);
        hub = Hub::start_at(&folder, port)?;
        let each_once = Requests::once(all.clone());
        let first = load::run(port, 1, Duration::from_mins(1), Pace::Closed, &each_once).await?;
        let greeting = load::run(straw.port, 1, options.secs(), Pace::Closed, &hello).await?;
        let select = sqlite::select_p50_us(&pool, options.secs()).await?;
        cold.add(
            first.percentile_us(50.0),
            select + greeting.percentile_us(50.0),
            " µs",
        );

        let again = Requests::repeated(all.clone());
        let ours = load::run(port, 64, options.secs(), Pace::Closed, &again).await?;
        let trivial = load::run(port, 64, options.secs(), Pace::Closed, &live).await?;
        cached.add(ours.rate, trivial.rate, "/s");

        let ours = register(&hub, options, round).await?;
        registered.add(
            ours,
            sqlite::inserts(&pool, options.secs(), &format!("round{round}x")).await?,
            "/s",
        );
    }
    Ok(vec![
        cached.row(
            "P11",
            "resolve, cached / the hub's own trivial answer",
            Bound::AtLeast(0.6),
        ),
        cold.row(
            "P12",
            "resolve, cold, p50 / (select + greeting)",
            Bound::AtMost(1.5),
        ),
        registered.row(
            "P13",
            "registrations, 64 senders / SQLite autocommit",
            Bound::AtLeast(5.0),
        ),
    ])
}

/// Durable registrations per second, 64 in flight.
pub(super) async fn register(hub: &Hub, options: &Options, round: usize) -> anyhow::Result<f64> {
    const PER_SEC: f64 = 10_000.0;
    let mut rng = seeded(&format!("register{round}"));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive count"
    )]
    let count = (options.secs().as_secs_f64() * PER_SEC) as usize;
    let mut wire = Vec::with_capacity(count);
    for index in 0..count {
        let key = aip_protocol::multikey::SigningKey::from_seed(KEY);
        let agent = Agent::new(&hub.domain, &format!("r{round}x{index}"), key, &mut rng)?;
        wire.push(load::post(
            "/api/v1/agents",
            "application/json",
            &agent.registration(now())?,
        ));
    }
    Ok(
        load::run(hub.port, 64, options.secs(), Pace::Closed, &Requests::once(wire))
            .await?
            .rate,
    )
}
