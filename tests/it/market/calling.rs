//! A call: what it answers, in which order it is refused, and what it costs.

use aip_tests::market::{INVOKE, Purse, books, call, channel, micros, purse, until_sold};
use aip_tests::provider::Reply;
use aip_tests::raw::Request;
use anyhow::Result;
use serde_json::{Value, json};

use super::{Shop, made, refused};

fn schema() -> Value {
    json!({
        "input_schema": {
            "type": "object",
            "properties": {
                "text": { "type": "string", "minLength": 1 },
                "count": { "type": "integer", "minimum": 0, "maximum": 10 },
                "nested": { "type": "object", "properties": { "T": { "type": "number" } } }
            },
            "required": ["text"]
        }
    })
}

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

    let receipt = &body["receipt"];
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
    let nonce = receipt["nonce"].as_str().unwrap();
    assert!(nonce.len() == 37 && nonce.starts_with("rcpt_"), "{nonce}");
    let kept = shop
        .ask(&Request::get(format!("/ai-market/v2/receipts/{nonce}")))
        .await;
    assert_eq!((kept.status, &kept.json()["receipt"]), (200, receipt));
    let none = shop
        .ask(&Request::get(format!("/ai-market/v2/receipts/rcpt_{:032x}", 7)))
        .await;
    refused(&none, 404, "receipt_not_found");

    let verdict = shop
        .ask(&Request::post(
            "/ai-market/v2/receipts/verify",
            json!({ "receipt": receipt }).to_string(),
        ))
        .await
        .json();
    assert_eq!(
        (
            &verdict["valid"],
            &verdict["state"],
            &verdict["kept"],
            &verdict["signer_matches_live_key"]
        ),
        (&json!(true), &json!("true"), &json!(true), &json!(true)),
        "{verdict}"
    );
    let mut forged = receipt.clone();
    forged["price_usd"] = json!(0.0001);
    let verdict = shop
        .ask(&Request::post(
            "/ai-market/v2/receipts/verify",
            json!({ "receipt": forged }).to_string(),
        ))
        .await
        .json();
    assert_eq!(
        (&verdict["valid"], &verdict["kept"]),
        (&json!(false), &json!(false)),
        "{verdict}"
    );

    let books = books(&shop.hub).await?;
    // 2.5 % of 10,100 is 252.5: rounded down for the hub.
    assert_eq!((books.fees, books.earned, books.held), (252, 9_848, 0));
    Ok(())
}

