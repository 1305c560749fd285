//! A hub that has nothing to do: its memory, and how soon it is ready with 100,000 stored messages.

use std::time::Duration;

use super::{KEY, Options};
use crate::agents::{Crowd, posts};
use crate::hub::Hub;
use crate::load::{self, Pace, Requests};
use crate::process::usage;
use crate::report::{Bound, Row};

const STORED: usize = 100_000;

/// Measures the goals of this file.
pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let scratch = options.scratch()?;
    let folder = scratch.path().join("hub");
    let hub = Hub::start(&folder)?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let fresh = usage(hub.pid()).resident_kib / 1024.0;
    let mut crowd = Crowd::register(hub.port, &hub.domain, "idle", 200, &KEY).await?;
    let wire = posts("/api/v1/messages", &crowd.envelopes(STORED));
    let load = load::run(
        hub.port,
        64,
        Duration::from_mins(5),
        Pace::Closed,
        &Requests::once(wire),
    )
    .await?;
    anyhow::ensure!(
        load.answers == STORED as u64,
        "only {} of {STORED} were stored",
        load.answers
    );
    let port = hub.port;
    drop(hub);
    let mut ready = Vec::new();
    let mut full = 0.0;
    for _ in 0..options.rounds() {
        let hub = Hub::start_at(&folder, port)?;
        ready.push(hub.ready_after.as_secs_f64());
        tokio::time::sleep(Duration::from_secs(1)).await;
        full = usage(hub.pid()).resident_kib / 1024.0;
    }
    Ok(vec![
        Row {
            id: "idle",
            what: "MiB of an idle hub",
            bound: Bound::AtMost(60.0),
            rounds: vec![fresh],
            figures: format!("{full:.0} MiB with 100,000 stored messages"),
        },
        Row {
            id: "idle",
            what: "seconds to ready with 100,000 messages, after SIGKILL",
            bound: Bound::AtMost(1.0),
            rounds: ready,
            figures: String::new(),
        },
    ])
}
