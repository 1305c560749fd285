//! The reference and this hub as peers: each finds what the other sells, and buyers of each call there.

use aip_client::market::{Call, Purse as Paid};
use aip_client::protocol::market::receipt::{Expected, verify};
use aip_client::protocol::market::{Value as Signed, Verdict, manifest};
use aip_tests::market::{INVOKE, Purse, books, micros, purse, settings};
use aip_tests::raw::{Answer, Request, ask};
use aip_tests::reference::{ReferenceHub, Sold, reference_python};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::super::{Shop, made, refused};
use super::{asks_for_text, key_of, purses};
use crate::faults::until;

/// Where our hub is, as it says of itself.
fn address(shop: &Shop) -> String {
    format!("http://{}", shop.hub.domain())
}

/// What the reference sells: under ids of its own, and one under ids that this hub sells as well.
fn theirs(url: &str) -> [Sold; 3] {
    [("there.free@v1", 0.0), ("there.paid@v1", 0.02), ("paid@v1", 0.05)].map(|(id, price)| Sold {
        input_schema: asks_for_text(),
        ..Sold::new(id, price, url)
    })
}

/// A call of a capability at a hub.
fn at(hub: &str, capability: &str) -> Request {
    let body = json!({
        "product_id": "shop", "capability_id": capability, "source_hub": hub, "input": { "text": "Köln" }
    });
    Request::post(INVOKE, body.to_string())
}

fn matches(found: &Answer) -> Vec<(String, String)> {
    let text = |found: &Value, name: &str| found[name].as_str().unwrap_or_default().to_owned();
    let found = found.json();
    let all = found["matches"].as_array().into_iter().flatten();
    all.map(|found| (text(found, "source_hub"), text(found, "capability_id")))
        .collect()
}

const ALL: &str = "/ai-market/v2/search?limit=100";

/// This hub with the reference as a peer that its operator let in, and the reference with this hub as one.
struct Peers {
    ours: Shop,
    theirs: ReferenceHub,
    /// Where this hub's keys at others are.
    keys: tempfile::NamedTempFile,
}

impl Peers {
    /// `None` where the reference is not installed.
    async fn open() -> Result<Option<Self>> {
        let Some(python) = reference_python() else {
            return Ok(None);
        };
        // Nobody else can read it.
        let keys = tempfile::NamedTempFile::new()?;
        let mut options = settings("");
        let peers = format!(
            "[market_peers]\nrouting_fee_bps = 100\nkeys_file = \"{}\"\n",
            keys.path().display()
        );
        options.config = options.config.map(|config| config + &peers);
        let ours = Shop::open_at(options).await?;
        let schema = json!({ "input_schema": asks_for_text() });
        ours.sells_with("free@v1", None, &schema).await?;
        ours.sells_with("paid@v1", Some("0.03"), &schema).await?;
        let theirs = ReferenceHub::start(&python, &theirs(ours.provider.url()), &[]).await?;
        let peers = Self { ours, theirs, keys };
        peers.decide("peers", &json!({})).await?;
        until("this hub finds what the reference sells", || async {
            matches(&peers.ours.ask(&Request::get(ALL)).await).len() == 2 + SOLD_THERE
        })
        .await;
        peers.theirs.takes(&peers.here()).await?;
        Ok(Some(peers))
    }

    /// Where this hub is, as it says of itself.
    fn here(&self) -> String {
        address(&self.ours)
    }

    /// The operator of this hub decides about the reference.
    async fn decide(&self, door: &str, members: &Value) -> Result<()> {
        let mut body = members.clone();
        body["url"] = self.theirs.url().into();
        let method = if door == "peer/mode" { "PUT" } else { "POST" };
        let request = Request::new(method, format!("/admin/market/{door}"))
            .field("content-type", "application/json")
            .body(body.to_string());
        let answer = self.ours.hub.operate(request).await;
        ensure!(answer.status == 200, "{}", answer.text());
        Ok(())
    }

    /// Under which rules its capabilities are called.
    async fn mode(&self, mode: &str) -> Result<()> {
        self.decide("peer/mode", &json!({ "mode": mode })).await
    }
}

/// The three above, and one that it always has: `pipeline.run@v1`.
const SOLD_THERE: usize = 4;

