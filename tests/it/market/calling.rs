//! A call: what it answers, what it costs, and what becomes of it where the provider fails.

use aip_tests::market::{INVOKE, Purse, books, call, channel, micros, purse, until_sold};
use aip_tests::provider::Reply;
use aip_tests::raw::Request;
use anyhow::Result;
use serde_json::{Value, json};

use super::{Shop, made, refused};

#[tokio::test]
async fn a_paid_call_costs_its_price_and_leaves_a_receipt() -> Result<()> {
    let shop = Shop::open("fee_bps = 250").await?;
    shop.sells("echo@v1", Some("0.0101")).await?;
    let key = shop.key("1").await?;
    let answer = shop.calls("echo@v1", &key, &json!({ "x": [1, 2.5, "ü"] })).await;
    let body = made(&answer);
    assert_eq!(body["result"], json!({ "echo": { "x": [1, 2.5, "ü"] } }));
    assert_eq!(
        (micros(&body["price_usd"]), micros(&body["list_price_usd"])),
        (10_100, 10_100)
    );
    assert_eq!(micros(&body["remaining_balance"]), 989_900);
    assert_eq!(body["safety_checked"], false);

    let books = books(&shop.hub).await?;
    // 2.5 % of 10,100 is 252.5: rounded down for the hub.
    assert_eq!((books.fees, books.earned, books.held), (252, 9_848, 0));
    Ok(())
}

#[tokio::test]
async fn a_receipt_is_kept_and_served_to_everybody() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("echo@v1", Some("0.0101")).await?;
    let key = shop.key("1").await?;
    let receipt = made(&shop.calls("echo@v1", &key, &json!({})).await)["receipt"].clone();
    assert_eq!(
        (
            &receipt["product_id"],
            &receipt["capability_id"],
            &receipt["success"]
        ),
        (&json!("shop"), &json!("echo@v1"), &json!(true))
    );
    assert!(
        receipt["latency_ms"].is_u64() && receipt["price_usd"].is_f64(),
        "{receipt}"
    );
    let nonce = receipt["nonce"].as_str().unwrap_or_default();
    assert!(nonce.len() == 37 && nonce.starts_with("rcpt_"), "{nonce}");
    let kept = shop
        .ask(&Request::get(format!("/ai-market/v2/receipts/{nonce}")))
        .await;
    assert_eq!((kept.status, &kept.json()["receipt"]), (200, &receipt));
    let none = shop
        .ask(&Request::get(format!("/ai-market/v2/receipts/rcpt_{:032x}", 7)))
        .await;
    refused(&none, 404, "receipt_not_found");
    Ok(())
}

#[tokio::test]
async fn the_hub_tells_which_receipts_are_its_own() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("echo@v1", Some("0.0101")).await?;
    let key = shop.key("1").await?;
    let receipt = made(&shop.calls("echo@v1", &key, &json!({})).await)["receipt"].clone();
    let verdict = |receipt: Value| {
        let body = json!({ "receipt": receipt }).to_string();
        let request = Request::post("/ai-market/v2/receipts/verify", body);
        let shop = &shop;
        async move { shop.ask(&request).await.json() }
    };
    let genuine = verdict(receipt.clone()).await;
    for member in ["valid", "kept", "signer_matches_live_key"] {
        assert_eq!(genuine[member], true, "{member}: {genuine}");
    }
    assert_eq!(genuine["state"], "true", "{genuine}");
    let mut forged = receipt;
    forged["price_usd"] = json!(0.0001);
    let forged = verdict(forged).await;
    assert_eq!(
        (&forged["valid"], &forged["kept"], &forged["state"]),
        (&json!(false), &json!(false), &json!("false")),
        "{forged}"
    );
    Ok(())
}

