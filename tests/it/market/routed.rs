//! Calls of what other hubs sell: two and three real hubs, of which one is asked and another does the work.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use aip_client::market::{Call, Purse as Paid};
use aip_client::protocol::market::Verdict;
use aip_tests::clients::agent;
use aip_tests::market::{INVOKE, Purse, account, books, listed, micros, purse, sell, settings, sold};
use aip_tests::raw::{Answer, Request, ask};
use aip_tests::{HubOptions, TestHub};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};

use super::{Shop, made, refused};
use crate::faults::DEADLINE;

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A hub that is asked, and shops at hubs that it knows.
struct Town {
    near: TestHub,
    far: Vec<Shop>,
    /// Of the file with keys.
    _folder: tempfile::TempDir,
}

/// How this hub deals with the other ones, and with whose keys.
struct Rules<'a> {
    mode: &'a str,
    fee_bps: u16,
    market: &'a str,
    /// A key of an account at the first of them.
    key: Option<&'a Purse>,
}

impl<'a> Rules<'a> {
    fn of(mode: &'a str) -> Self {
        Self {
            mode,
            fee_bps: 0,
            market: "",
            key: None,
        }
    }
}

impl Town {
    /// Around these shops, which sell already.
    async fn around(far: Vec<Shop>, rules: &Rules<'_>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("peers.keys");
        if let (Some(Purse::Key(key)), Some(shop)) = (rules.key, far.first()) {
            let mut file = std::fs::OpenOptions::new()
                .create_new(true)
                .write(true)
                .mode(0o600)
                .open(&path)?;
            writeln!(file, "{} {key}", address(&shop.hub))?;
        }
        let keys_file = rules
            .key
            .map(|_| format!("keys_file = '{}'\n", path.display()))
            .unwrap_or_default();
        let HubOptions { config, .. } = settings(rules.market);
        let config = format!(
            "{}[market_peers]\nrouting_fee_bps = {}\n{keys_file}",
            config.unwrap_or_default(),
            rules.fee_bps
        );
        let near = TestHub::start_with(HubOptions {
            config: Some(config),
            ..HubOptions::default()
        });
        let town = Self {
            near,
            far,
            _folder: folder,
        };
        for shop in &town.far {
            admit(&town.near, shop, rules.mode).await?;
        }
        Ok(town)
    }

    fn url(&self, shop: usize) -> String {
        address(&self.far[shop].hub)
    }

    /// Asks the near hub for what this shop sells.
    async fn calls(&self, shop: usize, id: &str, purse: &Purse, input: &Value) -> Answer {
        self.asks(&purse.on(routed(&self.url(shop), id, input))).await
    }

    async fn asks(&self, request: &Request) -> Answer {
        ask(self.near.url(), request).await
    }
}

/// Where a hub says that it is.
fn address(hub: &TestHub) -> String {
    format!("http://{}", hub.domain())
}