#[tokio::test]
async fn each_finds_what_the_other_sells_and_nothing_twice() -> Result<()> {
    let Some(Peers { ours, theirs, .. }) = Peers::open().await? else {
        return Ok(());
    };
    let (here, there) = (address(&ours), theirs.url().to_owned());
    let found = |answer: Answer| {
        let mut found = matches(&answer);
        found.sort();
        found
    };
    let pair = |hub: &str, id: &str| (hub.to_owned(), id.to_owned());
    let wanted = |own: &str, other: &str| {
        let [ours, theirs] = if own == here {
            ["local", other]
        } else {
            [other, "local"]
        };
        let mut all = vec![
            pair(ours, "free@v1"),
            pair(ours, "paid@v1"),
            pair(theirs, "there.free@v1"),
            pair(theirs, "there.paid@v1"),
            pair(theirs, "paid@v1"),
            pair(theirs, "pipeline.run@v1"),
        ];
        all.sort();
        all
    };
    assert_eq!(found(ours.ask(&Request::get(ALL)).await), wanted(&here, &there));
    let request = Request::get(format!("{ALL}&min_trust=0"));
    assert_eq!(
        found(theirs.ask(&request).await),
        wanted(&there, &here),
        "{}",
        theirs.log()
    );
    // Both manifests hold what the other one sells, under its name, and verify.
    for (url, other, count) in [(&here, &there, 4_u64), (&there, &here, 2)] {
        let door = url.replace("localhost", "127.0.0.1");
        let discovery = ask(&door, &Request::get("/.well-known/ai-market.json"))
            .await
            .json();
        let answer = ask(&door, &Request::get("/ai-market/v2/manifest")).await;
        let catalog = Signed::parse(&answer.body)?;
        assert!(
            manifest::verify(&catalog, &[key_of(&discovery)?])
                .verdict
                .is_true(),
            "{url}"
        );
        assert_eq!(answer.json()["federated_capabilities"], count, "{url}");
        assert!(answer.json()["by_hub"][other.as_str()].is_object(), "{url}");
    }
    Ok(())
}

/// What a buyer of this hub gets from there: the receipt is the reference's, and verified with its key.
#[tokio::test]
async fn a_buyer_here_calls_there() -> Result<()> {
    let Some(Peers { ours, theirs, .. }) = Peers::open().await? else {
        return Ok(());
    };
    let there = theirs.url().to_owned();
    let keys = [key_of(
        &theirs
            .ask(&Request::get("/.well-known/ai-market.json"))
            .await
            .json(),
    )?];
    let answer = ours.ask(&at(&there, "there.free@v1")).await;
    let body = made(&answer);
    assert_eq!(body["result"]["echo"], json!({ "text": "Köln" }), "{body}");
    assert_eq!(
        (
            &body["receipt_verified"],
            &body["routed_via"],
            &body["route_mode"]
        ),
        (&json!(true), &json!(address(&ours)), &json!("broker")),
        "{body}"
    );
    let whole = Signed::parse(&answer.body)?;
    let receipt = whole.get("receipt").cloned().unwrap_or_else(|| "none".into());
    let expected = Expected {
        capability_id: Some("there.free@v1"),
        product_id: Some("shop"),
        price_micros: Some(0),
    };
    assert!(verify(&receipt, &keys, &expected).verdict.is_true(), "{body}");

    // What it costs there, it costs there: its own words are passed on, and nobody paid here.
    let asked_there = theirs.ask(&at("local", "there.paid@v1")).await;
    let passed_on = ours.ask(&at(&there, "there.paid@v1")).await;
    assert_eq!(
        (asked_there.status, passed_on.status),
        (402, 402),
        "{}",
        passed_on.text()
    );
    let terms = |answer: &Answer| {
        let mut terms = answer.json();
        // Drawn for each answer.
        for name in ["nonce", "payment_secret", "expires_at", "accepts"] {
            terms.as_object_mut().map(|terms| terms.remove(name));
        }
        terms
    };
    assert_eq!(terms(&asked_there), terms(&passed_on));
    assert_eq!(
        asked_there.header("payment-required").is_empty(),
        passed_on.header("payment-required").is_empty()
    );
    // A trial of the reference, for a visitor of ours.
    let visitor = at(&there, "there.paid@v1").field("X-AIMarket-Sandbox-Visitor", "visitor-one");
    let tried = made(&ours.ask(&visitor).await);
    assert_eq!(
        (&tried["charged_usd"], &tried["receipt_verified"]),
        (&json!(0.0), &json!(true)),
        "{tried}"
    );
    let books = books(&ours.hub).await?;
    assert_eq!((books.earned, books.fees, books.held), (0, 0, 0));
    Ok(())
}