/// The price of a tenth of a cent is neither nothing nor a cent, wherever it is named.
#[tokio::test]
async fn pitfall_33_what_costs_less_than_a_cent_costs_that() -> Result<()> {
    let shop = Shop::open("demo_credit = true").await?;
    shop.sells("tenth@v1", Some("0.001")).await?;
    shop.sells("least@v1", Some("0.000001")).await?;
    refused(
        &shop.calls("least@v1", &Purse::Empty, &json!({})).await,
        402,
        "payment_required",
    );
    let manifest = shop.ask(&Request::get("/ai-market/v2/manifest")).await.json();
    let prices = shop.ask(&Request::get("/ai-market/v2/prices")).await.json();
    let named = |rows: &Value, member: &str| -> Vec<i64> {
        let mut amounts: Vec<i64> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|row| micros(&row[member]))
            .collect();
        amounts.sort_unstable();
        amounts
    };
    assert_eq!(named(&manifest["tools"], "price_per_call_usd"), [1, 1_000]);
    assert_eq!(named(&manifest["tools"], "routed_price_usd"), [1, 1_000]);
    assert_eq!(named(&prices["prices"], "price_usd"), [1, 1_000]);
    let channel = channel(&shop.hub, &Purse::Empty, 0.01).await?;
    let body = made(&shop.calls("tenth@v1", &channel, &json!({})).await);
    assert_eq!(
        (micros(&body["price_usd"]), micros(&body["remaining_balance"])),
        (1_000, 9_000)
    );
    let body = made(&shop.calls("least@v1", &channel, &json!({})).await);
    assert_eq!(
        (
            micros(&body["receipt"]["price_usd"]),
            micros(&body["remaining_balance"])
        ),
        (1, 8_999)
    );
    Ok(())
}

#[tokio::test]
async fn pitfall_34_a_price_that_went_up_is_not_paid_by_who_named_a_limit() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("paid@v1", Some("0.10")).await?;
    let key = shop.key("1").await?;
    let call = |limit: f64| {
        let body = json!({ "product_id": "shop", "capability_id": "paid@v1", "max_price_usd": limit });
        key.on(Request::post(INVOKE, body.to_string()))
    };
    made(&shop.ask(&call(0.1)).await);
    shop.seller
        .publish_listing(&shop.offer("paid@v1", Some("0.11"), &json!({})))
        .await?;
    let raised = || async {
        let prices = shop.ask(&Request::get("/ai-market/v2/prices")).await.json();
        micros(&prices["prices"][0]["price_usd"]) == 110_000
    };
    crate::faults::until("the new price", raised).await;
    let body = refused(&shop.ask(&call(0.1)).await, 409, "price_limit_exceeded");
    assert_eq!(
        (
            micros(&body["maximum_price_usd"]),
            micros(&body["current_price_usd"])
        ),
        (100_000, 110_000)
    );
    assert_eq!(purse(&shop.hub, &key).await?, (900_000, 0));
    made(&shop.ask(&call(0.11)).await);
    Ok(())
}

/// What the schema declares may have any name. What it does not allow is named with its place.
#[tokio::test]
async fn pitfall_36_a_property_may_have_any_name_that_the_schema_declares() -> Result<()> {
    let shop = Shop::open("").await?;
    let names = [
        "seed",
        "token",
        "secret",
        "credit_card",
        "password",
        "from",
        "lambda",
        "__proto__",
    ];
    let properties: Value = names
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "type": "string" })))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let more = json!({ "input_schema": {
        "type": "object", "properties": properties, "required": ["seed"], "additionalProperties": false
    } });
    shop.sells_with("eval@v1", None, &more).await?;
    let input: Value = names
        .iter()
        .map(|name| ((*name).to_owned(), json!("x")))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let body = made(&shop.calls("eval@v1", &Purse::Empty, &input).await);
    assert_eq!(body["result"]["echo"], input);
    let body = refused(
        &shop
            .calls("eval@v1", &Purse::Empty, &json!({ "token": "x" }))
            .await,
        400,
        "incomplete_input",
    );
    assert_eq!(
        (&body["missing"], &body["accepts"]),
        (&json!(["seed"]), &json!([["seed"]])),
        "{body}"
    );
    let body = refused(
        &shop
            .calls("eval@v1", &Purse::Empty, &json!({ "seed": 7, "from": "x" }))
            .await,
        400,
        "invalid_input",
    );
    assert_eq!(body["problems"][0]["path"], "/seed", "{body}");
    Ok(())
}

