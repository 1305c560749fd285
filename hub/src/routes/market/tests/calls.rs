//! Calls through the door: what is charged, what is answered again, and what is refused at the door itself.

use serde_json::json;

use super::{Shop, refused};

#[actix_web::test]
async fn a_paid_call_leaves_a_receipt_that_is_kept_and_checked() {
    let shop = Shop::open(|settings| settings.market.fee_bps = 1_000).await;
    shop.sells("echo@v1", Some("0.05")).await;
    let (_, key) = shop.account("1").await;
    let answer = shop
        .calls("echo@v1", &[("x-api-key", &key)], &json!({ "x": 1.5 }))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let body = answer.json();
    assert_eq!(
        (&body["result"], &body["price_usd"], &body["remaining_balance"]),
        (&json!({ "echo": { "x": 1.5 } }), &json!(0.05), &json!(0.95))
    );
    let receipt = &body["receipt"];
    let nonce = receipt["nonce"].as_str().unwrap();
    let kept = shop.hub.get(&format!("/ai-market/v2/receipts/{nonce}")).await;
    assert_eq!((kept.status.as_u16(), &kept.json()["receipt"]), (200, receipt));
    let none = shop.hub.get("/ai-market/v2/receipts/rcpt_0").await;
    refused(&none, 404, "receipt_not_found");

    let verify = "/ai-market/v2/receipts/verify";
    let check = shop
        .posts(verify, &[], &json!({ "receipt": receipt }))
        .await
        .json();
    assert_eq!(
        (
            &check["valid"],
            &check["kept"],
            &check["signer_matches_live_key"],
            &check["state"]
        ),
        (&json!(true), &json!(true), &json!(true), &json!("true")),
        "{check}"
    );
    let mut forged = receipt.clone();
    forged["capability_id"] = json!("other@v1");
    let check = shop
        .posts(verify, &[], &json!({ "receipt": forged }))
        .await
        .json();
    assert_eq!((&check["valid"], &check["kept"]), (&json!(false), &json!(false)));
    refused(
        &shop.posts(verify, &[], &json!({ "receipt": 1 })).await,
        422,
        "request_invalid",
    );

    let token = shop.hub.token(&shop.seller).await;
    let earned = shop
        .reads(
            "/api/v1/market/earnings",
            &[("authorization", &format!("Bearer {token}"))],
        )
        .await
        .json();
    assert_eq!(
        (&earned["earned"], &earned["owed"], &earned["calls"]),
        (&json!("0.045"), &json!("0.045"), &json!(1))
    );
    shop.balanced().await;
}

#[actix_web::test]
async fn the_same_call_again_is_answered_again_and_paid_once() {
    let shop = Shop::open(|_| ()).await;
    shop.sells("echo@v1", Some("0.05")).await;
    let (_, key) = shop.account("1").await;
    let headers = [("x-api-key", key.as_str()), ("idempotency-key", "order-0001")];
    let first = shop.calls("echo@v1", &headers, &json!({})).await;
    let again = shop.calls("echo@v1", &headers, &json!({})).await;
    assert_eq!(
        (
            first.header("idempotency-replayed"),
            again.header("idempotency-replayed")
        ),
        ("", "true")
    );
    assert_eq!((again.status, &again.body), (first.status, &first.body));
    refused(
        &shop.calls("echo@v1", &headers, &json!({ "other": 1 })).await,
        409,
        "idempotency_conflict",
    );
    assert_eq!((shop.provider.calls().len(), shop.balance(&key).await), (1, 0.95));
}

#[actix_web::test]
async fn pitfall_21_a_provider_that_fails_is_not_paid() {
    let shop = Shop::open(|_| ()).await;
    shop.sells("echo@v1", Some("0.05")).await;
    let (_, key) = shop.account("1").await;
    for (status, says) in [
        (200, json!({ "ok": false, "error": "no" })),
        (500, json!({})),
        (200, json!([1])),
    ] {
        shop.provider.says(status, says);
        refused(
            &shop.calls("echo@v1", &[("x-api-key", &key)], &json!({})).await,
            502,
            "provider_failed",
        );
    }
    assert_eq!(shop.balance(&key).await.to_bits(), 1.0_f64.to_bits());
    shop.balanced().await;
}

