//! In which order a call is refused, and that a wrong purse is told.

use aip_tests::market::{INVOKE, Purse, call, channel, listed, micros, purse, sell};
use aip_tests::raw::Request;
use anyhow::Result;
use serde_json::{Value, json};

use super::{Shop, made, refused, text_and_count};

/// Status, code, and the request that is to be answered so.
type Case = (u16, &'static str, Request);

/// A call of `paid@v1` without an input, with these members beside or instead.
fn body(members: &Value) -> Request {
    let mut body = json!({ "product_id": "shop", "capability_id": "paid@v1", "input": {} });
    for (name, value) in members.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    Request::post(INVOKE, body.to_string())
}

fn wrong_key(request: Request) -> Request {
    request.field("X-API-Key", "aimk_nobody")
}

const ELSEWHERE: &str = "https://other.example";

/// Steps 2 and 3.
fn of_form() -> Vec<Case> {
    let text = |text: &str| wrong_key(Request::post(INVOKE, text));
    vec![
        (400, "json_invalid", text("{\"input\": NaN}")),
        (422, "request_invalid", text("{\"product_id\": \"shop\"}")),
        (422, "request_invalid", wrong_key(body(&json!({ "input": [1] })))),
        (
            422,
            "request_invalid",
            wrong_key(body(&json!({ "max_price_usd": -1 }))),
        ),
        (
            400,
            "id_invalid",
            wrong_key(body(&json!({ "capability_id": "../secret" }))),
        ),
        (
            400,
            "idempotency_key_invalid",
            wrong_key(body(&json!({})))
                .field("Idempotency-Key", "short")
                .field("X-PAYMENT", "x"),
        ),
    ]
}

/// Steps 4 to 7.
fn of_payment(channel: &str) -> Vec<Case> {
    let here = || body(&json!({}));
    let elsewhere = || body(&json!({ "source_hub": ELSEWHERE }));
    vec![
        (
            400,
            "payment_rails_conflict",
            wrong_key(here()).field("X-Payment-Channel", channel),
        ),
        (
            400,
            "payment_rails_conflict",
            wrong_key(here()).field("X-PAYMENT", "0xab"),
        ),
        (402, "payment_invalid", here().field("X-PAYMENT", "0xab")),
        // What another hub does with it is for that hub to say.
        (404, "hub_unknown", elsewhere().field("X-PAYMENT", "0xab")),
        (
            402,
            "payment_invalid",
            body(&json!({ "payment_authorization": { "amount": 1 } })),
        ),
        (
            400,
            "verify_unsupported",
            wrong_key(body(&json!({ "verify": { "requested": true } }))),
        ),
        (
            400,
            "subcontract_unsupported",
            wrong_key(body(&json!({ "subcontract": { "allowance_usd": 1 } }))),
        ),
        (
            400,
            "mandate_unsupported",
            here().field("X-AIMarket-Mandate", "sha256-x"),
        ),
        (
            400,
            "sandbox_conflict",
            elsewhere()
                .field("X-Payment-Channel", channel)
                .field("X-AIMarket-Sandbox-Visitor", "visitor-1"),
        ),
        (401, "invalid_api_key", wrong_key(elsewhere())),
        (
            402,
            "payment_failed",
            elsewhere().field("X-Payment-Channel", channel),
        ),
    ]
}

/// Steps 8 to 12.
fn of_sale(rich: &Purse, poor: &Purse) -> Vec<Case> {
    let rich = |members: Value| rich.on(body(&members));
    let poor = |members: Value| poor.on(body(&members));
    vec![
        (
            404,
            "hub_unknown",
            rich(json!({ "source_hub": ELSEWHERE, "capability_id": "none" })),
        ),
        (
            404,
            "capability_unknown",
            rich(json!({ "capability_id": "none@v1", "max_price_usd": 0 })),
        ),
        (
            404,
            "capability_not_invocable",
            rich(json!({ "capability_id": "listed@v1", "max_price_usd": 0 })),
        ),
        (
            409,
            "price_limit_exceeded",
            body(&json!({ "max_price_usd": 0.499_999 })),
        ),
        (402, "payment_required", body(&json!({}))),
        (400, "incomplete_input", poor(json!({}))),
        (
            400,
            "invalid_input",
            poor(json!({ "input": { "text": "x", "count": 11 } })),
        ),
        (402, "payment_failed", poor(json!({ "input": { "text": "x" } }))),
    ]
}

/// The table of the document, from its first row to its last. What is refused earlier is refused for that reason: every request
/// has faults of rows below its own, as far as they can be had together.
#[tokio::test]
async fn the_order_of_checks_is_the_documented_one() -> Result<()> {
    let shop = Shop::open("").await?;
    let sold = [shop.offer("paid@v1", Some("0.5"), &text_and_count())];
    sell(&shop.hub, &shop.seller, &sold).await?;
    let only_listed = listed("listed@v1", Some("1"), &json!(null), &json!({}));
    shop.seller.publish_listing(&only_listed).await?;
    let rich = shop.key("2").await?;
    let poor = channel(&shop.hub, &rich, 0.1).await?;
    let Purse::Channel(id, _) = &poor else {
        panic!("no channel");
    };
    for (status, code, request) in [of_form(), of_payment(id), of_sale(&rich, &poor)].concat() {
        let answer = shop.ask(&request).await;
        let shown = String::from_utf8_lossy(&request.to_bytes()).into_owned();
        assert_eq!(answer.json()["error"], code, "{shown}\n{}", answer.text());
        refused(&answer, status, code);
    }
    assert!(
        shop.provider.calls().is_empty(),
        "a provider was called for what is refused"
    );
    assert_eq!(purse(&shop.hub, &rich).await?, (1_900_000, 0));
    assert_eq!(purse(&shop.hub, &poor).await?, (100_000, 0));
    Ok(())
}

#[tokio::test]
async fn pitfall_43_an_unpaid_call_is_asked_for_money_before_its_input_is_looked_at() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells_with("paid@v1", Some("0.001"), &text_and_count())
        .await?;
    let answer = shop.calls("paid@v1", &Purse::Empty, &json!({})).await;
    let body = refused(&answer, 402, "payment_required");
    assert_eq!(
        (micros(&body["needed"]), micros(&body["price_usd"])),
        (1_000, 1_000)
    );
    let rails: Vec<&str> = body["payment_ways"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|way| way["rail"].as_str())
        .collect();
    assert_eq!(rails, ["credits", "channel"]);
    assert!(body.get("free_tier").is_none(), "{body}");
    Ok(())
}

