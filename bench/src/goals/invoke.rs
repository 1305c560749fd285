//! Calls of the market: what they cost beyond the provider called directly, and whether many at once stay exact (`invoke`); how
//! many there are in the time that the reference hub takes (`invoke-aimarket`).

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::Options;
use crate::load::{self, Connection, Load, Pace, Requests};
use crate::market::{PRICE_MICROS, Shop, Way, call, calls, direct};
use crate::process::usage;
use crate::report::{Bound, Row};
use crate::yardstick::aimarket::{Package, skip};
use crate::yardstick::echo::Echo;

/// Callers at once where a rate is measured.
const WIDTH: usize = 64;
/// Callers at once of both hubs.
const WIDTH_OF_TWO: usize = 16;
/// Callers of one channel at once, and what is in it: the price of so many calls, and a half.
const CROWD: usize = 200;
const PAYABLE: i64 = 123;
/// What is wanted of the reference hub's rate.
const TIMES: f64 = 20.0;

const BEYOND: [&str; 3] = [
    "µs of a free call beyond the provider called directly, p50",
    "µs of a call paid by key beyond the provider, p50",
    "µs of a call paid from a channel beyond the provider, p50",
];
const TIMES_AS_LONG: [&str; 3] = [
    "a free call / the provider called directly, p50, one caller",
    "a call paid by key / the provider called directly, p50, one caller",
    "a call paid from a channel / the provider called directly, p50, one caller",
];
const RATE: [&str; 3] = [
    "free calls / the provider called directly, 64 callers",
    "calls paid by key / the provider called directly, 64 callers",
    "calls paid from one channel / the provider called directly, 64 callers",
];
const AGAINST: [&str; 3] = [
    "free calls / aimarket-hub, 16 callers",
    "calls paid by key / aimarket-hub, 16 callers",
    "calls paid from one channel / aimarket-hub, 16 callers",
];

/// Measures the goals of this file.
pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let scratch = options.scratch()?;
    let echo = Echo::start()?;
    let shop = Shop::open(&scratch.path().join("hub"), &echo.url()).await?;
    let mut rows = Vec::new();
    if options.wants(&["invoke"]) {
        rows.extend(beside_the_provider(options, &shop, &echo).await?);
        rows.push(exact(&shop).await?);
    }
    if options.asks_for("invoke-aimarket") {
        match Package::install(&options.python, &scratch.path().join("theirs")) {
            Ok(package) => rows.extend(beside_the_reference(options, &shop, &echo, &package).await?),
            Err(reason) => skip(&reason),
        }
    }
    Ok(rows)
}

async fn run(options: &Options, port: u16, width: usize, requests: &Requests) -> anyhow::Result<Load> {
    load::run(port, width, options.secs(), Pace::Closed, requests).await
}

/// What one way to pay came to, round after round.
#[derive(Debug, Default)]
struct Series {
    beyond_us: Vec<f64>,
    times_as_long: Vec<f64>,
    rates: Vec<f64>,
    alone: String,
    together: String,
}

async fn beside_the_provider(options: &Options, shop: &Shop, echo: &Echo) -> anyhow::Result<Vec<Row>> {
    let mut all = [Series::default(), Series::default(), Series::default()];
    for _ in 0..options.rounds() {
        for (series, way) in all.iter_mut().zip(Way::ALL) {
            let requests = calls(way, &shop.purses);
            let direct1 = run(options, echo.port, 1, &direct()).await?;
            let ours1 = run(options, shop.port(), 1, &requests).await?;
            let direct64 = run(options, echo.port, WIDTH, &direct()).await?;
            let before = usage(shop.pid());
            let ours64 = run(options, shop.port(), WIDTH, &requests).await?;
            let cpu_us = cpu_us(usage(shop.pid()).cpu_secs - before.cpu_secs, &ours64);
            let (ours, theirs) = (ours1.percentile_us(50.0), direct1.percentile_us(50.0));
            series.beyond_us.push(ours - theirs);
            series.times_as_long.push(ours / theirs);
            series.rates.push(ours64.rate / direct64.rate);
            series.alone = format!(
                "{ours:.0} µs, {theirs:.0} µs; p99 {:.0} µs",
                ours1.percentile_us(99.0)
            );
            series.together = format!(
                "{:.0}/s, {:.0}/s; p99 {:.1} ms, CPU of the hub {cpu_us:.0} µs a call",
                ours64.rate,
                direct64.rate,
                ours64.percentile_us(99.0) / 1_000.0,
            );
        }
    }
    let rows = all.into_iter().enumerate().flat_map(|(at, series)| {
        [
            (BEYOND, series.beyond_us, series.alone.clone()),
            (TIMES_AS_LONG, series.times_as_long, series.alone),
            (RATE, series.rates, series.together),
        ]
        .map(|(what, rounds, figures)| stated(what.get(at).copied(), rounds, figures))
    });
    Ok(rows.collect())
}