/// The table of the document, from its first row to its last. What is refused earlier is refused for that reason: every request
/// has all the faults of the rows below its own, as far as they can be had together.
#[tokio::test]
async fn the_order_of_checks_is_the_documented_one() -> Result<()> {
    let shop = Shop::open("").await?;
    let sold = [
        shop.offer("paid@v1", Some("0.5"), &schema()),
        shop.offer("free@v1", None, &schema()),
    ];
    aip_tests::market::sell(&shop.hub, &shop.seller, &sold).await?;
    let listed = aip_tests::market::listed("listed@v1", Some("1"), &json!(null), &json!({}));
    shop.seller.publish_listing(&listed).await?;
    let rich = shop.key("2").await?;
    let Purse::Channel(id, secret) = channel(&shop.hub, &rich, 0.1).await? else {
        panic!("no channel");
    };
    let poor = Purse::Channel(id.clone(), secret);
    let body = |member: Value| {
        let mut body = json!({ "product_id": "shop", "capability_id": "paid@v1", "input": {} });
        for (name, value) in member.as_object().unwrap() {
            body[name] = value.clone();
        }
        Request::post(INVOKE, body.to_string())
    };
    let wrong_key = |request: Request| request.field("X-API-Key", "aimk_nobody");
    let cases: Vec<(u16, &str, Request)> = vec![
        (
            400,
            "json_invalid",
            wrong_key(Request::post(INVOKE, "{\"input\": NaN}")),
        ),
        (422, "request_invalid", wrong_key(body(json!({ "input": [1] })))),
        (
            422,
            "request_invalid",
            wrong_key(body(json!({ "max_price_usd": -1 }))),
        ),
        (
            422,
            "request_invalid",
            wrong_key(Request::post(INVOKE, "{\"product_id\": \"shop\"}")),
        ),
        (
            400,
            "id_invalid",
            wrong_key(body(json!({ "capability_id": "../secret" }))),
        ),
        (
            400,
            "idempotency_key_invalid",
            wrong_key(body(json!({}))).field("Idempotency-Key", "short"),
        ),
        (
            400,
            "payment_rails_conflict",
            wrong_key(body(json!({}))).field("X-Payment-Channel", &id),
        ),
        (
            400,
            "payment_rails_conflict",
            wrong_key(body(json!({}))).field("X-PAYMENT", "0xab"),
        ),
        (
            402,
            "payment_invalid",
            body(json!({ "source_hub": "https://other.example" })).field("X-PAYMENT", "0xab"),
        ),
        (
            402,
            "payment_invalid",
            body(json!({ "payment_authorization": { "amount": 1 } })),
        ),
        (
            400,
            "verify_unsupported",
            wrong_key(body(json!({ "verify": { "requested": true } }))),
        ),
        (
            400,
            "subcontract_unsupported",
            wrong_key(body(json!({ "subcontract": { "allowance_usd": 1 } }))),
        ),
        (
            400,
            "mandate_unsupported",
            body(json!({})).field("X-AIMarket-Mandate", "sha256-x"),
        ),
        (
            400,
            "sandbox_conflict",
            body(json!({ "source_hub": "https://other.example" }))
                .field("X-Payment-Channel", &id)
                .field("X-AIMarket-Sandbox-Visitor", "visitor-1"),
        ),
        (
            401,
            "invalid_api_key",
            wrong_key(body(json!({ "source_hub": "https://other.example" }))),
        ),
        (
            402,
            "payment_failed",
            body(json!({ "source_hub": "x.example" })).field("X-Payment-Channel", &id),
        ),
        (
            404,
            "hub_unknown",
            rich.on(body(
                json!({ "source_hub": "https://other.example", "capability_id": "none" }),
            )),
        ),
        (
            404,
            "capability_unknown",
            rich.on(body(json!({ "capability_id": "none@v1", "max_price_usd": 0 }))),
        ),
        (
            404,
            "capability_not_invocable",
            rich.on(body(json!({ "capability_id": "listed@v1", "max_price_usd": 0 }))),
        ),
        (
            409,
            "price_limit_exceeded",
            body(json!({ "max_price_usd": 0.499_999 })),
        ),
        (402, "payment_required", body(json!({}))),
        (400, "incomplete_input", poor.on(body(json!({})))),
        (
            400,
            "invalid_input",
            poor.on(body(json!({ "input": { "text": "x", "count": 11 } }))),
        ),
        (
            402,
            "payment_failed",
            poor.on(body(json!({ "input": { "text": "x" } }))),
        ),
    ];
    for (status, code, request) in cases {
        let answer = shop.ask(&request).await;
        let shown = String::from_utf8_lossy(&request.to_bytes()).into_owned();
        assert_eq!(
            (answer.status, answer.json()["error"].as_str()),
            (status, Some(code)),
            "{shown}\n{}",
            answer.text()
        );
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
    shop.sells_with("paid@v1", Some("0.001"), &schema()).await?;
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

/// Nothing of a refused call is spent, whatever would have paid for it.
#[tokio::test]
async fn pitfall_31_a_refused_input_costs_neither_money_nor_a_trial() -> Result<()> {
    let shop = Shop::open("trials_per_visitor = 1").await?;
    shop.sells_with("paid@v1", Some("0.5"), &schema()).await?;
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
        ("answer_invalid", Reply::Raw(402, String::new(), b"{}".to_vec())),
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

#[tokio::test]
async fn pitfall_40_the_free_tier_is_a_ceiling_of_the_input() -> Result<()> {
    let shop = Shop::open("trials_per_visitor = 1").await?;
    let invoke =
        json!({ "url": shop.provider.url(), "free_tier": { "field": "puzzle.T", "max": 1_000_000 } });
    let offer = aip_tests::market::listed("puzzle@v1", Some("0.05"), &invoke, &schema());
    aip_tests::market::sell(&shop.hub, &shop.seller, &[offer]).await?;
    let asks = |t: Value| json!({ "text": "x", "puzzle": { "T": t } });
    for within in [json!(0), json!(1_000_000), json!(999_999.5)] {
        let body = made(
            &shop
                .calls("puzzle@v1", &Purse::Empty, &asks(within.clone()))
                .await,
        );
        assert_eq!(body["result"]["echo"]["puzzle"]["T"], within, "it was clamped");
        assert_eq!(
            (micros(&body["price_usd"]), micros(&body["list_price_usd"])),
            (0, 50_000)
        );
    }
    let body = refused(
        &shop
            .calls("puzzle@v1", &Purse::Empty, &asks(json!(1_000_001)))
            .await,
        402,
        "payment_required",
    );
    assert_eq!(
        body["free_tier"],
        json!({ "field": "puzzle.T", "requested": 1_000_001, "max": 1_000_000 })
    );
    let body = refused(
        &shop
            .calls("puzzle@v1", &Purse::Empty, &json!({ "text": "x" }))
            .await,
        402,
        "payment_required",
    );
    assert_eq!(
        body["free_tier"],
        json!({ "field": "puzzle.T", "max": 1_000_000 })
    );
    refused(
        &shop.calls("puzzle@v1", &Purse::Empty, &asks(json!("1"))).await,
        402,
        "payment_required",
    );
    // Within the tier no trial is taken; above it, one is.
    let visitor =
        |input: Value| call("shop", "puzzle@v1", &input).field("X-AIMarket-Sandbox-Visitor", "visitor-one");
    assert!(
        made(&shop.ask(&visitor(asks(json!(1)))).await)
            .get("sandbox")
            .is_none()
    );
    assert_eq!(
        made(&shop.ask(&visitor(asks(json!(2_000_000)))).await)["sandbox"],
        true
    );
    refused(
        &shop.ask(&visitor(asks(json!(2_000_000)))).await,
        429,
        "trial_quota_exhausted",
    );
    // Who pays has no ceiling.
    let key = shop.key("1").await?;
    let body = made(&shop.calls("puzzle@v1", &key, &asks(json!(2_000_000))).await);
    assert_eq!(micros(&body["price_usd"]), 50_000);
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
