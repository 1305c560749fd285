//! Accepting envelopes: verified, deduplicated, synced before the 202 (P1, P2, P3, P5, P6, P18).

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;

use super::{KEY, Options};
use crate::agents::{Crowd, ENVELOPE_BYTES, posts};
use crate::hub::{Hub, Straw, StrawStore};
use crate::load::{self, Load, Pace, Requests};
use crate::process::usage;
use crate::report::{Bound, Row};
use crate::yardstick::fdatasync::{self, Disk};
use crate::yardstick::jetstream::JetStream;

/// Envelopes prepared for a run; more than any machine takes in the time of one.
const PER_SEC: f64 = 30_000.0;

/// Agents of the crowd: half of them send.
const CROWD: usize = 512;

/// Everything that one round needs.
struct Bench<'a> {
    options: &'a Options,
    hub: Hub,
    straw: Straw,
    no_dedup: Straw,
    crowd: Crowd,
    nats: JetStream,
    disk: &'a Path,
}

/// Measures the goals of this file.
pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let scratch = options.scratch()?;
    let hub = Hub::start(&scratch.path().join("hub"))?;
    let crowd = Crowd::register(hub.port, &hub.domain, "crowd", CROWD, &KEY).await?;
    let nats = JetStream::start(true).await?;
    let mut bench = Bench {
        options,
        straw: Straw::start(&scratch.path().join("straw"), &KEY, StrawStore::Dedup)?,
        no_dedup: Straw::start(&scratch.path().join("no-dedup"), &KEY, StrawStore::NoDedup)?,
        hub,
        crowd,
        nats,
        disk: scratch.path(),
    };
    let mut rounds = Vec::new();
    for _ in 0..options.rounds() {
        rounds.push(bench.round().await?);
    }
    Ok(rows(&rounds))
}

/// The figures of one round.
struct Round {
    disk: Disk,
    hub64: Load,
    straw64: Load,
    straw64_no_dedup: Load,
    nats64: f64,
    hub1000: Load,
    verify1000: Load,
    hub1: Load,
    hub_half: Load,
    hub_cpu_us: f64,
    parts_cpu_us: f64,
}

impl Bench<'_> {
    fn requests(&mut self, path: &str) -> Requests {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive count"
        )]
        let count = (self.options.secs().as_secs_f64() * PER_SEC) as usize;
        Requests::once(posts(path, &self.crowd.envelopes(count)))
    }

    async fn load(&mut self, port: u16, path: &str, width: usize, pace: Pace) -> anyhow::Result<Load> {
        let requests = self.requests(path);
        load::run(port, width, self.options.secs(), pace, &requests).await
    }

    /// CPU microseconds of a process per answer of a load.
    #[expect(clippy::cast_precision_loss, reason = "counts of a short run fit a double")]
    async fn cpu_us(&mut self, pid: u32, port: u16, path: &str) -> anyhow::Result<(Load, f64)> {
        let before = usage(pid);
        let load = self.load(port, path, 64, Pace::Closed).await?;
        let spent = usage(pid).cpu_secs - before.cpu_secs;
        let per_answer = spent * 1e6 / load.answers as f64;
        Ok((load, per_answer))
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of a short run fit a double")]
    async fn hello_cpu_us(&self) -> anyhow::Result<f64> {
        let before = usage(self.straw.pid());
        let requests = Requests::repeated(vec![load::get("/hello")]);
        let load = load::run(self.straw.port, 64, self.options.secs(), Pace::Closed, &requests).await?;
        Ok((usage(self.straw.pid()).cpu_secs - before.cpu_secs) * 1e6 / load.answers as f64)
    }

    async fn round(&mut self) -> anyhow::Result<Round> {
        let (hub, straw, no_dedup) = (self.hub.port, self.straw.port, self.no_dedup.port);
        let disk = fdatasync::measure(self.disk, Duration::from_secs(1))?;
        let (hub64, hub_cpu_us) = self.cpu_us(self.hub.pid(), hub, "/api/v1/messages").await?;
        let straw64 = self.load(straw, "/accept", 64, Pace::Closed).await?;
        let body = Bytes::from(vec![b'x'; ENVELOPE_BYTES]);
        let nats64 = self.nats.publish(64, self.options.secs(), &body).await?;
        let straw64_no_dedup = self.load(no_dedup, "/accept", 64, Pace::Closed).await?;
        let hub1000 = self.load(hub, "/api/v1/messages", 1_000, Pace::Closed).await?;
        let verify1000 = self.load(straw, "/verify", 1_000, Pace::Closed).await?;
        let hub1 = self.load(hub, "/api/v1/messages", 1, Pace::Closed).await?;
        let hub_half = self
            .load(hub, "/api/v1/messages", 64, Pace::PerSec(hub64.rate / 2.0))
            .await?;
        // hello is in both routes once; what is left of a route is its work alone.
        let hello = self.hello_cpu_us().await?;
        let (_, verify) = self.cpu_us(self.straw.pid(), straw, "/verify").await?;
        let (_, put) = self.cpu_us(self.straw.pid(), straw, "/put").await?;
        let parts_cpu_us = verify + (put - hello).max(0.0);
        Ok(Round {
            disk,
            hub64,
            straw64,
            straw64_no_dedup,
            nats64,
            hub1000,
            verify1000,
            hub1,
            hub_half,
            hub_cpu_us,
            parts_cpu_us,
        })
    }
}

