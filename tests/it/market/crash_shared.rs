//! Two processes of one hub on PostgreSQL, and one of them is killed in the middle of calls: the other one gives back what was
//! held, and whoever asks again there has its answer for one payment.

use std::collections::BTreeSet;
use std::time::Duration;

use aip_client::Client;
use aip_tests::clients::agent;
use aip_tests::cluster::{Cluster, Engines};
use aip_tests::market::{Books, Purse, books_in, call, capability, channel, purse, until_sold};
use aip_tests::provider::{Provider, Reply};
use aip_tests::raw::{Answer, Request, ask};
use aip_tests::{chance, rounds, seed};
use anyhow::{Context, Result, ensure};
use futures_util::future::join_all;
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::crash::{POINTS, Point, attempt};
use super::{made, refused};

/// Callers at once.
const CALLERS: usize = 6;
/// The price of a call, in millionths.
const PRICE: i64 = 3_000;
/// What a provider may take, so that a call of a dead process is given up after half a minute more.
const SETTINGS: &str = "[search]\nmodels = []\n[market]\nfee_bps = 100\nprovider_timeout_secs = 3\n";
/// Ends a wait that would never end: a call is given up within 30 s after its deadline, which is 30 s after its provider's.
const PATIENCE: Duration = Duration::from_mins(3);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Two processes, an agent who sells, and its provider.
struct Mall {
    cluster: Cluster,
    provider: Provider,
    _seller: Client,
}

impl Mall {
    async fn open() -> Result<Self> {
        let cluster = tokio::task::block_in_place(|| Cluster::on(Engines::shared(), 2, SETTINGS));
        let seller = agent(cluster.home(cluster.hub(0).url()), "shop").await?;
        let provider = Provider::echo().await;
        let offer = capability("paid@v1", Some("0.003"), provider.url(), &json!({}));
        seller.publish_listing(&offer).await?;
        for hub in cluster.hubs() {
            until_sold(hub, 1).await;
        }
        Ok(Self {
            cluster,
            provider,
            _seller: seller,
        })
    }

    /// A key of a new account with so many dollars.
    async fn key(&self, dollars: &str) -> Result<Purse> {
        let body = json!({ "label": "a test", "grant": dollars }).to_string();
        let answer = self
            .cluster
            .operate(1, Request::post("/admin/accounts", body))
            .await;
        ensure!(answer.status == 201, "{}", answer.text());
        let key = answer.json()["api_key"].as_str().map(str::to_owned);
        Ok(Purse::Key(key.context("no api_key")?))
    }

    async fn books(&self) -> Result<Books> {
        books_in(&self.cluster.operate(1, Request::get("/admin/market")).await)
    }

    /// Asks the process that is never killed.
    async fn ask(&self, request: &Request) -> Answer {
        ask(self.cluster.hub(1).url(), request).await
    }

    /// Kills the first process at this point of calls that are under way at it; the answers that came before.
    async fn killed(
        &mut self,
        requests: &[Request],
        point: Point,
        chance: &mut StdRng,
    ) -> Vec<Option<Answer>> {
        let so_far = self.provider.calls().len();
        self.provider.answer(move |call| match point {
            Point::Provider => Reply::Never,
            Point::Hold | Point::Capture => Reply::echo(call),
        });
        let url = self.cluster.hub(0).url().to_owned();
        let callers: Vec<_> = requests
            .iter()
            .map(|request| tokio::spawn(attempt(url.clone(), request.clone())))
            .collect();
        match point {
            Point::Hold => tokio::time::sleep(Duration::from_micros(chance.random_range(0..30_000))).await,
            Point::Provider => self.provider.called(so_far + requests.len()).await,
            Point::Capture => {
                let some = chance.random_range(1..=requests.len());
                self.provider.called(so_far + some).await;
                tokio::time::sleep(Duration::from_micros(chance.random_range(0..10_000))).await;
            }
        }
        tokio::task::block_in_place(|| self.cluster.hub_mut(0).kill());
        self.provider.answer(Reply::echo);
        let answers = join_all(callers).await;
        answers.into_iter().map(|answer| answer.ok().flatten()).collect()
    }

