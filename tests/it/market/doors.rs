//! What a stranger can do at the market's doors: every answer is the market's own form, nothing harms the hub, and nobody gets
//! more than his share.

use aip_tests::market::{INVOKE, Purse, call, channel, settings};
use aip_tests::raw::{Request, try_ask};
use aip_tests::{HubOptions, TestHub, Vitals};
use anyhow::Result;
use serde_json::json;

use super::{Shop, made, refused};

const JSON_DOORS: &[&str] = &[
    INVOKE,
    "/ai-market/v2/channel/open",
    "/ai-market/v2/channel/topup",
    "/ai-market/v2/channel/close",
    "/ai-market/v2/accounts",
    "/ai-market/v2/receipts/verify",
];

/// Clients read every answer as JSON: also where nobody is at home.
#[tokio::test]
async fn every_answer_is_json_in_the_markets_form() -> Result<()> {
    let shop = Shop::open("").await?;
    for (method, path, status, code) in [
        ("GET", "/ai-market/v2/nothing", 404, "not_found"),
        ("GET", "/ai-market/", 404, "not_found"),
        ("GET", "/ai-market/v1/manifest", 404, "not_found"),
        ("POST", "/ai-market/v2/account/topup", 404, "not_found"),
        (
            "GET",
            "/ai-market/v2/verification/rcpt_1",
            404,
            "verification_not_found",
        ),
        (
            "POST",
            "/ai-market/v2/verification/rcpt_1/appeal",
            404,
            "verification_not_found",
        ),
        ("GET", "/ai-market/v2/invoke", 405, "method_not_allowed"),
        ("DELETE", "/ai-market/v2/manifest", 405, "method_not_allowed"),
        ("GET", "/ai-market/v2/account", 401, "invalid_api_key"),
    ] {
        let answer = shop.ask(&Request::new(method, path)).await;
        refused(&answer, status, code);
    }
    Ok(())
}

#[tokio::test]
async fn hostile_bodies_are_refused_in_the_markets_form() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("paid@v1", Some("0.01")).await?;
    let before = Vitals::of(&shop.hub).await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let bodies: Vec<Vec<u8>> = [
        "",
        "{",
        "nul",
        "NaN",
        "{\"a\":1,\"a\":2}",
        "{} {}",
        "\u{feff}{}",
        "[1]",
        "null",
        "\"x\"",
        "{\"input\":1e999}",
        "{\"product_id\":null,\"capability_id\":null}",
        "{\"product_id\":[],\"capability_id\":{}}",
        "{\"product_id\":\"\\ud800\",\"capability_id\":\"x@v1\"}",
        "{\"deposit_usd\":{}}",
        "{\"channel_id\":7}",
        "{\"receipt\":[]}",
        "{\"receipt\":{\"signature\":\"bare\"}}",
        "{\"receipt\":{\"signature\":{\"version\":1e300}}}",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .chain([deep.into_bytes(), vec![0xff; 64], vec![b' '; 300_000]])
    .collect();
    for path in JSON_DOORS {
        for body in &bodies {
            let answer = shop.ask(&Request::post(*path, body.clone())).await;
            let shown = format!(
                "{path} {}: {}",
                String::from_utf8_lossy(&body[..body.len().min(60)]),
                answer.text()
            );
            let verdict = *path == "/ai-market/v2/receipts/verify" && answer.status == 200;
            assert!(verdict || (400..500).contains(&answer.status), "{shown}");
            assert!(
                verdict || answer.json()["error"].is_string() && answer.json()["success"] == false,
                "{shown}"
            );
            crate::hostile::assert_discreet(&answer, &shown);
        }
    }
    Vitals::assert_well(&shop.hub, &before).await;
    Ok(())
}

/// Header fields that no client sends, once and twice.
#[tokio::test]
async fn hostile_header_fields_are_refused_and_open_nothing() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("free@v1", None).await?;
    shop.sells("paid@v1", Some("0.01")).await?;
    let key = shop.key("1").await?;
    let Purse::Key(text) = &key else { panic!("no key") };
    let long = "x".repeat(5_000);
    for name in [
        "X-API-Key",
        "X-Payment-Channel",
        "X-Payment-Channel-Secret",
        "Idempotency-Key",
        "X-AIMarket-Sandbox-Visitor",
        "X-PAYMENT",
    ] {
        for value in ["", " ", "é", "a,b", "../..", "' OR 1=1 --", long.as_str()] {
            let request = call("shop", "paid@v1", &json!({})).field(name, value);
            let Some(answer) = try_ask(shop.hub.url(), &request).await else {
                continue;
            };
            assert!(
                (400..500).contains(&answer.status),
                "{name}: {value:?}: {}",
                answer.text()
            );
            crate::hostile::assert_discreet(&answer, name);
        }
    }
    let twice = call("shop", "paid@v1", &json!({}))
        .field("X-API-Key", text)
        .field("X-API-Key", "aimk_other");
    let answer = shop.ask(&twice).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(shop.provider.calls().is_empty());
    assert_eq!(aip_tests::market::purse(&shop.hub, &key).await?, (1_000_000, 0));
    Ok(())
}

