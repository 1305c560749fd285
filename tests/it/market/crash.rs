//! The hub is killed at any point of a call. After the restart the books balance, nothing is held, and whoever asks again has its
//! answer for one payment.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aip_tests::market::{Purse, books, call, purse, until_sold};
use aip_tests::provider::Reply;
use aip_tests::raw::{Answer, Request, Wire, try_ask};
use aip_tests::{chance, rounds, seed};
use anyhow::{Context, Result};
use futures_util::future::join_all;
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::json;

use super::{Shop, made};

/// Callers at once.
const CALLERS: usize = 6;
/// The price of a call, in millionths.
const PRICE: i64 = 3_000;

/// Where the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Point {
    /// At any moment after the request was sent: before the hold, in it, after it.
    Hold,
    /// While the provider works: the money is held.
    Provider,
    /// At any moment after the provider's answer: before, in and after the one step of payment, receipt and answer.
    Capture,
}

pub(super) const POINTS: [Point; 3] = [Point::Hold, Point::Provider, Point::Capture];

/// One try; `None` where there was no answer, or nobody to ask.
pub(super) async fn attempt(url: String, request: Request) -> Option<Answer> {
    let mut wire = Wire::open(&url).await.ok()?;
    wire.send(&request.to_bytes()).await.ok()?;
    wire.answer().await
}

fn request(key: &Purse, round: usize, number: usize) -> Request {
    let input = json!({ "round": round, "number": number });
    key.on(call("shop", "paid@v1", &input))
        .field("Idempotency-Key", format!("round-{round}-caller-{number}"))
}

/// Kills the hub at this point of calls that are under way; the answers that came before.
async fn killed(
    shop: &mut Shop,
    key: &Purse,
    round: usize,
    point: Point,
    chance: &mut StdRng,
) -> Vec<Option<Answer>> {
    let so_far = shop.provider.calls().len();
    let answered = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&answered);
    shop.provider.answer(move |call| {
        counting.fetch_add(1, Ordering::SeqCst);
        if point == Point::Provider {
            Reply::Never
        } else {
            Reply::echo(call)
        }
    });
    let url = shop.hub.url().to_owned();
    let callers: Vec<_> = (0..CALLERS)
        .map(|number| tokio::spawn(attempt(url.clone(), request(key, round, number))))
        .collect();
    match point {
        Point::Hold => tokio::time::sleep(Duration::from_micros(chance.random_range(0..30_000))).await,
        Point::Provider => shop.provider.called(so_far + CALLERS).await,
        Point::Capture => {
            shop.provider
                .called(so_far + chance.random_range(1..=CALLERS))
                .await;
            tokio::time::sleep(Duration::from_micros(chance.random_range(0..10_000))).await;
        }
    }
    tokio::task::block_in_place(|| shop.hub.kill());
    let answers = join_all(callers).await;
    answers.into_iter().map(|answer| answer.ok().flatten()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn killed_at_any_point_of_a_call_the_books_balance_and_nobody_pays_twice() -> Result<()> {
    let seed = seed("market");
    let mut chance = chance(seed);
    let mut shop = Shop::open("fee_bps = 100").await?;
    shop.sells("paid@v1", Some("0.003")).await?;
    let key = shop.key("100").await?;
    let (mut nonces, mut lost, mut calls) = (BTreeSet::new(), 0, 0);
    for round in 0..rounds() * POINTS.len() {
        let point = POINTS[round % POINTS.len()];
        let before = killed(&mut shop, &key, round, point, &mut chance).await;
        tokio::task::block_in_place(|| shop.hub.restart());
        until_sold(&shop.hub, 1).await;
        let (_, held) = purse(&shop.hub, &key).await?;
        assert_eq!(held, 0, "{point:?}: held after the restart");
        assert_eq!(books(&shop.hub).await?.held, 0, "{point:?}");
        shop.provider.answer(Reply::echo);
        for (number, before) in before.into_iter().enumerate() {
            let again = try_ask(shop.hub.url(), &request(&key, round, number)).await;
            let again = again.context("no answer")?;
            let body = made(&again);
            assert_eq!(
                body["result"]["echo"],
                json!({ "round": round, "number": number })
            );
            match before {
                Some(before) => assert_eq!(before.json(), body, "{point:?}: another answer than before"),
                None => lost += 1,
            }
            let nonce = body["receipt"]["nonce"]
                .as_str()
                .context("no receipt")?
                .to_owned();
            let kept = try_ask(
                shop.hub.url(),
                &Request::get(format!("/ai-market/v2/receipts/{nonce}")),
            )
            .await;
            assert_eq!(
                kept.context("no answer")?.json()["receipt"],
                body["receipt"],
                "{point:?}"
            );
            assert!(nonces.insert(nonce), "{point:?}: two calls have one receipt");
            calls += 1;
        }
        let spent = PRICE * calls;
        assert_eq!(
            purse(&shop.hub, &key).await?,
            (100_000_000 - spent, 0),
            "{point:?}, seed {seed}"
        );
        let books = books(&shop.hub).await?;
        assert_eq!(books.earned + books.fees, spent, "{point:?}, seed {seed}");
    }
    assert!(lost > 0, "no answer was lost: the fault was none");
    Ok(())
}

/// Without a key of its own a lost call is asked again as another one; what was held for the first has gone back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_without_anybody_who_asks_again_goes_back() -> Result<()> {
    let mut shop = Shop::open("trials_per_visitor = 1").await?;
    shop.sells("paid@v1", Some("0.003")).await?;
    let key = shop.key("1").await?;
    let open = aip_tests::market::channel(&shop.hub, &key, 0.5).await?;
    shop.provider.answer(|_| Reply::Never);
    let visitor = call("shop", "paid@v1", &json!({})).field("X-AIMarket-Sandbox-Visitor", "visitor-one");
    let requests = [
        key.on(call("shop", "paid@v1", &json!({}))),
        open.on(call("shop", "paid@v1", &json!({}))),
        visitor.clone(),
    ];
    let url = shop.hub.url().to_owned();
    let callers: Vec<_> = requests
        .into_iter()
        .map(|request| tokio::spawn(attempt(url.clone(), request)))
        .collect();
    shop.provider.called(3).await;
    assert_eq!(books(&shop.hub).await?.held, 2 * PRICE);
    tokio::task::block_in_place(|| shop.hub.restart());
    for caller in callers {
        assert!(caller.await?.is_none());
    }
    until_sold(&shop.hub, 1).await;
    assert_eq!(purse(&shop.hub, &key).await?, (500_000, 0));
    assert_eq!(purse(&shop.hub, &open).await?, (500_000, 0));
    shop.provider.answer(Reply::echo);
    // The trial was given back: it can be had, once.
    made(&shop.ask(&visitor).await);
    super::refused(&shop.ask(&visitor).await, 429, "trial_quota_exhausted");
    Ok(())
}
