//! The hub beside the closest Rust relay: stored and acknowledged, 64 in flight (P16).

use super::{KEY, Options};
use crate::agents::{Crowd, posts};
use crate::hub::Hub;
use crate::load::{self, Pace, Requests};
use crate::process::usage;
use crate::report::{Bound, Row};
use crate::yardstick;
use crate::yardstick::nostr::{Nostr, events};

/// Events of a round; that relay takes some hundreds a second.
const EVENTS: usize = 1_500;

/// Measures the goals of this file.
#[expect(clippy::cast_precision_loss, reason = "counts of a short run fit a double")]
pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let Some(program) = yardstick::program(options.nostr.as_deref(), "nostr-rs-relay") else {
        return Ok(Vec::new());
    };
    let scratch = options.scratch()?;
    let hub = Hub::start(&scratch.path().join("hub"))?;
    let relay = Nostr::start(&program, &scratch.path().join("nostr"))?;
    let mut crowd = Crowd::register(hub.port, &hub.domain, "crowd", 256, &KEY).await?;
    let (mut rates, mut costs, mut figures) = (Vec::new(), Vec::new(), (String::new(), String::new()));
    for _ in 0..options.rounds() {
        let requests = Requests::once(posts("/api/v1/messages", &crowd.envelopes(60_000)));
        let before = usage(hub.pid());
        let ours = load::run(hub.port, 64, options.secs(), Pace::Closed, &requests).await?;
        let cpu_us = (usage(hub.pid()).cpu_secs - before.cpu_secs) * 1e6 / ours.answers as f64;
        let theirs = relay.store(events(EVENTS)?, 64).await?;
        rates.push(ours.rate / theirs.rate);
        costs.push(cpu_us / theirs.cpu_us);
        figures = (
            format!("{:.0}/s, {:.0}/s", ours.rate, theirs.rate),
            format!("{cpu_us:.0} µs, {:.0} µs", theirs.cpu_us),
        );
    }
    let (rate, cost) = figures;
    Ok(vec![
        Row {
            id: "P16",
            what: "stored and acked, 64 in flight / nostr-rs-relay",
            bound: Bound::AtLeast(6.0),
            rounds: rates,
            figures: rate,
        },
        Row {
            id: "P16",
            what: "CPU per message / nostr-rs-relay",
            bound: Bound::AtMost(1.0 / 3.0),
            rounds: costs,
            figures: cost,
        },
    ])
}