#[tokio::test]
async fn pitfall_21_a_provider_that_fails_is_not_paid() -> Result<()> {
    let shop = Shop::open("trials_per_visitor = 1").await?;
    let quick = json!({ "url": shop.provider.url(), "timeout_secs": 1 });
    let more = json!({ "output_schema": { "type": "object", "required": ["echo"] } });
    let offer = aip_tests::market::listed("paid@v1", Some("0.5"), &quick, &more);
    aip_tests::market::sell(&shop.hub, &shop.seller, &[offer]).await?;
    let key = shop.key("1").await?;
    let failures: [(&str, Reply); 12] = [
        ("refused", Reply::Json(json!({ "ok": false, "error": "no" }))),
        (
            "refused",
            Reply::Json(json!({ "success": false, "result": { "echo": 1 } })),
        ),
        ("answer_invalid", Reply::Json(json!([1]))),
        (
            "answer_invalid",
            Reply::Raw(200, String::new(), b"<html>".to_vec()),
        ),
        (
            "answer_invalid",
            Reply::Raw(500, String::new(), b"{\"result\":{\"echo\":1}}".to_vec()),
        ),
        ("refused", Reply::Raw(402, String::new(), b"{}".to_vec())),
        (
            "answer_invalid",
            Reply::Raw(302, "location: http://127.0.0.1:1/\r\n".to_owned(), Vec::new()),
        ),
        (
            "answer_invalid",
            Reply::Raw(
                200,
                String::new(),
                format!("{{\"result\":\"{}\"}}", "x".repeat(2 << 20)).into_bytes(),
            ),
        ),
        ("output_invalid", Reply::Json(json!({ "result": { "other": 1 } }))),
        ("output_invalid", Reply::Json(json!({ "result": null }))),
        ("timed_out", Reply::Never),
        ("unreachable", Reply::Break),
    ];
    for (reason, reply) in failures {
        shop.provider.answer(move |_| reply.clone());
        let answer = shop.calls("paid@v1", &key, &json!({})).await;
        let body = refused(&answer, 502, "provider_failed");
        assert_eq!(body["reason"], reason, "{body}");
        assert!(
            !answer.text().contains("127.0.0.1"),
            "the provider's address is told: {body}"
        );
    }
    let visitor = call("shop", "paid@v1", &json!({})).field("X-AIMarket-Sandbox-Visitor", "visitor-one");
    shop.provider.answer(|_| Reply::Break);
    refused(&shop.ask(&visitor).await, 502, "provider_failed");
    assert_eq!(purse(&shop.hub, &key).await?, (1_000_000, 0));
    assert_eq!(books(&shop.hub).await?.earned, 0);
    shop.provider.answer(Reply::echo);
    made(&shop.ask(&visitor).await);
    made(&shop.calls("paid@v1", &key, &json!({})).await);
    assert_eq!(books(&shop.hub).await?.earned, 500_000);
    Ok(())
}

#[tokio::test]
async fn what_is_taken_away_is_not_called() -> Result<()> {
    let shop = Shop::open("").await?;
    let published = shop
        .seller
        .publish_listing(&shop.offer("free@v1", None, &json!({})))
        .await?;
    until_sold(&shop.hub, 1).await;
    made(&shop.calls("free@v1", &Purse::Empty, &json!({})).await);
    shop.seller.delete_listing(&published.id).await?;
    until_sold(&shop.hub, 0).await;
    refused(
        &shop.calls("free@v1", &Purse::Empty, &json!({})).await,
        404,
        "capability_unknown",
    );
    Ok(())
}