#[actix_web::test]
async fn what_is_wrong_at_the_door_is_refused_in_the_markets_form() {
    let shop = Shop::open(|_| ()).await;
    shop.sells("echo@v1", Some("0.05")).await;
    let body = refused(
        &shop.calls("echo@v1", &[], &json!({})).await,
        402,
        "payment_required",
    );
    assert_eq!(
        (&body["needed"], body["payment_ways"].as_array().map(Vec::len)),
        (&json!(0.05), Some(2))
    );
    let twice = [("x-api-key", "aimk_a"), ("x-api-key", "aimk_b")];
    refused(
        &shop.calls("echo@v1", &twice, &json!({})).await,
        400,
        "header_invalid",
    );
    refused(
        &shop.calls("none@v1", &[], &json!({})).await,
        404,
        "capability_unknown",
    );
    refused(
        &shop.hub.post("/ai-market/v2/invoke", "{").await,
        400,
        "json_invalid",
    );
    refused(
        &shop.hub.post("/ai-market/v2/invoke", vec![b' '; 300_000]).await,
        413,
        "body_too_large",
    );
    refused(
        &shop.hub.get("/ai-market/v2/invoke").await,
        405,
        "method_not_allowed",
    );
    refused(&shop.hub.get("/ai-market/v2/nothing").await, 404, "not_found");
    refused(&shop.hub.get("/ai-market/").await, 404, "not_found");
    refused(
        &shop.hub.get("/ai-market/v2/verification/rcpt_1").await,
        404,
        "verification_not_found",
    );
    let appeal = "/ai-market/v2/verification/rcpt_1/appeal";
    refused(
        &shop.posts(appeal, &[], &json!({})).await,
        404,
        "verification_not_found",
    );
    assert!(shop.provider.calls().is_empty());
}

/// Neither a channel nor what a caller says about its address makes a fresh budget.
#[actix_web::test]
async fn pitfall_64_calls_have_a_budget_of_their_network() {
    let shop = Shop::open(|settings| {
        settings.hub.development = false;
        settings.market.invokes_per_minute = 1;
        settings.market.invoke_burst = 2;
    })
    .await;
    for (number, code) in ["capability_unknown", "capability_unknown", "rate_limited"]
        .into_iter()
        .enumerate()
    {
        let from = format!("203.0.113.{number}");
        let answer = shop
            .calls("none@v1", &[("x-forwarded-for", &from)], &json!({}))
            .await;
        assert_eq!(answer.json()["error"], code);
        assert_eq!(answer.header("retry-after").is_empty(), code != "rate_limited");
    }
}

#[actix_web::test]
async fn pitfall_60_unknown_capabilities_share_one_line_of_the_metrics() {
    let shop = Shop::open(|_| ()).await;
    shop.sells("echo@v1", None).await;
    assert_eq!(shop.calls("echo@v1", &[], &json!({})).await.status, 200);
    for number in 0..3 {
        shop.calls(&format!("made-up-{number}@v1"), &[], &json!({})).await;
    }
    let metrics = shop
        .operates(actix_web::http::Method::GET, "/metrics", &json!({}))
        .await;
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    assert!(
        text.contains(r#"aip_market_invokes_total{capability="echo@v1",result="ok"} 1"#),
        "{text}"
    );
    assert!(
        text.contains(r#"aip_market_invokes_total{capability="other",result="client_error"} 3"#),
        "{text}"
    );
    assert!(text.contains("aip_market_books_balance 1") && text.contains("aip_market_offers 1"));
    assert!(!text.contains("made-up-"));
}

#[actix_web::test]
async fn a_hub_without_a_market_says_so() {
    let shop = Shop::open(|settings| settings.market.enabled = false).await;
    refused(
        &shop.calls("echo@v1", &[], &json!({})).await,
        503,
        "market_disabled",
    );
    refused(
        &shop.hub.get("/ai-market/v2/manifest").await,
        503,
        "market_disabled",
    );
    let features = shop.hub.get("/.well-known/aip").await.json()["features"].clone();
    let features = features.as_array().unwrap().clone();
    assert!(
        !features
            .iter()
            .any(|feature| feature.as_str().unwrap().starts_with("aimarket"))
    );
}