fn stated(what: Option<&'static str>, rounds: Vec<f64>, figures: String) -> Row {
    Row {
        id: "invoke",
        what: what.unwrap_or_default(),
        bound: Bound::Stated,
        rounds,
        figures,
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a short run fit a double")]
fn cpu_us(secs: f64, load: &Load) -> f64 {
    secs * 1e6 / load.answers.max(1) as f64
}

/// Two hundred callers of one channel that holds the price of 123 calls and a half.
#[expect(clippy::cast_precision_loss, reason = "a small amount")]
async fn exact(shop: &Shop) -> anyhow::Result<Row> {
    let deposit = PAYABLE * PRICE_MICROS + PRICE_MICROS / 2;
    let purses = shop.with_channel(deposit as f64 / 1e6).await?;
    let request = call(Way::Channel, &purses);
    let together = Arc::new(Barrier::new(CROWD));
    let mut callers = JoinSet::new();
    for _ in 0..CROWD {
        let mut connection = Connection::open(shop.port()).await?;
        let (request, together) = (request.clone(), Arc::clone(&together));
        callers.spawn(async move {
            together.wait().await;
            connection.exchange(&request).await.map(|(status, _)| status)
        });
    }
    let (mut made, mut unpaid) = (0_i64, 0_i64);
    while let Some(status) = callers.join_next().await {
        match status?? {
            200 => made += 1,
            402 => unpaid += 1,
            other => anyhow::bail!("a call was answered {other}"),
        }
    }
    let (left, held) = shop.left(&purses).await?;
    let is_exact = (made, left, held) == (PAYABLE, PRICE_MICROS / 2, 0);
    Ok(Row {
        id: "invoke",
        what: "200 callers at once on one channel: as many calls as it pays, to the millionth",
        bound: Bound::AtLeast(1.0),
        rounds: vec![f64::from(u8::from(is_exact))],
        figures: format!("{made} made, {unpaid} refused, {left} millionths left, {held} held"),
    })
}

async fn beside_the_reference(
    options: &Options,
    shop: &Shop,
    echo: &Echo,
    package: &Package,
) -> anyhow::Result<Vec<Row>> {
    let (theirs, their_purses) = package.market(&echo.url())?;
    let mut rows = Vec::new();
    for (way, what) in Way::ALL.into_iter().zip(AGAINST) {
        let (ours, others) = (calls(way, &shop.purses), calls(way, &their_purses));
        warm(theirs.port, &others).await?;
        let mut rounds = Vec::new();
        let mut figures = String::new();
        for _ in 0..options.rounds() {
            let ours = run(options, shop.port(), WIDTH_OF_TWO, &ours).await?;
            let others = run(options, theirs.port, WIDTH_OF_TWO, &others).await?;
            rounds.push(ours.rate / others.rate);
            figures = format!(
                "{:.0}/s, {:.1}/s; p50 {:.2} ms, {:.1} ms",
                ours.rate,
                others.rate,
                ours.percentile_us(50.0) / 1_000.0,
                others.percentile_us(50.0) / 1_000.0,
            );
        }
        rows.push(Row {
            id: "invoke-aimarket",
            what,
            bound: Bound::AtLeast(TIMES),
            rounds,
            figures,
        });
    }
    Ok(rows)
}

/// What it makes at its first call, it has made then.
async fn warm(port: u16, requests: &Requests) -> anyhow::Result<()> {
    let load = load::run(port, 1, Duration::from_secs(1), Pace::Closed, requests).await?;
    ensure!(load.answers > 0, "aimarket-hub answers nothing");
    Ok(())
}
