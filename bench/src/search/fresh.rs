//! P15: how soon a new listing is found while many come in.

use std::time::{Duration, Instant};

use super::Options;
use super::bare::{Index, TOP};
use super::ground::Ground;
use super::made::code;
use super::times::Times;
use super::writing::Writing;
use crate::report::{Bound, Row};

/// How much faster listings come in than single documents can be committed.
const TIMES: f64 = 50.0;

/// Between two listings that are waited for.
const PAUSE: Duration = Duration::from_millis(100);

/// Between two looks for one. Looks share the one core with what they wait for, so they are no more frequent than the answer
/// needs: each counts up to that much against the catalog.
const LOOK: Duration = Duration::from_millis(50);

/// Nothing is waited for longer.
const PATIENCE: Duration = Duration::from_mins(1);

/// Measures the goal. The bare index is given up: its writer is timed.
pub(super) async fn measure(options: &Options, ground: &Ground, bare: Index) -> anyhow::Result<Vec<Row>> {
    let commits = bare.commits(ground.store.made())?;
    drop(bare);
    let commits_per_sec = 1_000.0 / commits.p50();
    let wanted = TIMES * commits_per_sec;
    let (mut worst, mut rates, mut waits) = (Vec::new(), Vec::new(), Times::default());
    for _ in 0..options.rounds {
        let first = ground.store.latest();
        let (begun, writing) = (Instant::now(), Writing::begin(ground, wanted));
        let mut times = Times::default();
        while begun.elapsed() < options.secs() {
            tokio::time::sleep(PAUSE).await;
            times.add(found_after(ground, ground.store.latest()).await?);
        }
        writing.stop().await;
        let stored = ground.store.latest() - first;
        ground.settled().await?;
        rates.push(f64::from(u32::try_from(stored)?) / begun.elapsed().as_secs_f64());
        worst.push(times.max() / 1_000.0);
        waits = times;
    }
    let rate = rates.iter().copied().fold(f64::NAN, f64::min);
    Ok(vec![
        Row {
            id: "P15",
            what: "slowest new listing to be found, in s, at 50 x single commits",
            bound: Bound::AtMost(1.0),
            rounds: worst,
            figures: format!("p50 {:.0} ms of {} listings", waits.p50(), waits.len()),
        },
        Row {
            id: "P15",
            what: "listings/s that were taken up / 50 x single-document commits/s",
            bound: Bound::AtLeast(0.95),
            rounds: rates.iter().map(|rate| rate / wanted).collect(),
            figures: format!("{rate:.0}/s, 50 x {commits_per_sec:.1}/s"),
        },
    ])
}

/// The time until the listing that was stored just now is found by its code. Others that are near may stand before it by the
/// trust in their agents, so the whole page is looked through.
async fn found_after(ground: &Ground, number: u64) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let code = code(number);
    loop {
        let found = ground.search(&code, TOP).await?;
        let is_it = found.items.iter().any(|item| item.entry.number == number);
        if is_it || begun.elapsed() > PATIENCE {
            return Ok(begun.elapsed());
        }
        tokio::time::sleep(LOOK).await;
    }
}