/// Our client asks the reference itself for its key.
#[tokio::test]
async fn the_client_checks_what_the_reference_signed() -> Result<()> {
    let Some(Peers { ours, theirs, .. }) = Peers::open().await? else {
        return Ok(());
    };
    let input = json!({ "text": "Köln" }).as_object().cloned().unwrap_or_default();
    let call = Call::new("shop", "there.free@v1", input).source_hub(theirs.url());
    let invoked = ours.seller.invoke(&call, &Paid::Nothing).await?;
    let checked = ours.seller.check_invoked(&call, &invoked).await?;
    assert_eq!(checked.map(|check| check.verdict), Some(Verdict::True));
    Ok(())
}

#[tokio::test]
async fn what_is_not_named_or_not_known_is_refused() -> Result<()> {
    let Some(Peers { ours, theirs, .. }) = Peers::open().await? else {
        return Ok(());
    };
    let there = theirs.url().to_owned();
    let body = refused(
        &ours.ask(&at("local", "there.free@v1")).await,
        400,
        "source_hub_required",
    );
    assert_eq!(
        (&body["source_hub"], &body["source_hubs"]),
        (&json!(there), &json!([there]))
    );
    refused(
        &ours.ask(&at("http://127.0.0.1:9", "there.free@v1")).await,
        404,
        "hub_unknown",
    );
    refused(&ours.ask(&at(&there, "none@v1")).await, 404, "capability_unknown");
    // The same ids at both hubs are two offers: what is called here is paid at our price.
    let key = ours.key("1").await?;
    made(&ours.ask(&key.on(at("local", "paid@v1"))).await);
    assert_eq!(purse(&ours.hub, &key).await?, (970_000, 0));
    // Of a hub that is gone nothing is paid.
    drop(theirs);
    refused(
        &ours.ask(&at(&there, "there.free@v1")).await,
        502,
        "provider_failed",
    );
    Ok(())
}

/// What a buyer of the reference gets from here: the receipt is ours, and kept.
#[tokio::test]
async fn a_buyer_there_calls_here() -> Result<()> {
    let Some(Peers { ours, theirs, .. }) = Peers::open().await? else {
        return Ok(());
    };
    let here = address(&ours);
    let [key, _] = purses(theirs.url()).await?;
    let called = theirs.ask(&at(&here, "free@v1")).await;
    let body = called.json();
    assert_eq!(called.status, 200, "{}\n{}", called.text(), theirs.log());
    assert_eq!(body["result"]["echo"], json!({ "text": "Köln" }));
    let nonce = body["receipt"]["nonce"].as_str().unwrap_or_default();
    let kept = ours
        .ask(&Request::get(format!("/ai-market/v2/receipts/{nonce}")))
        .await;
    assert_eq!(kept.json()["receipt"], body["receipt"], "{body}");
    // A purse there is none here: our words are passed on.
    let unpaid = theirs.ask(&key.on(at(&here, "paid@v1"))).await;
    let told = unpaid.json();
    assert_eq!(
        (unpaid.status, &told["error"], &told["needed"]),
        (402, &json!("payment_required"), &json!(0.03)),
        "{}",
        unpaid.text()
    );
    assert_eq!(
        told["payment_ways"][1]["open"],
        json!(format!("{here}/ai-market/v2/channel/open"))
    );
    Ok(())
}

/// A visitor of the reference is a visitor here, always the same: it has one trial of ours, and the reference has no word for
/// what comes after.
#[tokio::test]
async fn a_visitor_there_has_one_trial_here() -> Result<()> {
    let Some(python) = reference_python() else {
        return Ok(());
    };
    let ours = Shop::open("trials_per_visitor = 1").await?;
    ours.sells("paid@v1", Some("0.03")).await?;
    let here = address(&ours);
    let theirs = ReferenceHub::start(&python, &[], &[]).await?;
    theirs.takes(&here).await?;
    // It takes a fee of its buyers, here from an account.
    let [key, _] = purses(theirs.url()).await?;
    let call = key.on(at(&here, "paid@v1"));
    let tried = theirs.ask(&call).await;
    assert_eq!(
        (tried.status, &tried.json()["receipt"]["sandbox"]),
        (200, &json!(true)),
        "{}",
        tried.text()
    );
    assert_eq!(theirs.ask(&call).await.status, 502);
    assert_eq!(ours.provider.invocations(), 1);
    Ok(())
}