/// Lets a hub in under these rules, and returns when all that it sells is found here.
async fn admit(near: &TestHub, shop: &Shop, mode: &str) -> Result<()> {
    let url = address(&shop.hub);
    decide(near, "/admin/market/peers", &json!({ "url": url })).await?;
    let rules = json!({ "url": url, "mode": mode }).to_string();
    let ruled = Request::new("PUT", "/admin/market/peer/mode").field("content-type", "application/json");
    let ruled = near.operate(ruled.body(rules)).await;
    ensure!(ruled.status == 200, "{}", ruled.text());
    let count = sold(&shop.hub).await.len();
    let found = Request::get(format!("/ai-market/v2/search?hub={}&limit=0", encoded(&url)));
    let looking = async {
        while ask(near.url(), &found).await.json()["matches"]
            .as_array()
            .map(Vec::len)
            != Some(count)
        {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let in_time = tokio::time::timeout(DEADLINE, looking).await;
    ensure!(
        in_time.is_ok(),
        "{}\n{}",
        ask(near.url(), &found).await.text(),
        near.log()
    );
    Ok(())
}

async fn decide(near: &TestHub, path: &str, body: &Value) -> Result<()> {
    let decided = near.operate(Request::post(path, body.to_string())).await;
    ensure!(decided.status == 200, "{path}: {}", decided.text());
    Ok(())
}

/// As a value of a query.
fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn routed(hub: &str, id: &str, input: &Value) -> Request {
    let body = json!({ "product_id": "shop", "capability_id": id, "source_hub": hub, "input": input });
    Request::post(INVOKE, body.to_string())
}

async fn shop(market: &str) -> Result<Shop> {
    let shop = Shop::open(market).await?;
    shop.sells("echo@v1", Some("0.01")).await?;
    Ok(shop)
}

/// A shop of which `steps@v1` costs 0.01, and nothing as long as `steps` is 10 at most.
async fn with_a_tier() -> Result<Shop> {
    let shop = Shop::open("").await?;
    let invoke = json!({ "url": shop.provider.url(), "free_tier": { "field": "steps", "max": 10 } });
    let offer = listed("steps@v1", Some("0.01"), &invoke, &json!({}));
    sell(&shop.hub, &shop.seller, &[offer]).await?;
    Ok(shop)
}

#[tokio::test]
async fn a_broker_hands_on_what_the_other_hub_asks_for_and_what_it_gives() -> Result<()> {
    let shop = shop("trials_per_visitor = 1").await?;
    shop.sells("free@v1", None).await?;
    let town = Town::around(
        vec![shop],
        &Rules {
            fee_bps: 1_000,
            ..Rules::of("broker")
        },
    )
    .await?;
    let (far, url) = (&town.far[0], town.url(0));
    // What it wants is what it wants of its own buyers, and about its own doors.
    let here = far.calls("echo@v1", &Purse::Empty, &json!({})).await;
    let there = town.calls(0, "echo@v1", &Purse::Empty, &json!({})).await;
    assert_eq!((there.status, there.json()), (402, here.json()));
    let key = account(&town.near, "1").await?.1;
    let there = town.calls(0, "echo@v1", &key, &json!({})).await;
    assert_eq!(
        (there.status, there.json()),
        (402, here.json()),
        "money here pays nobody there"
    );
    assert_eq!(purse(&town.near, &key).await?, (1_000_000, 0));
    assert_eq!(far.provider.calls().len(), 0);
    // Who tries, tries there.
    let visitor = |request: Request| request.field("X-AIMarket-Sandbox-Visitor", "visitor-one");
    let body = made(
        &town
            .asks(&visitor(routed(&url, "echo@v1", &json!({ "a": 1 }))))
            .await,
    );
    assert_eq!(body["result"], json!({ "echo": { "a": 1 } }));
    assert_eq!((&body["sandbox"], micros(&body["price_usd"])), (&json!(true), 0));
    assert_eq!(
        (&body["route_mode"], &body["source_hub"]),
        (&json!("broker"), &json!(url))
    );
    assert_eq!(
        (&body["receipt_verified"], &body["hub_receipt"]),
        (&json!(true), &Value::Null)
    );
    let nonce = body["receipt"]["nonce"].as_str().context("no nonce")?;
    let kept = ask(&url, &Request::get(format!("/ai-market/v2/receipts/{nonce}"))).await;
    assert_eq!(
        kept.json()["receipt"],
        body["receipt"],
        "the other hub has kept it, as it is"
    );
    let none = town
        .asks(&Request::get(format!("/ai-market/v2/receipts/{nonce}")))
        .await;
    refused(&none, 404, "receipt_not_found");
    let again = town.asks(&visitor(routed(&url, "echo@v1", &json!({})))).await;
    let again = refused(&again, 502, "provider_failed");
    assert_eq!(again["reason"], "refused", "its trials there are used up");
    // A fee is of what was paid: of nothing, nothing.
    let body = made(&town.calls(0, "free@v1", &key, &json!({})).await);
    assert_eq!((micros(&body["charged_usd"]), micros(&body["price_usd"])), (0, 0));
    assert_eq!(purse(&town.near, &key).await?, (1_000_000, 0));
    let books = books(&town.near).await?;
    assert_eq!((books.fees, books.earned, books.held), (0, 0, 0));
    Ok(())
}

#[tokio::test]
async fn a_hub_that_sells_for_another_is_paid_itself() -> Result<()> {
    let town = Town::around(
        vec![with_a_tier().await?],
        &Rules {
            fee_bps: 1_000,
            ..Rules::of("sells_for")
        },
    )
    .await?;
    let input = json!({ "steps": 5 });
    let unpaid = refused(
        &town.calls(0, "steps@v1", &Purse::Empty, &input).await,
        402,
        "payment_required",
    );
    assert_eq!(micros(&unpaid["needed"]), 10_000);
    assert_eq!(town.far[0].provider.calls().len(), 0);
    let key = account(&town.near, "1").await?.1;
    let body = made(&town.calls(0, "steps@v1", &key, &input).await);
    assert_eq!(
        (micros(&body["price_usd"]), micros(&body["routing_fee_usd"])),
        (10_000, 0)
    );
    assert_eq!(body["receipt_verified"], true, "{body}");
    let own = body["hub_receipt"]["nonce"].as_str().context("no receipt")?;
    let kept = town
        .asks(&Request::get(format!("/ai-market/v2/receipts/{own}")))
        .await;
    assert_eq!(
        (kept.status, &kept.json()["receipt"]),
        (200, &body["hub_receipt"])
    );
    assert_eq!(purse(&town.near, &key).await?, (990_000, 0));
    // Beyond what the other hub gives for nothing it wants money, which this hub has not agreed on with it.
    let unpaid = town.calls(0, "steps@v1", &key, &json!({ "steps": 50 })).await;
    refused(&unpaid, 502, "upstream_unpaid");
    assert_eq!(
        purse(&town.near, &key).await?,
        (990_000, 0),
        "nothing was charged"
    );
    let books = books(&town.near).await?;
    assert_eq!(
        (books.fees, books.earned, books.held),
        (0, 10_000, 0),
        "owed to the other hub"
    );
    Ok(())
}

#[tokio::test]
async fn a_reseller_pays_with_its_own_key() -> Result<()> {
    let shop = shop("").await?;
    let ours = shop.key("0.015").await?;
    let rules = Rules {
        fee_bps: 1_000,
        key: Some(&ours),
        ..Rules::of("reseller")
    };
    let town = Town::around(vec![shop], &rules).await?;
    let far = &town.far[0];
    let unpaid = refused(
        &town.calls(0, "echo@v1", &Purse::Empty, &json!({})).await,
        402,
        "payment_required",
    );
    assert_eq!(
        (micros(&unpaid["needed"]), micros(&unpaid["routing_fee_usd"])),
        (11_000, 1_000)
    );
    let key = account(&town.near, "1").await?.1;
    let body = made(&town.calls(0, "echo@v1", &key, &json!({ "a": 1 })).await);
    assert_eq!(
        (micros(&body["price_usd"]), micros(&body["remaining_balance"])),
        (11_000, 989_000)
    );
    assert_eq!(
        (
            micros(&body["receipt"]["price_usd"]),
            micros(&body["hub_receipt"]["price_usd"])
        ),
        (10_000, 11_000)
    );
    assert_eq!(body["receipt_verified"], true, "{body}");
    assert_eq!(
        purse(&far.hub, &ours).await?,
        (5_000, 0),
        "the other hub was paid"
    );
    // The next is beyond what is in the account there.
    refused(
        &town.calls(0, "echo@v1", &key, &json!({})).await,
        502,
        "upstream_unpaid",
    );
    assert_eq!(
        (purse(&town.near, &key).await?, purse(&far.hub, &ours).await?),
        ((989_000, 0), (5_000, 0))
    );
    let (near, far) = (books(&town.near).await?, books(&far.hub).await?);
    assert_eq!((near.fees, near.earned, near.held), (11_000, 0, 0));
    assert_eq!((far.earned, far.held), (10_000, 0));
    let counted = r#"aip_market_routed_total{mode="reseller",result="upstream_unpaid"}"#;
    assert_eq!(town.near.metric(counted).await, Some(1.0));
    Ok(())
}

/// Pitfall 54: two hubs, the same ids, other prices.
#[tokio::test]
async fn of_three_hubs_the_one_that_is_named_does_it() -> Result<()> {
    let (one, two) = (with_a_tier().await?, Shop::open("").await?);
    two.sells("steps@v1", Some("7.5")).await?;
    let town = Town::around(vec![one, two], &Rules::of("broker")).await?;
    let body = json!({ "product_id": "shop", "capability_id": "steps@v1", "input": {} }).to_string();
    let missing = refused(
        &town.asks(&Request::post(INVOKE, body)).await,
        400,
        "source_hub_required",
    );
    let mut hubs = vec![town.url(0), town.url(1)];
    hubs.sort();
    assert_eq!(missing["source_hubs"], json!(hubs));
    let body = made(
        &town
            .calls(0, "steps@v1", &Purse::Empty, &json!({ "steps": 1 }))
            .await,
    );
    assert_eq!(
        (micros(&body["list_price_usd"]), &body["source_hub"]),
        (10_000, &json!(town.url(0)))
    );
    assert_eq!(
        (
            town.far[0].provider.calls().len(),
            town.far[1].provider.calls().len()
        ),
        (1, 0)
    );
    let unpaid = town
        .calls(1, "steps@v1", &Purse::Empty, &json!({ "steps": 1 }))
        .await;
    assert_eq!(
        (unpaid.status, micros(&unpaid.json()["needed"])),
        (402, 7_500_000)
    );
    refused(
        &town
            .asks(&routed("https://nobody.example", "steps@v1", &json!({})))
            .await,
        404,
        "hub_unknown",
    );
    // It goes by its own name also where another one is asked.
    let own = town
        .asks(&routed(&address(&town.near), "steps@v1", &json!({})))
        .await;
    refused(&own, 400, "source_hub_required");
    Ok(())
}

/// Pitfall 34: the price that the other hub asks for is the one that was looked at.
#[tokio::test]
async fn a_price_that_was_raised_meanwhile_is_paid_by_nobody() -> Result<()> {
    let shop = shop("").await?;
    let ours = shop.key("1").await?;
    let town = Town::around(
        vec![shop],
        &Rules {
            key: Some(&ours),
            ..Rules::of("reseller")
        },
    )
    .await?;
    let (far, key) = (&town.far[0], account(&town.near, "1").await?.1);
    let dearer = far.offer("echo@v1", Some("0.5"), &json!({}));
    far.seller.publish_listing(&dearer).await?;
    let dear = Request::get("/ai-market/v2/search?budget=0.4&limit=0");
    while far.ask(&dear).await.json()["matches"] != json!([]) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let body = refused(
        &town.calls(0, "echo@v1", &key, &json!({})).await,
        502,
        "provider_failed",
    );
    assert!(
        body["detail"]
            .as_str()
            .unwrap_or_default()
            .contains("price_limit_exceeded"),
        "{body}"
    );
    assert_eq!(
        (purse(&town.near, &key).await?, purse(&far.hub, &ours).await?),
        ((1_000_000, 0), (1_000_000, 0))
    );
    assert_eq!(far.provider.calls().len(), 0);
    Ok(())
}

/// The library checks each receipt with the key of the hub that signed it.
#[tokio::test]
async fn a_client_checks_both_receipts() -> Result<()> {
    let town = Town::around(vec![with_a_tier().await?], &Rules::of("sells_for")).await?;
    let client = agent(&town.near, "buyer").await?;
    let Purse::Key(key) = account(&town.near, "1").await?.1 else {
        anyhow::bail!("an account has a key");
    };
    let input: Map<String, Value> = json!({ "steps": 3 }).as_object().cloned().unwrap_or_default();
    let call = Call::new("shop", "steps@v1", input).source_hub(town.url(0));
    let paid = Paid::Account(aip_client::market::ApiKey::new(&key)?);
    let invoked = client.invoke(&call, &paid).await?;
    let theirs = client
        .check_invoked(&call, &invoked)
        .await?
        .context("no receipt")?;
    assert_eq!(theirs.verdict, Verdict::True);
    let ours = client
        .check_hub_receipt(&call, &invoked)
        .await?
        .context("no receipt of the hub")?;
    assert_eq!(ours.verdict, Verdict::True);
    assert_ne!(theirs.key, ours.key, "two hubs, two keys");
    Ok(())
}

/// A hub that was shut out is not called, and its answer is not waited for.
#[tokio::test]
async fn a_hub_that_is_away_or_was_shut_out_costs_nothing() -> Result<()> {
    let mut town = Town::around(vec![with_a_tier().await?], &Rules::of("sells_for")).await?;
    let (key, url) = (account(&town.near, "1").await?.1, town.url(0));
    town.far[0].hub.kill();
    let body = refused(
        &town.calls(0, "steps@v1", &key, &json!({ "steps": 1 })).await,
        502,
        "provider_failed",
    );
    assert_eq!(body["reason"], "unreachable");
    assert_eq!(purse(&town.near, &key).await?, (1_000_000, 0));
    decide(&town.near, "/admin/market/peer/block", &json!({ "url": url })).await?;
    let body = refused(
        &town.calls(0, "steps@v1", &key, &json!({ "steps": 1 })).await,
        403,
        "hub_not_active",
    );
    assert_eq!(body["status"], "blocked");
    Ok(())
}