#[tokio::test]
async fn an_input_has_a_limit() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("free@v1", None).await?;
    let size = |bytes: usize| json!({ "x": "y".repeat(bytes) });
    made(&shop.calls("free@v1", &Purse::Empty, &size(65_000)).await);
    refused(
        &shop.calls("free@v1", &Purse::Empty, &size(70_000)).await,
        413,
        "input_too_large",
    );
    refused(
        &shop.calls("free@v1", &Purse::Empty, &size(2 << 20)).await,
        413,
        "body_too_large",
    );
    Ok(())
}

/// Ids that nobody sells make no series, and the metrics are the operator's.
#[tokio::test]
async fn pitfall_60_unknown_ids_make_no_metrics() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("known@v1", None).await?;
    made(&shop.calls("known@v1", &Purse::Empty, &json!({})).await);
    for number in 0..30 {
        refused(
            &shop
                .calls(&format!("made-up-{number}@v1"), &Purse::Empty, &json!({}))
                .await,
            404,
            "capability_unknown",
        );
    }
    let metrics = aip_tests::raw::ask(shop.hub.operator_url(), &Request::get("/metrics"))
        .await
        .text();
    assert!(
        metrics.contains("aip_market_"),
        "there are no metrics of the market"
    );
    assert!(!metrics.contains("made-up-"), "a stranger makes series");
    let public = shop.ask(&Request::get("/metrics")).await;
    assert_eq!(public.status, 404);
    Ok(())
}

/// The budget is the network's: neither another channel nor a header of a proxy that nobody named makes a new one.
#[tokio::test]
async fn pitfall_64_a_caller_cannot_choose_a_fresh_budget() -> Result<()> {
    let hub = TestHub::start_with(HubOptions {
        production: Some("hub.example".to_owned()),
        config: Some(
            "[hub]\npublic_url = \"https://hub.example\"\nregistration = \"open\"\n[market]\ndemo_credit = true\n\
             invokes_per_minute = 1\ninvoke_burst = 10\n"
                .to_owned(),
        ),
        ..HubOptions::default()
    });
    let mut statuses = Vec::new();
    for number in 0..15 {
        let purse = channel(&hub, &Purse::Empty, 1.0).await?;
        let request = purse
            .on(call("shop", "none@v1", &json!({})))
            .field("X-Forwarded-For", format!("203.0.113.{number}"))
            .field("X-Real-IP", format!("203.0.113.{number}"))
            .field("X-AIMarket-Routing-Hub", format!("https://{number}.example"));
        let answer = aip_tests::raw::ask(hub.url(), &request).await;
        if answer.status == 429 {
            refused(&answer, 429, "rate_limited");
        }
        statuses.push(answer.status);
    }
    assert_eq!(statuses[..10], [404; 10]);
    assert_eq!(statuses[10..], [429; 5]);
    Ok(())
}

/// Whoever guesses at keys and secrets has the budget of one network for it.
#[tokio::test]
async fn one_network_cannot_guess_at_purses_without_end() -> Result<()> {
    let hub = TestHub::start_with(HubOptions {
        production: Some("hub.example".to_owned()),
        config: Some(
            "[hub]\npublic_url = \"https://hub.example\"\n[market]\npurse_requests_per_minute = 5\n"
                .to_owned(),
        ),
        ..HubOptions::default()
    });
    let mut statuses = Vec::new();
    for number in 0..8 {
        let guess = Purse::Channel(format!("ch_{number:032x}"), "chs_guessed".to_owned());
        let request = guess.on(Request::get(format!("/ai-market/v2/channel/ch_{number:032x}")));
        let answer = aip_tests::raw::ask(hub.url(), &request).await;
        if answer.status == 429 {
            refused(&answer, 429, "rate_limited");
        }
        statuses.push(answer.status);
    }
    assert_eq!(statuses, [404, 404, 404, 404, 404, 429, 429, 429]);
    Ok(())
}

#[tokio::test]
async fn a_hub_without_a_market_says_so() -> Result<()> {
    let hub = TestHub::start_with(settings("enabled = false"));
    let answer = aip_tests::raw::ask(hub.url(), &call("shop", "any@v1", &json!({}))).await;
    refused(&answer, 503, "market_disabled");
    Ok(())
}