fn row(
    id: &'static str,
    what: &'static str,
    bound: Bound,
    rounds: &[Round],
    ratio: impl Fn(&Round) -> f64,
    figures: impl Fn(&Round) -> String,
) -> Row {
    Row {
        id,
        what,
        bound,
        rounds: rounds.iter().map(ratio).collect(),
        figures: rounds.last().map(figures).unwrap_or_default(),
    }
}

fn rows(rounds: &[Round]) -> Vec<Row> {
    let mut rows = rate_rows(rounds);
    rows.extend(latency_rows(rounds));
    rows.extend(cost_rows(rounds));
    rows
}

fn rate_rows(rounds: &[Round]) -> Vec<Row> {
    let against = |what, bound, other: fn(&Round) -> f64| {
        let bound = Bound::AtLeast(bound);
        let figures = move |r: &Round| format!("{:.0}/s, {:.0}/s", r.hub64.rate, other(r));
        row(
            "P1",
            what,
            bound,
            rounds,
            move |r| r.hub64.rate / other(r),
            figures,
        )
    };
    let mut rows = vec![
        against("accept, 64 senders / straw man", 0.8, |r| r.straw64.rate),
        against("accept, 64 senders / raw fdatasync", 12.0, |r| r.disk.rate),
        against("accept, 64 senders / JetStream, sync always", 6.0, |r| r.nats64),
    ];
    let what = "accept, 1,000 senders / verify-only route";
    let figures = |r: &Round| format!("{:.0}/s, {:.0}/s", r.hub1000.rate, r.verify1000.rate);
    let ratio = |r: &Round| r.hub1000.rate / r.verify1000.rate;
    rows.push(row("P2", what, Bound::AtLeast(0.45), rounds, ratio, figures));
    rows
}

fn latency_rows(rounds: &[Round]) -> [Row; 2] {
    let one = |r: &Round| r.hub1.percentile_us(50.0);
    let half = |r: &Round| r.hub_half.percentile_us(99.0);
    [
        row(
            "P3",
            "accept p50, 1 sender / (1.3 fdatasync p50 + 0.3 ms)",
            Bound::AtMost(1.0),
            rounds,
            |r| one(r) / (1.3 * r.disk.p50_us + 300.0),
            |r| format!("{:.0} µs, {:.0} µs", one(r), r.disk.p50_us),
        ),
        row(
            "P18",
            "accept p99 at half the maximum / raw fdatasync p99",
            Bound::AtMost(3.0),
            rounds,
            |r| half(r) / r.disk.p99_us,
            |r| format!("{:.0} µs, {:.0} µs", half(r), r.disk.p99_us),
        ),
    ]
}

fn cost_rows(rounds: &[Round]) -> [Row; 2] {
    [
        row(
            "P5",
            "CPU of an accept / (hello + parse + JCS + verify + put)",
            Bound::AtMost(1.8),
            rounds,
            |r| r.hub_cpu_us / r.parts_cpu_us,
            |r| format!("{:.0} µs, {:.0} µs", r.hub_cpu_us, r.parts_cpu_us),
        ),
        row(
            "P6",
            "straw man with dedup / without, 64 senders",
            Bound::AtLeast(0.95),
            rounds,
            |r| r.straw64.rate / r.straw64_no_dedup.rate,
            |r| format!("{:.0}/s, {:.0}/s", r.straw64.rate, r.straw64_no_dedup.rate),
        ),
    ]
}
