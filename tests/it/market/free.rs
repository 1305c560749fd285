//! What is had for nothing: trials and free tiers.

use aip_tests::market::{Purse, call, listed, micros, purse, sell};
use anyhow::Result;
use serde_json::{Value, json};

use super::{Shop, made, refused, text_and_count};

/// Nothing of a refused call is spent, whatever would have paid for it.
#[tokio::test]
async fn pitfall_31_a_refused_input_costs_neither_money_nor_a_trial() -> Result<()> {
    let shop = Shop::open("trials_per_visitor = 1").await?;
    shop.sells_with("paid@v1", Some("0.5"), &text_and_count()).await?;
    let key = shop.key("1").await?;
    let visitor =
        |input: Value| call("shop", "paid@v1", &input).field("X-AIMarket-Sandbox-Visitor", "visitor-one");
    for _ in 0..3 {
        refused(
            &shop.calls("paid@v1", &key, &json!({})).await,
            400,
            "incomplete_input",
        );
        refused(
            &shop.ask(&visitor(json!({ "text": 1 }))).await,
            400,
            "invalid_input",
        );
    }
    assert_eq!(purse(&shop.hub, &key).await?, (1_000_000, 0));
    let body = made(&shop.ask(&visitor(json!({ "text": "x" }))).await);
    assert_eq!((&body["sandbox"], &body["max_trials"]), (&json!(true), &json!(1)));
    assert_eq!(
        (micros(&body["price_usd"]), micros(&body["list_price_usd"])),
        (0, 500_000)
    );
    let body = refused(
        &shop.ask(&visitor(json!({ "text": "x" }))).await,
        429,
        "trial_quota_exhausted",
    );
    assert_eq!(
        (&body["sandbox"]["used"], micros(&body["needed"])),
        (&json!(1), 500_000)
    );
    // The header of a visitor who pays is ignored.
    made(&shop.ask(&key.on(visitor(json!({ "text": "x" })))).await);
    assert_eq!(purse(&shop.hub, &key).await?, (500_000, 0));
    Ok(())
}

/// Sells `puzzle@v1`, of which a million steps are for nothing.
async fn with_a_tier(trials: u32) -> Result<Shop> {
    let shop = Shop::open(&format!("trials_per_visitor = {trials}")).await?;
    let tier = json!({ "field": "puzzle.T", "max": 1_000_000 });
    let invoke = json!({ "url": shop.provider.url(), "free_tier": tier });
    let offer = listed("puzzle@v1", Some("0.05"), &invoke, &text_and_count());
    sell(&shop.hub, &shop.seller, &[offer]).await?;
    Ok(shop)
}

fn steps(count: &Value) -> Value {
    json!({ "text": "x", "puzzle": { "T": count } })
}

#[tokio::test]
async fn pitfall_40_the_free_tier_is_a_ceiling_of_the_input() -> Result<()> {
    let shop = with_a_tier(0).await?;
    for within in [json!(0), json!(1_000_000), json!(999_999.5)] {
        let body = made(&shop.calls("puzzle@v1", &Purse::Empty, &steps(&within)).await);
        assert_eq!(body["result"]["echo"]["puzzle"]["T"], within, "it was clamped");
        assert_eq!(
            (micros(&body["price_usd"]), micros(&body["list_price_usd"])),
            (0, 50_000)
        );
    }
    let beyond = shop
        .calls("puzzle@v1", &Purse::Empty, &steps(&json!(1_000_001)))
        .await;
    let body = refused(&beyond, 402, "payment_required");
    assert_eq!(
        body["free_tier"],
        json!({ "field": "puzzle.T", "requested": 1_000_001, "max": 1_000_000 })
    );
    let without = shop
        .calls("puzzle@v1", &Purse::Empty, &json!({ "text": "x" }))
        .await;
    let body = refused(&without, 402, "payment_required");
    assert_eq!(
        body["free_tier"],
        json!({ "field": "puzzle.T", "max": 1_000_000 })
    );
    let text = shop.calls("puzzle@v1", &Purse::Empty, &steps(&json!("1"))).await;
    refused(&text, 402, "payment_required");
    // Who pays has no ceiling.
    let key = shop.key("1").await?;
    let body = made(&shop.calls("puzzle@v1", &key, &steps(&json!(2_000_000))).await);
    assert_eq!(micros(&body["price_usd"]), 50_000);
    Ok(())
}

/// Within the tier no trial is taken; above it, one is.
#[tokio::test]
async fn pitfall_40_the_free_tier_comes_before_a_trial() -> Result<()> {
    let shop = with_a_tier(1).await?;
    let visitor =
        |input: Value| call("shop", "puzzle@v1", &input).field("X-AIMarket-Sandbox-Visitor", "visitor-one");
    let within = made(&shop.ask(&visitor(steps(&json!(1)))).await);
    assert!(within.get("sandbox").is_none(), "{within}");
    assert_eq!(
        made(&shop.ask(&visitor(steps(&json!(2_000_000)))).await)["sandbox"],
        true
    );
    let spent = shop.ask(&visitor(steps(&json!(2_000_000)))).await;
    let body = refused(&spent, 429, "trial_quota_exhausted");
    assert_eq!(
        body["free_tier"],
        json!({ "field": "puzzle.T", "requested": 2_000_000, "max": 1_000_000 })
    );
    made(&shop.ask(&visitor(steps(&json!(1)))).await);
    Ok(())
}
