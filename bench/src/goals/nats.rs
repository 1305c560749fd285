//! Accepting envelopes into mailboxes on NATS (P4): beside raw publishing to the same servers, and beside a straw man
//! that verifies and publishes.

use std::time::Duration;

use aip_engines::{Nats, NatsCluster, NatsOptions, Postgres, PostgresOptions, Redis, RedisOptions};
use bytes::Bytes;

use super::{KEY, Options};
use crate::agents::{Crowd, posts};
use crate::hub::{Engines, Hub, NATS_MAILBOX_MESSAGES, Straw, StrawStore};
use crate::load::{self, Load, Pace, Requests};
use crate::monitor;
use crate::process::{free_port, usage};
use crate::report::{Bound, Row};
use crate::yardstick::jetstream::JetStream;

/// Envelopes prepared for a run; more than a hub on NATS takes in the time of one.
const PER_SEC: f64 = 20_000.0;

/// Agents of the crowd: half of them send.
const CROWD: usize = 512;

/// Servers of the cluster.
const CLUSTER: usize = 3;

/// How the servers are run, and what is wanted there.
struct Setting {
    cluster: bool,
    sync_always: bool,
    /// The registry on PostgreSQL and the processes' common things on Redis as well.
    everything: bool,
    /// One sender beside a raw publish; 64 beside 64 raw publishes; 64 beside the straw man; and what 64 get into one
    /// mailbox.
    goals: [(&'static str, Bound); 4],
}

const SETTINGS: [Setting; 4] = [
    Setting {
        cluster: false,
        sync_always: false,
        everything: false,
        goals: [
            ("accept on NATS, 1 sender / raw publish", Bound::AtLeast(0.35)),
            ("accept on NATS, 64 senders / raw publish", Bound::AtLeast(0.12)),
            ("accept on NATS, 64 senders / straw man", Bound::AtLeast(0.8)),
            (
                "accept on NATS, 64 senders to one mailbox, a second",
                Bound::Stated,
            ),
        ],
    },
    Setting {
        cluster: false,
        sync_always: true,
        everything: false,
        goals: [
            (
                "the same, sync always, 1 sender / raw publish",
                Bound::AtLeast(0.35),
            ),
            (
                "the same, sync always, 64 senders / raw publish",
                Bound::AtLeast(0.12),
            ),
            (
                "the same, sync always, 64 senders / straw man",
                Bound::AtLeast(0.8),
            ),
            (
                "the same, sync always, 64 senders to one mailbox, a second",
                Bound::Stated,
            ),
        ],
    },
    Setting {
        cluster: true,
        sync_always: true,
        everything: false,
        goals: [
            (
                "three servers, sync always, 1 sender / raw publish",
                Bound::AtLeast(0.7),
            ),
            (
                "three servers, sync always, 64 senders / raw publish",
                Bound::AtLeast(0.7),
            ),
            (
                "three servers, sync always, 64 senders / straw man",
                Bound::Stated,
            ),
            (
                "three servers, sync always, 64 senders to one mailbox, a second",
                Bound::Stated,
            ),
        ],
    },
    Setting {
        cluster: false,
        sync_always: false,
        everything: true,
        goals: [
            (
                "with PostgreSQL and Redis too, 1 sender / raw publish",
                Bound::Stated,
            ),
            (
                "with PostgreSQL and Redis too, 64 senders / raw publish",
                Bound::Stated,
            ),
            (
                "with PostgreSQL and Redis too, 64 senders / straw man",
                Bound::Stated,
            ),
            (
                "with PostgreSQL and Redis too, 64 senders to one mailbox, a second",
                Bound::Stated,
            ),
        ],
    },
];

/// The servers of a setting; they end with it.
struct Servers {
    urls: String,
    monitor_url: String,
    pids: Vec<u32>,
    replicas: u8,
    _one: Option<Nats>,
    _three: Option<NatsCluster>,
}

impl Servers {
    fn start(setting: &Setting) -> anyhow::Result<Self> {
        let options = NatsOptions {
            sync_always: setting.sync_always,
            ..NatsOptions::default()
        };
        if setting.cluster {
            let three = NatsCluster::try_start(CLUSTER, &options)?;
            return Ok(Self {
                urls: three.url(),
                monitor_url: three.monitor_url(0),
                pids: (0..CLUSTER).filter_map(|index| three.pid(index)).collect(),
                replicas: 3,
                _one: None,
                _three: Some(three),
            });
        }
        let one = Nats::try_start(&options)?;
        Ok(Self {
            urls: one.url(),
            monitor_url: one.monitor_url(),
            pids: one.pid().into_iter().collect(),
            replicas: 1,
            _one: Some(one),
            _three: None,
        })
    }

    fn cpu_secs(&self) -> f64 {
        self.pids.iter().map(|pid| usage(*pid).cpu_secs).sum()
    }
}

/// Everything that the rounds of one setting need.
struct Bench<'a> {
    options: &'a Options,
    servers: Servers,
    hub: Hub,
    straw: Straw,
    raw: JetStream,
    crowd: Crowd,
    engines: Option<(Postgres, Redis)>,
}

/// The figures of one round.
struct Round {
    hub1: Load,
    raw1: f64,
    hub64: Load,
    raw64: f64,
    straw64: Load,
    /// 64 senders to one mailbox.
    same64: Load,
    /// CPU of an accepted envelope with 64 senders, in microseconds: the hub's, and that of all servers.
    hub_cpu_us: f64,
    servers_cpu_us: f64,
    /// How long statuses and the like were written after the last answer.
    late: Duration,
    /// What Redis came to hold for an accepted envelope with 64 senders, in bytes; NaN without one.
    redis_bytes: f64,
}

/// Measures the goals of this file.
pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for setting in &SETTINGS {
        let scratch = options.scratch()?;
        let mut bench = Bench::start(options, setting, scratch.path()).await?;
        let mut rounds = Vec::new();
        for number in 0..options.rounds() {
            rounds.push(bench.round(number).await?);
        }
        rows.extend(setting.rows(&rounds));
    }
    Ok(rows)
}

