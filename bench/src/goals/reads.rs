//! Reading a mailbox on NATS (P8), beside one batched Direct Get of the same messages.
//!
//! Measured at the store, by a process that has just started and remembers nothing: without HTTP, sessions and frames.

use std::time::{Duration, Instant};

use aip_engines::{Nats, NatsOptions};
use aip_jetstream::JetStreamMailboxes;
use aip_protocol::name::{Did, Domain};
use anyhow::{anyhow, ensure};
use async_nats::Client;
use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::Options;
use crate::agents::now;
use crate::mail;
use crate::monitor;
use crate::report::{Bound, Row, median};
use crate::yardstick::direct_get::{self, Subject};
use crate::yardstick::jetstream;

const MAILBOXES: usize = 10_000;
const QUICK_MAILBOXES: usize = 1_000;

/// Messages that a read brings.
const MESSAGES: usize = 10;

/// Mailboxes that are read one after the other in a round, and with many at a time.
const ONE_BY_ONE: usize = 2_000;
const AT_ONCE: usize = 64;

/// The most consumers of any stream.
const CONSUMERS_MAX: f64 = 16.0;

/// Measures the goals of this file.
#[expect(clippy::cast_precision_loss, reason = "a handful of consumers")]
pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let server = Nats::try_start(&NatsOptions::default())?;
    let domain = Domain::parse("mail.example").map_err(|refusal| anyhow!("{refusal}"))?;
    let count = if options.quick { QUICK_MAILBOXES } else { MAILBOXES };
    let owners = mail::owners(&domain, "reader", count)?;
    let store = mail::open(&server.url()).await?;
    // One more, which is acked, so that there is a cursor to respect.
    mail::fill(&store, &owners, MESSAGES + 1).await?;
    mail::ack_first(&store, &owners).await?;
    store.close().await;
    drop(store);
    let context = jetstream::connect(&server.url()).await?;
    let streams: Vec<String> = (0..16).map(|number| format!("AIP_MB_{number}")).collect();
    let subjects = direct_get::subjects(&context, &streams, "aip.mb.>").await?;
    ensure!(subjects.len() == count, "{} mailboxes are there", subjects.len());
    let consumers = monitor::consumers_max(&server.monitor_url())? as f64;
    let bench = Bench {
        url: server.url(),
        client: context.client(),
        owners,
        subjects,
    };
    let mut rounds = Vec::new();
    for round in 0..options.rounds() {
        rounds.push(bench.round(round).await?);
    }
    Ok(rows(&rounds, consumers))
}

struct Bench {
    url: String,
    client: Client,
    owners: Vec<Did>,
    subjects: Vec<Subject>,
}

/// The figures of one round: median latencies in microseconds, and mailboxes per second.
struct Round {
    store_us: f64,
    direct_us: f64,
    store_rate: f64,
    direct_rate: f64,
}

/// A part of `all` that moves on with the rounds.
fn part<T>(all: &[T], round: usize, length: usize) -> &[T] {
    let mut parts = all.chunks(length.min(all.len()).max(1));
    let count = parts.len().max(1);
    parts.nth(round % count).unwrap_or_default()
}

#[expect(clippy::cast_precision_loss, reason = "some thousand mailboxes")]
fn per_sec(count: usize, since: Instant) -> f64 {
    count as f64 / since.elapsed().as_secs_f64()
}

fn median_us(times: &[Duration]) -> f64 {
    let micros: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
    median(&micros)
}

impl Bench {
    async fn round(&self, round: usize) -> anyhow::Result<Round> {
        // A process of its own for each part: nothing is remembered.
        let store = mail::open(&self.url).await?;
        let few = read_all(&store, part(&self.owners, round, ONE_BY_ONE), 1).await?;
        store.close().await;
        let of = part(&self.subjects, round, ONE_BY_ONE);
        let direct = direct_get::read_all(&self.client, of, MESSAGES, 1).await?;

        let store = mail::open(&self.url).await?;
        let started = Instant::now();
        read_all(&store, &self.owners, AT_ONCE).await?;
        let store_rate = per_sec(self.owners.len(), started);
        store.close().await;
        let started = Instant::now();
        direct_get::read_all(&self.client, &self.subjects, MESSAGES, AT_ONCE).await?;
        Ok(Round {
            store_us: median_us(&few),
            direct_us: median_us(&direct),
            store_rate,
            direct_rate: per_sec(self.subjects.len(), started),
        })
    }
}

/// Reads these mailboxes; the time of every read.
async fn read_all(store: &JetStreamMailboxes, owners: &[Did], width: usize) -> anyhow::Result<Vec<Duration>> {
    let at = now();
    stream::iter(owners)
        .map(|owner| async move {
            let started = Instant::now();
            let got = mail::read(store, owner, at).await?;
            ensure!(got == MESSAGES, "a mailbox of {MESSAGES} gave {got} messages");
            Ok(started.elapsed())
        })
        .buffer_unordered(width)
        .try_collect()
        .await
}

fn rows(rounds: &[Round], consumers: f64) -> Vec<Row> {
    let last = |figures: fn(&Round) -> String| rounds.last().map(figures).unwrap_or_default();
    vec![
        Row {
            id: "P8",
            what: "first read of a mailbox of 10, p50 / one batched Direct Get",
            bound: Bound::AtMost(1.5),
            rounds: rounds.iter().map(|r| r.store_us / r.direct_us).collect(),
            figures: last(|r| format!("{:.0} µs, {:.0} µs", r.store_us, r.direct_us)),
        },
        Row {
            id: "P8",
            what: "the same, 64 at a time, time of all / batched Direct Gets",
            bound: Bound::AtMost(1.5),
            rounds: rounds.iter().map(|r| r.direct_rate / r.store_rate).collect(),
            figures: last(|r| format!("{:.0}/s, {:.0}/s", r.store_rate, r.direct_rate)),
        },
        Row {
            id: "P8",
            what: "consumers of any stream",
            bound: Bound::AtMost(CONSUMERS_MAX),
            rounds: vec![consumers],
            figures: String::new(),
        },
    ]
}
