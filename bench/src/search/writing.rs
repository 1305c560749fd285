//! How long a search takes while listings come in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::Options;
use super::bare;
use super::ground::Ground;
use super::queries::Asked;
use super::times::Times;
use crate::report::{Bound, Row};

/// Listings that come in each second.
const PER_SEC: f64 = 500.0;

/// Between two moments at which listings come in.
const TICK: Duration = Duration::from_millis(10);

/// Listings come in until this is stopped.
pub(super) struct Writing {
    is_over: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Writing {
    /// So many a second; the catalog is told of each batch, as the hub does.
    pub(super) fn begin(ground: &Ground, per_sec: f64) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, store, catalog) = (
            Arc::clone(&is_over),
            Arc::clone(&ground.store),
            Arc::clone(&ground.catalog),
        );
        let first = store.latest();
        let task = tokio::spawn(async move {
            let begun = Instant::now();
            while !over.load(Ordering::Acquire) {
                tokio::time::sleep(TICK).await;
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
                let due = (begun.elapsed().as_secs_f64() * per_sec) as u64;
                store.grow_to(first + due);
                catalog.nudge();
            }
        });
        Self { is_over, task }
    }

    pub(super) async fn stop(self) {
        self.is_over.store(true, Ordering::Release);
        let _ended = self.task.await;
    }
}

/// Measures the goal.
pub(super) async fn measure(options: &Options, ground: &Ground, asked: &[Asked]) -> anyhow::Result<Vec<Row>> {
    let (mut ratios, mut figures) = (Vec::new(), String::new());
    for _ in 0..options.rounds {
        let quiet = for_a_while(options, ground, asked).await?;
        let writing = Writing::begin(ground, PER_SEC);
        let busy = for_a_while(options, ground, asked).await?;
        writing.stop().await;
        ground.settled().await?;
        ratios.push(busy.p99() / quiet.p99());
        figures = format!(
            "{:.2} ms (p50 {:.2}, {} searches), {:.2} ms (p50 {:.2})",
            busy.p99(),
            busy.p50(),
            busy.len(),
            quiet.p99(),
            quiet.p50()
        );
    }
    Ok(vec![Row {
        id: "writing",
        what: "search p99 while 500 listings/s come in / quiet",
        bound: Bound::AtMost(2.0),
        rounds: ratios,
        figures,
    }])
}

/// Asks one after the other, over and over.
async fn for_a_while(options: &Options, ground: &Ground, asked: &[Asked]) -> anyhow::Result<Times> {
    let (begun, mut times) = (Instant::now(), Times::default());
    for asked in asked.iter().cycle() {
        let sent = Instant::now();
        if sent - begun > options.secs() {
            break;
        }
        ground.search(&asked.three, bare::TOP).await?;
        times.add(sent.elapsed());
    }
    Ok(times)
}
