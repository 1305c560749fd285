//! One process whose clock is wrong, by libfaketime.

use std::path::PathBuf;
use std::time::Duration;

use aip_client::protocol::clock::Clock as _;
use aip_client::{Draft, SentStatus, SystemClock};
use aip_tests::clients::{agent, builder, handle};
use aip_tests::cluster::{Cluster, Engines};
use aip_tests::{Skip, TestHub, rounds_of};
use anyhow::{Result, ensure};
use tempfile::TempDir;

use super::ground::Ground;
use super::{engines, hurt};
use crate::faults::clock::{assert_out_of_window, off_as_in, off_by};
use crate::faults::{ROOMY, until};

/// Who is off, and by how many seconds. Each error has a process of its own: time does not go back in one that was ahead.
const ERRORS: [(usize, i64); 4] = [(0, 240), (1, -240), (2, 600), (3, -600)];

/// The machines of the processes, each with a clock that can be set.
struct Machines(TempDir);

impl Machines {
    fn new() -> Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    fn clock(&self, number: usize) -> PathBuf {
        self.0.path().join(format!("clock-{number}"))
    }

    fn set(&self, number: usize, seconds: i64) -> Result<()> {
        // In one step, as a process reads it all the time.
        let (clock, new) = (self.clock(number), self.clock(number).with_extension("new"));
        std::fs::write(&new, format!("{seconds:+}s\n"))?;
        Ok(std::fs::rename(new, clock)?)
    }

    /// The way to the engines of the process on this machine.
    fn way(&self, number: usize, way: &Engines) -> Result<Result<Engines, Skip>> {
        self.set(number, 0)?;
        let more = off_as_in(&self.clock(number));
        Ok(more.map(|more| with(way, more)))
    }
}

fn with(way: &Engines, more: Vec<(String, String)>) -> Engines {
    let mut way = way.clone();
    way.more.extend(more);
    way
}

/// Less than the window of the protocol leaves open, in either direction, and the clock is set while everybody works. A
/// process that was ahead stays so until its machine's clock has caught up; one whose clock is set back goes on slowly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_one_process_jumps() -> Result<()> {
    let machines = Machines::new()?;
    let (engines, mut ways) = (engines(), Vec::new());
    for (number, _) in ERRORS {
        match machines.way(number, &engines)? {
            Ok(way) => ways.push(way),
            Err(skip) => {
                skip.print("clock of one process");
                return Ok(());
            }
        }
    }
    let mut ground = Ground::start("the clock of one process jumps", &ways).await?;
    for _ in 0..rounds_of(1) {
        for (process, seconds) in ERRORS {
            ground.goes_on().await;
            machines.set(process, seconds)?;
            if seconds > 0 {
                shows(ground.cluster.hub(process), seconds).await;
            }
            ground.goes_on().await;
            // Wrong clocks hinder nobody: it works while the fault lasts.
            ground.recovers().await?;
            machines.set(process, 0)?;
            ground.recovers().await?;
        }
    }
    // A process that starts now finds the latest time of all of them, and goes on from there.
    hurt(|| ground.cluster.hub_mut(0).restart());
    ground.recovers().await?;
    ground.judge(&[]).await
}

/// The process tells a time that is ahead by so many seconds.
async fn shows(hub: &TestHub, seconds: i64) {
    until("the metrics show a clock that is ahead", || async {
        let time = hub.metric("aip_time_seconds").await.unwrap_or_default();
        // Not the whole error: the reading takes its time.
        let at_least = SystemClock.now().unix_millis() / 1_000 + seconds * 9 / 10;
        time > u32::try_from(at_least).map_or(f64::INFINITY, f64::from)
    })
    .await;
}

/// Beyond what the window leaves open, from the first moment of the hub: refused with both clocks in the answer, taken by
/// the process beside it, and nothing is lost when the clock is set.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_ten_minutes_behind_refuses_and_the_others_take() -> Result<()> {
    let environment = match off_by(-600) {
        Ok(environment) => environment,
        Err(skip) => {
            skip.print("a process that is behind");
            return Ok(());
        }
    };
    let right = engines();
    let behind = with(&right, environment);
    let mut cluster = hurt(|| Cluster::by_ways(&[behind], ROOMY));
    hurt(|| cluster.add_by(&right));
    let [at_behind, at_right] = [0, 1].map(|number| cluster.home(cluster.hub(number).url()));
    agent(&at_right, "alice").await?;
    let bob = agent(&at_right, "bob").await?;
    let alice = builder(&at_right, "alice")?.build()?;
    let late = builder(&at_behind, "alice")?.build()?;
    let sealed = alice
        .seal(&Draft::text(handle(&at_right, "bob"), "what time is it?"))
        .await?;

    let (created_at, hub_time) = assert_out_of_window(&late.submit(&sealed).await.expect_err("refused"))?;
    ensure!(
        created_at.millis_since(hub_time) > 300_000,
        "{created_at} {hub_time}"
    );
    ensure!(
        alice.submit(&sealed).await?.status == SentStatus::Stored,
        "a refusal leaves no record"
    );
    assert_out_of_window(&late.submit(&sealed).await.expect_err("refused still"))?;

    // The clock is set.
    let environment = cluster.options_by(&right).environment;
    cluster.hub_mut(0).use_environment(environment);
    hurt(|| cluster.hub_mut(0).restart());
    ensure!(
        late.submit(&sealed).await?.status == SentStatus::Duplicate,
        "known everywhere"
    );
    let inbox = bob.fetch_inbox(None, 10, Duration::ZERO).await?;
    let ids: Vec<_> = inbox.items.iter().map(|message| message.id).collect();
    ensure!(ids == [sealed.id()], "once: {ids:?}");
    Ok(())
}
