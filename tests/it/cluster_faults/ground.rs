//! A hub of several processes under load, while something happens to it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use aip_client::SystemClock;
use aip_client::protocol::clock::Clock as _;
use aip_tests::cluster::{Cluster, Engines};
use aip_tests::raw::{Request, ask};
use aip_tests::{Balancer, TestHub, Vitals, chance, seed};
use anyhow::{Context, Result, ensure};
use rand::RngExt as _;
use rand::rngs::StdRng;

use super::RECOVERED_WITHIN;
use super::probe::Probe;
use crate::faults::load::{Load, Pace};
use crate::faults::{ROOMY, assert_good};

/// Slow: two cores are for the fault, not for the load; and a new life may have to wait until it is known everywhere that
/// the one before has ended.
const PACE: Pace = Pace {
    rest: Duration::from_millis(40),
    life: Duration::from_secs(3),
};
/// Events before a fault, at most.
const EVENTS_MAX: usize = 120;
/// Between two looks at a hub that is to recover.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// See the module.
pub(super) struct Ground {
    /// What happens to it.
    fault: &'static str,
    seed: u64,
    pub(super) chance: StdRng,
    pub(super) cluster: Cluster,
    balancer: Balancer,
    load: Load,
    probe: Probe,
    before: Vec<Before>,
    rounds: usize,
    slowest_recovery_millis: i64,
}

/// A process before anything happened.
struct Before {
    pid: Option<u32>,
    vitals: Vitals,
}

impl Ground {
    /// Starts a process for each of these ways to the engines, and the load.
    pub(super) async fn start(fault: &'static str, ways: &[Engines]) -> Result<Self> {
        let seed = seed(fault);
        let cluster = super::hurt(|| Cluster::by_ways(ways, ROOMY));
        let balancer = Balancer::before(cluster.hubs()).await;
        let home = cluster.home(&balancer.url());
        let load = Load::paced(home.clone(), seed, PACE).await?;
        let mut probe = Probe::new(&cluster, &home).await?;
        tokio::time::timeout(RECOVERED_WITHIN, probe.round_trip())
            .await
            .context("nothing comes through before anything happened")??;
        let mut before = Vec::new();
        for hub in cluster.hubs() {
            before.push(Before {
                pid: hub.pid(),
                vitals: Vitals::of(hub).await,
            });
        }
        Ok(Self {
            fault,
            seed,
            chance: chance(seed),
            cluster,
            balancer,
            load,
            probe,
            before,
            rounds: 0,
            slowest_recovery_millis: 0,
        })
    }

    /// What clients connect to.
    pub(super) fn url(&self) -> String {
        self.balancer.url()
    }

    /// Waits for a moment of the load that nobody knows before.
    pub(super) async fn goes_on(&mut self) {
        let events = self.chance.random_range(10..EVENTS_MAX);
        self.load.progress(events).await;
        self.moment(20).await;
    }

    /// A moment of at most so many milliseconds.
    pub(super) async fn moment(&mut self, millis_max: u64) {
        let span = Duration::from_millis(self.chance.random_range(0..=millis_max));
        tokio::time::sleep(span).await;
    }

    /// One process, by chance.
    pub(super) fn any_process(&mut self) -> usize {
        self.chance.random_range(0..self.cluster.hubs().len())
    }

    /// The fault is over. Each process has all that it needs, and a message by way of each comes through, in time.
    pub(super) async fn recovers(&mut self) -> Result<()> {
        self.rounds += 1;
        let ended = SystemClock.now();
        let recovery = async {
            for hub in self.cluster.hubs() {
                while !is_whole(hub).await {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
            self.probe.round_trip().await
        };
        let recovered = tokio::time::timeout(RECOVERED_WITHIN, recovery).await;
        let millis = SystemClock.now().millis_since(ended);
        self.slowest_recovery_millis = self.slowest_recovery_millis.max(millis);
        if let Ok(done) = recovered {
            return done;
        }
        let mut states = Vec::new();
        for hub in self.cluster.hubs() {
            states.push(ask(hub.url(), &Request::get("/health/ready")).await.text());
        }
        anyhow::bail!(
            "{}, round {}: it has not recovered in time; the processes say {states:?}; their logs are in {}",
            self.fault,
            self.rounds,
            self.keep_logs().display()
        )
    }

    /// The load ends; what happened is judged and printed. Each of these counters must have moved in some process.
    pub(super) async fn judge(self, moved: &[&str]) -> Result<()> {
        let readings = self.read().await;
        let Self {
            fault,
            seed,
            rounds,
            slowest_recovery_millis,
            ..
        } = self;
        let logs = self.keep_logs();
        self.probe.close().await;
        let history = self.load.finish().await?;
        assert_good(&fault.replace(' ', "-"), seed, &history);
        report(&format!(
            "{fault}: {rounds} rounds, {} messages acknowledged, {} delivered, 0 violations, slowest recovery \
             {slowest_recovery_millis} ms",
            history.acknowledged(),
            history.delivered(),
        ));
        for name in moved {
            let count = by_how_much(&readings, name);
            ensure!(
                count > 0.0,
                "{fault}: {name} has not moved; logs in {}",
                logs.display()
            );
            report(&format!("{fault}: {name} moved by {count}"));
        }
        for hub in self.cluster.hubs() {
            ensure!(!hub.log().contains("panicked"), "{}", hub.log());
        }
        Ok(())
    }

    /// What the processes count; a process that was started anew began at zero.
    async fn read(&self) -> Vec<(Option<Vitals>, Vitals)> {
        let mut readings = Vec::new();
        for (hub, before) in self.cluster.hubs().iter().zip(&self.before) {
            let is_same = hub.pid() == before.pid;
            readings.push((is_same.then(|| before.vitals.clone()), Vitals::of(hub).await));
        }
        readings
    }

    /// Writes the logs of the processes where a failure can be looked into.
    fn keep_logs(&self) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(self.fault.replace(' ', "-"));
        std::fs::create_dir_all(&folder).expect("a folder for logs");
        for (number, hub) in self.cluster.hubs().iter().enumerate() {
            std::fs::write(folder.join(format!("hub-{number}.log")), hub.log()).expect("a log");
        }
        folder
    }
}

/// By how much a counter has moved, in all processes together.
fn by_how_much(readings: &[(Option<Vitals>, Vitals)], name: &str) -> f64 {
    let moved = readings
        .iter()
        .map(|(before, after)| after.count(name) - before.as_ref().map_or(0.0, |before| before.count(name)));
    moved.sum()
}

/// Ready, and without anything that it lacks.
pub(super) async fn is_whole(hub: &TestHub) -> bool {
    let answer = ask(hub.url(), &Request::get("/health/ready")).await;
    answer.status == 200 && answer.json().get("degraded").is_none()
}

#[expect(clippy::print_stderr, reason = "a long run is to show what it did")]
pub(super) fn report(line: &str) {
    eprintln!("{line}");
}