    /// Waits until nothing is held any more.
    async fn until_given_up(&self) -> Result<()> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while self.books().await?.held > 0 {
            let in_time = tokio::time::Instant::now() < deadline;
            ensure!(in_time, "calls of a dead process are not given up");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}

fn request(key: &Purse, round: usize, number: usize) -> Request {
    let input = json!({ "round": round, "number": number });
    key.on(call("shop", "paid@v1", &input))
        .field("Idempotency-Key", format!("round-{round}-caller-{number}"))
}

/// The call of before, asked again at the other process: the same answer, where there was one. Its nonce.
async fn assert_made_once(mall: &Mall, request: &Request, before: Option<&Answer>) -> Result<String> {
    let body: Value = made(&mall.ask(request).await);
    if let Some(before) = before {
        assert_eq!(before.json(), body, "another answer than before");
    }
    let nonce = body["receipt"]["nonce"].as_str().context("no receipt")?;
    let kept = mall
        .ask(&Request::get(format!("/ai-market/v2/receipts/{nonce}")))
        .await;
    assert_eq!(kept.json()["receipt"], body["receipt"]);
    Ok(nonce.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_killed_process_held_goes_back_at_another_and_nobody_pays_twice() -> Result<()> {
    let seed = seed("market on PostgreSQL");
    let mut chance = chance(seed);
    let mut mall = Mall::open().await?;
    let key = mall.key("100").await?;
    let mut calls = Vec::new();
    for round in 0..rounds().min(3) * POINTS.len() {
        let point = POINTS[round % POINTS.len()];
        let requests: Vec<Request> = (0..CALLERS).map(|number| request(&key, round, number)).collect();
        let before = mall.killed(&requests, point, &mut chance).await;
        if point == Point::Provider {
            // Money is held for each; until it is known to be lost nobody makes it again.
            assert!(mall.books().await?.held >= PRICE * i64::try_from(CALLERS)?);
            let again = mall.ask(&requests[0]).await;
            refused(&again, 409, "idempotency_in_progress");
        }
        calls.extend(requests.into_iter().zip(before));
        tokio::task::block_in_place(|| mall.cluster.hub_mut(0).restart());
        until_sold(mall.cluster.hub(0), 1).await;
    }
    let lost = calls.iter().filter(|(_, before)| before.is_none()).count();
    assert!(lost > 0, "no answer was lost: the fault was none");
    mall.until_given_up().await?;
    let mut nonces = BTreeSet::new();
    for (request, before) in &calls {
        nonces.insert(assert_made_once(&mall, request, before.as_ref()).await?);
    }
    assert_eq!(nonces.len(), calls.len(), "two calls have one receipt");
    let spent = PRICE * i64::try_from(calls.len())?;
    for hub in mall.cluster.hubs() {
        assert_eq!(purse(hub, &key).await?, (100_000_000 - spent, 0), "seed {seed}");
    }
    let books = mall.books().await?;
    assert_eq!((books.earned + books.fees, books.held), (spent, 0), "seed {seed}");
    Ok(())
}

/// Callers at both processes at once, on one channel.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_processes_stay_exact_on_one_channel() -> Result<()> {
    let mall = Mall::open().await?;
    let key = mall.key("1").await?;
    // Enough for 41 of them, and half a price.
    let open = channel(mall.cluster.hub(0), &key, 0.124_5).await?;
    let one = |number: usize| {
        let url = mall.cluster.hub(number % 2).url();
        let request = open.on(call("shop", "paid@v1", &json!({})));
        async move { ask(url, &request).await }
    };
    let answers = join_all((0..100).map(one)).await;
    let (paid, unpaid): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!((paid.len(), mall.provider.invocations()), (41, 41));
    for answer in unpaid {
        refused(answer, 402, "payment_failed");
    }
    let nonces: BTreeSet<String> = paid
        .iter()
        .map(|answer| made(answer)["receipt"]["nonce"].to_string())
        .collect();
    assert_eq!(nonces.len(), 41);
    assert_eq!(purse(mall.cluster.hub(1), &open).await?, (1_500, 0));
    let books = mall.books().await?;
    // One percent of 3,000 is 30.
    assert_eq!((books.fees, books.earned, books.held), (41 * 30, 41 * 2_970, 0));
    Ok(())
}