/// The reference pays here with an account of its own, and sells on.
#[tokio::test]
async fn the_reference_sells_on_what_is_sold_here() -> Result<()> {
    let Some(python) = reference_python() else {
        return Ok(());
    };
    let ours = Shop::open("").await?;
    ours.sells("paid@v1", Some("0.03")).await?;
    let account = ours.key("1").await?;
    let Purse::Key(key) = &account else {
        anyhow::bail!("{account:?} is no key");
    };
    let here = address(&ours);
    let keys = format!("{here}={key}");
    let theirs = ReferenceHub::start(&python, &[], &[("AIMARKET_PEER_API_KEYS", &keys)]).await?;
    theirs.takes(&here).await?;
    let [_, channel] = purses(theirs.url()).await?;
    let called = theirs.ask(&channel.on(at(&here, "paid@v1"))).await;
    ensure!(called.status == 200, "{}\n{}", called.text(), theirs.log());
    assert_eq!(called.json()["receipt"]["price_usd"], json!(0.03));
    assert_eq!(purse(&ours.hub, &account).await?, (970_000, 0));
    assert_eq!(ours.provider.invocations(), 1);
    Ok(())
}

/// This hub sells what the reference does: by agreement with it, and with an account of its own there.
#[tokio::test]
async fn this_hub_sells_on_what_the_reference_does() -> Result<()> {
    let Some(peers) = Peers::open().await? else {
        return Ok(());
    };
    let Peers { ours, theirs, keys } = &peers;
    let there = theirs.url().to_owned();
    let buyer = ours.key("1").await?;
    let call = at(&there, "there.paid@v1");
    for (mode, costs) in [("sells_for", 20_000), ("reseller", 20_200)] {
        peers.mode(mode).await?;
        until("the mode is known", || async {
            ours.ask(&call).await.json()["needed"].is_number()
        })
        .await;
        // Whoever does not pay meets this hub, which sells it.
        let unpaid = refused(&ours.ask(&call).await, 402, "payment_required");
        assert_eq!(micros(&unpaid["needed"]), costs, "{mode}: {unpaid}");
    }
    // There is no key of this hub there, and the buyer does not pay for it.
    refused(&ours.ask(&buyer.on(call.clone())).await, 502, "upstream_unpaid");
    assert_eq!(purse(&ours.hub, &buyer).await?, (1_000_000, 0));
    let [account, _] = purses(theirs.url()).await?;
    let Purse::Key(key) = &account else {
        anyhow::bail!("{account:?} is no key");
    };
    std::fs::write(keys.path(), format!("{there} {key}\n"))?;
    let paid = || async { ours.ask(&buyer.on(call.clone())).await.status == 200 };
    until("the reference is paid", paid).await;
    assert_eq!(purse(&ours.hub, &buyer).await?, (979_800, 0));
    // The reference gives fifty cents to a new account.
    let left = theirs
        .ask(&account.on(Request::get("/ai-market/v2/account")))
        .await
        .json();
    assert_eq!(micros(&left["balance_usd"]), 480_000, "{left}");
    let books = books(&ours.hub).await?;
    assert_eq!((books.fees, books.earned, books.held), (20_200, 0, 0));
    Ok(())
}

/// Whoever announces itself is looked at, and neither found nor called until the operator says so.
#[tokio::test]
async fn a_hub_that_announces_itself_waits_for_the_operator() -> Result<()> {
    let Some(python) = reference_python() else {
        return Ok(());
    };
    let ours = Shop::open("").await?;
    let theirs = ReferenceHub::start(&python, &theirs(ours.provider.url()), &[]).await?;
    let announce = json!({ "hub_url": theirs.url(), "well_known_url": "", "capabilities_count": 3 });
    let answer = ours
        .ask(&Request::post(
            "/ai-market/v2/federation/announce",
            announce.to_string(),
        ))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        (&answer.json()["status"], &answer.json()["trusted"]),
        (&json!("pending"), &json!(false))
    );
    let body = refused(
        &ours.ask(&at(theirs.url(), "there.free@v1")).await,
        403,
        "hub_not_active",
    );
    assert_eq!(body["status"], "pending");
    assert!(matches(&ours.ask(&Request::get(ALL)).await).is_empty());
    Ok(())
}
