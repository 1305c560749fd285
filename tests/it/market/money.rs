//! What may be spent, and what is no money at all.

use aip_tests::market::{Purse, books, channel, micros};
use aip_tests::raw::Request;
use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::channels::{close, parts};
use super::{Shop, made, refused};

/// Makes a key of an account; its purse, and its id.
async fn make_key(shop: &Shop, by: &Purse, budget: Value) -> Result<(Purse, String)> {
    let body = json!({ "label": "a key", "budget_usd": budget }).to_string();
    let made = shop
        .ask(&by.on(Request::post("/ai-market/v2/account/keys", body)))
        .await;
    anyhow::ensure!(made.status == 200, "{}", made.text());
    let made = made.json();
    let key = made["api_key"].as_str().context("no key")?;
    let id = made["key"]["key_id"].as_str().context("no id")?;
    Ok((Purse::Key(key.to_owned()), id.to_owned()))
}

async fn refused_open(shop: &Shop, by: &Purse, dollars: f64, status: u16, code: &str) -> Value {
    let body = json!({ "deposit_usd": dollars }).to_string();
    let answer = shop
        .ask(&by.on(Request::post("/ai-market/v2/channel/open", body)))
        .await;
    refused(&answer, status, code)
}

#[tokio::test]
async fn pitfall_26_what_is_no_amount_is_refused_before_anything_is_written() -> Result<()> {
    let shop = Shop::open("demo_credit = true").await?;
    let before = books(&shop.hub).await?;
    let bodies = [
        ("NaN", "json_invalid"),
        ("Infinity", "json_invalid"),
        ("-Infinity", "json_invalid"),
        ("\"inf\"", "deposit_invalid"),
        ("\"1\"", "deposit_invalid"),
        ("null", "deposit_invalid"),
        ("-1", "deposit_invalid"),
        ("0", "deposit_invalid"),
        ("0.0", "deposit_invalid"),
        ("-0.0", "deposit_invalid"),
        ("0.0000001", "deposit_invalid"),
        ("10000.000001", "deposit_invalid"),
        ("1e300", "deposit_invalid"),
        ("true", "deposit_invalid"),
        ("[1]", "deposit_invalid"),
    ];
    for (amount, code) in bodies {
        let body = format!("{{\"deposit_usd\": {amount}}}");
        let answer = shop.ask(&Request::post("/ai-market/v2/channel/open", body)).await;
        refused(&answer, 400, code);
    }
    refused(
        &shop.ask(&Request::post("/ai-market/v2/channel/open", "{}")).await,
        400,
        "deposit_invalid",
    );
    assert_eq!(books(&shop.hub).await?, before);
    Ok(())
}

/// The money of chains is nobody's here: what a caller says about a transfer gives nobody anything.
#[tokio::test]
async fn pitfall_25_a_transfer_that_somebody_quotes_is_no_money() -> Result<()> {
    let shop = Shop::open("demo_credit = false").await?;
    let body = json!({
        "deposit_usd": 3.0, "tx_hash": format!("0x{:064x}", 7), "wallet": "0x0000000000000000000000000000000000000001",
        "chain": "base", "payer_signature": "0x00"
    });
    let answer = shop
        .ask(&Request::post("/ai-market/v2/channel/open", body.to_string()))
        .await;
    let body = refused(&answer, 400, "payment_required");
    assert!(body["payment_ways"].is_array(), "{body}");
    let books = books(&shop.hub).await?;
    assert_eq!((books.credited, books.demo, books.channels), (0, 0, 0));
    Ok(())
}

#[tokio::test]
async fn pitfall_20_a_budget_of_nothing_spends_nothing_and_none_is_no_ceiling() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("paid@v1", Some("0.01")).await?;
    shop.sells("free@v1", None).await?;
    let all = shop.key("1").await?;
    let (nothing, _) = make_key(&shop, &all, json!(0)).await?;
    let (some, _) = make_key(&shop, &all, json!(0.025)).await?;
    let (endless, _) = make_key(&shop, &all, Value::Null).await?;

    let body = refused(
        &shop.calls("paid@v1", &nothing, &json!({})).await,
        402,
        "payment_failed",
    );
    assert_eq!(micros(&body["budget_left"]), 0, "{body}");
    made(&shop.calls("free@v1", &nothing, &json!({})).await);
    made(&shop.calls("paid@v1", &some, &json!({})).await);
    made(&shop.calls("paid@v1", &some, &json!({})).await);
    let body = refused(
        &shop.calls("paid@v1", &some, &json!({})).await,
        402,
        "payment_failed",
    );
    assert_eq!(
        (micros(&body["budget_left"]), micros(&body["needed"])),
        (5_000, 10_000),
        "{body}"
    );
    made(&shop.calls("paid@v1", &endless, &json!({})).await);
    books(&shop.hub).await?;
    Ok(())
}

/// What goes into a channel counts, and what comes back counts no more.
#[tokio::test]
async fn a_budget_holds_for_channels() -> Result<()> {
    let shop = Shop::open("").await?;
    let all = shop.key("1").await?;
    let (nothing, _) = make_key(&shop, &all, json!(0)).await?;
    let (some, _) = make_key(&shop, &all, json!(0.005)).await?;
    refused_open(&shop, &nothing, 0.001, 402, "payment_failed").await;
    refused_open(&shop, &some, 0.005_001, 402, "payment_failed").await;
    let opened = channel(&shop.hub, &some, 0.005).await?;
    refused_open(&shop, &some, 0.000_001, 402, "payment_failed").await;
    let (id, secret) = parts(&opened);
    assert_eq!(close(&shop, id, Some(secret)).await.status, 200);
    channel(&shop.hub, &some, 0.005).await?;
    books(&shop.hub).await?;
    Ok(())
}

/// Else its budget would be none.
#[tokio::test]
async fn a_key_with_a_budget_makes_no_keys() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("free@v1", None).await?;
    let all = shop.key("1").await?;
    let (some, id) = make_key(&shop, &all, json!(0.025)).await?;
    let path = format!("/ai-market/v2/account/keys/{id}");
    for (method, path) in [
        ("POST", "/ai-market/v2/account/keys"),
        ("POST", "/ai-market/v2/account/rotate-key"),
        ("DELETE", path.as_str()),
    ] {
        let request = Request::new(method, path)
            .field("content-type", "application/json")
            .body("{}");
        refused(&shop.ask(&some.on(request)).await, 403, "key_limited");
    }
    let ended = shop.ask(&all.on(Request::new("DELETE", &path))).await;
    assert_eq!(ended.status, 200, "{}", ended.text());
    refused(
        &shop.calls("free@v1", &some, &json!({})).await,
        401,
        "invalid_api_key",
    );
    refused(
        &shop.ask(&all.on(Request::new("DELETE", &path))).await,
        404,
        "key_not_found",
    );
    Ok(())
}
