//! The way between the hub and NATS: cut, slow, stalled, or without answers.

use std::time::Duration;

use aip_engines::{Nats, NatsOptions, Proxy};
use aip_tests::cluster::Engines;
use aip_tests::{rounds_of, standstill};
use anyhow::Result;
use rand::RngExt as _;

use super::ground::Ground;
use super::{hurt, on_server};

/// Processes of the hub, each with a way of its own.
const PROCESSES: usize = 2;
/// For each batch on its way, in either direction.
const DELAY: Duration = Duration::from_millis(150);
/// Bytes to the server until the way is cut: in the middle of some publish.
const BYTES_MAX: u64 = 20_000;

/// A hub on one server, a proxy before the server for each process.
async fn start(fault: &'static str) -> Result<(Nats, Vec<Proxy>, Ground)> {
    let nats = hurt(|| Nats::start(NatsOptions::default()));
    let proxies: Vec<_> = (0..PROCESSES).map(|_| Proxy::to(nats.address())).collect();
    let direct = on_server(&nats);
    let ways = proxies.iter().map(|proxy| Engines {
        mailboxes: proxy.url(&nats.url()),
        ..direct.clone()
    });
    let ground = Ground::start(fault, &ways.collect::<Vec<_>>()).await?;
    Ok((nats, proxies, ground))
}

/// The way of one process, or those of all.
fn hurt_ways<'a>(ground: &mut Ground, proxies: &'a [Proxy]) -> &'a [Proxy] {
    match ground.chance.random_range(0..=proxies.len()) {
        all if all == proxies.len() => proxies,
        one => &proxies[one..=one],
    }
}

fn delay(ways: &[Proxy], delay: Duration) {
    for way in ways {
        way.delay(delay);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_to_nats_is_cut() -> Result<()> {
    let (_nats, proxies, mut ground) = start("the way to NATS is cut").await?;
    for _ in 0..rounds_of(4) {
        ground.goes_on().await;
        let ways = hurt_ways(&mut ground, &proxies);
        if ground.chance.random_bool(0.5) {
            let bytes = ground.chance.random_range(1..BYTES_MAX);
            for way in ways {
                way.drop_after(bytes);
            }
            ground.moment(1_000).await;
        }
        hurt(|| ways.iter().for_each(Proxy::cut));
        ground.moment(2_000).await;
        hurt(|| ways.iter().for_each(Proxy::heal));
        ground.recovers().await?;
    }
    ground.judge(&["aip_nats_reconnects_total"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_to_nats_is_slow() -> Result<()> {
    let (_nats, proxies, mut ground) = start("the way to NATS is slow").await?;
    for _ in 0..rounds_of(2) {
        let ways = hurt_ways(&mut ground, &proxies);
        delay(ways, DELAY);
        ground.goes_on().await;
        delay(ways, Duration::ZERO);
        ground.recovers().await?;
    }
    ground.judge(&[]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_to_nats_stalls() -> Result<()> {
    let (_nats, proxies, mut ground) = start("the way to NATS stalls").await?;
    for _ in 0..rounds_of(1) {
        ground.goes_on().await;
        proxies.iter().for_each(Proxy::stall);
        tokio::time::sleep(standstill()).await;
        hurt(|| proxies.iter().for_each(Proxy::heal));
        ground.recovers().await?;
    }
    ground
        .judge(&["aip_nats_timeouts_total", "aip_nats_unknown_outcomes_total"])
        .await
}

/// What was asked for is done, and the answer never comes: the outcome is unknown, and a retry finds what was stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answers_of_nats_are_lost() -> Result<()> {
    let (_nats, proxies, mut ground) = start("the answers of NATS are lost").await?;
    for _ in 0..rounds_of(2) {
        ground.goes_on().await;
        let ways = hurt_ways(&mut ground, &proxies);
        ways.iter().for_each(Proxy::mute);
        tokio::time::sleep(standstill()).await;
        hurt(|| ways.iter().for_each(Proxy::cut));
        hurt(|| ways.iter().for_each(Proxy::heal));
        ground.recovers().await?;
    }
    let moved = [
        "aip_nats_reconnects_total",
        "aip_nats_unknown_outcomes_total",
        "aip_nats_duplicates_total",
    ];
    ground.judge(&moved).await
}