impl<'a> Bench<'a> {
    async fn start(
        options: &'a Options,
        setting: &Setting,
        scratch: &std::path::Path,
    ) -> anyhow::Result<Self> {
        let servers = Servers::start(setting)?;
        let mut on = Engines {
            mailboxes: servers.urls.clone(),
            replicas: servers.replicas,
            ..Engines::default()
        };
        let mut engines = None;
        if setting.everything {
            let postgres = Postgres::try_start(&PostgresOptions::default())?;
            let redis = Redis::try_start(&RedisOptions::default())?;
            (on.registry, on.shared) = (postgres.database("hub"), redis.url());
            engines = Some((postgres, redis));
        }
        let hub = Hub::start_on(&scratch.join("hub"), free_port()?, &on)?;
        let replicas = usize::from(servers.replicas);
        let store = StrawStore::JetStream {
            url: &servers.urls,
            replicas,
        };
        Ok(Self {
            options,
            crowd: Crowd::register(hub.port, &hub.domain, "crowd", CROWD, &KEY).await?,
            straw: Straw::start(&scratch.join("straw"), &KEY, store)?,
            raw: JetStream::on(&servers.urls, replicas).await?,
            hub,
            servers,
            engines,
        })
    }

    /// Envelopes of a run.
    fn count(&self) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive count"
        )]
        let count = (self.options.secs().as_secs_f64() * PER_SEC) as usize;
        count
    }

    async fn load(&mut self, port: u16, path: &str, width: usize) -> anyhow::Result<(Load, Duration)> {
        let envelopes = self.crowd.envelopes(self.count());
        self.send(port, path, width, &envelopes).await
    }

    /// A load, and the time until the servers are quiet again, so that the next side has them to itself.
    async fn send(
        &self,
        port: u16,
        path: &str,
        width: usize,
        envelopes: &[Vec<u8>],
    ) -> anyhow::Result<(Load, Duration)> {
        let requests = Requests::once(posts(path, envelopes));
        let load = load::run(port, width, self.options.secs(), Pace::Closed, &requests).await?;
        Ok((load, monitor::quiet(&self.servers.monitor_url).await?))
    }

    /// CPU seconds of the hub and of all servers, and bytes of Redis.
    fn spent(&self) -> (f64, f64, f64) {
        (
            usage(self.hub.pid()).cpu_secs,
            self.servers.cpu_secs(),
            self.redis_bytes(),
        )
    }

    #[expect(clippy::cast_precision_loss, reason = "bytes fit a double")]
    fn redis_bytes(&self) -> f64 {
        let redis = self.engines.as_ref().map(|(_, redis)| redis);
        redis
            .and_then(Redis::resident_bytes)
            .map_or(f64::NAN, |bytes| bytes as f64)
    }

    async fn raw(&mut self, width: usize) -> anyhow::Result<f64> {
        let body = self.crowd.envelopes(1).pop().map(Bytes::from).unwrap_or_default();
        let rate = self.raw.publish(width, self.options.secs(), &body).await?;
        monitor::quiet(&self.servers.monitor_url).await?;
        Ok(rate)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of a short run fit a double")]
    async fn round(&mut self, number: usize) -> anyhow::Result<Round> {
        let (hub, straw) = (self.hub.port, self.straw.port);
        let (hub1, _) = self.load(hub, "/api/v1/messages", 1).await?;
        let raw1 = self.raw(1).await?;
        let before = self.spent();
        let (hub64, late) = self.load(hub, "/api/v1/messages", 64).await?;
        let after = self.spent();
        let raw64 = self.raw(64).await?;
        let (straw64, _) = self.load(straw, "/publish", 64).await?;
        // Another reader in each round: a mailbox holds a bounded number of settled messages too.
        let count = self.count().min(NATS_MAILBOX_MESSAGES);
        let same = self.crowd.envelopes_to(CROWD / 2 + number, count);
        let (same64, _) = self.send(hub, "/api/v1/messages", 64, &same).await?;
        let per_answer = |before: f64, after: f64| (after - before) / hub64.answers as f64;
        Ok(Round {
            hub_cpu_us: per_answer(before.0, after.0) * 1e6,
            servers_cpu_us: per_answer(before.1, after.1) * 1e6,
            redis_bytes: per_answer(before.2, after.2),
            same64,
            hub1,
            raw1,
            hub64,
            raw64,
            straw64,
            late,
        })
    }
}