/// A wrong key or secret is told, also where nothing would have been charged; and never which of the two is wrong.
#[tokio::test]
async fn pitfalls_22_and_38_who_shows_a_wrong_key_or_secret_is_told_so() -> Result<()> {
    let shop = Shop::open("demo_credit = true").await?;
    shop.sells("free@v1", None).await?;
    shop.sells("paid@v1", Some("0.01")).await?;
    let open = channel(&shop.hub, &Purse::Empty, 1.0).await?;
    let Purse::Channel(id, secret) = open.clone() else {
        panic!("no channel")
    };
    for capability in ["free@v1", "paid@v1"] {
        for key in [
            "aimk_x",
            "",
            "aimk_0000000000000000000000000000000000000000000",
            secret.as_str(),
        ] {
            refused(
                &shop
                    .calls(capability, &Purse::Key(key.to_owned()), &json!({}))
                    .await,
                401,
                "invalid_api_key",
            );
        }
        let wrong = [
            Purse::Channel(id.clone(), "wrong".to_owned()),
            Purse::Channel("ch_00000000000000000000000000000000".to_owned(), secret.clone()),
            Purse::Channel(secret.clone(), id.clone()),
        ];
        let mut told = Vec::new();
        for purse in wrong {
            let body = refused(
                &shop.calls(capability, &purse, &json!({})).await,
                402,
                "payment_failed",
            );
            assert!(
                body.get("balance").is_none(),
                "a stranger is told the balance: {body}"
            );
            told.push(body);
        }
        assert!(told.windows(2).all(|two| two[0] == two[1]), "{told:?}");
        let alone = call("shop", capability, &json!({})).field("X-Payment-Channel", &id);
        refused(&shop.ask(&alone).await, 402, "payment_failed");
    }
    let body = made(&shop.calls("free@v1", &open, &json!({})).await);
    assert_eq!(
        (micros(&body["price_usd"]), purse(&shop.hub, &open).await?),
        (0, (1_000_000, 0))
    );
    assert_eq!(shop.provider.calls().len(), 1);
    Ok(())
}

#[tokio::test]
async fn pitfall_23_one_rail_pays() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("paid@v1", Some("0.01")).await?;
    let key = shop.key("1").await?;
    let open = channel(&shop.hub, &key, 0.5).await?;
    for other in ["X-PAYMENT", "X-Payment", "PAYMENT-SIGNATURE", "X-AIMarket-Job"] {
        let both = key.on(call("shop", "paid@v1", &json!({}))).field(other, "x");
        refused(&shop.ask(&both).await, 400, "payment_rails_conflict");
    }
    let both = open.on(key.on(call("shop", "paid@v1", &json!({}))));
    refused(&shop.ask(&both).await, 400, "payment_rails_conflict");
    assert_eq!(
        (purse(&shop.hub, &key).await?, purse(&shop.hub, &open).await?),
        ((500_000, 0), (500_000, 0))
    );
    Ok(())
}