impl Setting {
    fn rows(&self, rounds: &[Round]) -> Vec<Row> {
        let ratios: [fn(&Round) -> f64; 4] = [
            |r| r.hub1.rate / r.raw1,
            |r| r.hub64.rate / r.raw64,
            |r| r.hub64.rate / r.straw64.rate,
            |r| r.same64.rate,
        ];
        let figures: [fn(&Round) -> String; 4] = [
            |r| {
                let p50 = r.hub1.percentile_us(50.0);
                format!("{:.0}/s, {:.0}/s; p50 {p50:.0} µs", r.hub1.rate, r.raw1)
            },
            |r| {
                format!(
                    "{:.0}/s, {:.0}/s; p99 {:.1} ms; CPU {:.0} µs hub, {:.0} µs NATS; {:.1} s of late records",
                    r.hub64.rate,
                    r.raw64,
                    r.hub64.percentile_us(99.0) / 1e3,
                    r.hub_cpu_us,
                    r.servers_cpu_us,
                    r.late.as_secs_f64()
                )
            },
            |r| format!("{:.0}/s, {:.0}/s", r.hub64.rate, r.straw64.rate),
            |r| {
                let p50 = r.same64.percentile_us(50.0) / 1e3;
                let redis = r.redis_bytes;
                let redis = if redis.is_nan() {
                    String::new()
                } else {
                    format!("; Redis grew {redis:.0} B an envelope")
                };
                format!("p50 {p50:.1} ms{redis}")
            },
        ];
        let measured = self.goals.iter().zip(ratios).zip(figures);
        measured
            .map(|(((what, bound), ratio), figures)| Row {
                id: "P4",
                what,
                bound: *bound,
                rounds: rounds.iter().map(ratio).collect(),
                figures: rounds.last().map(figures).unwrap_or_default(),
            })
            .collect()
    }
}
