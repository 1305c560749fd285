//! Accounts, keys with budgets, and channels.

use std::time::Duration;

use actix_web::http::Method;
use actix_web::test::TestRequest;
use serde_json::{Value, json};

use super::{Shop, refused};

const OPEN: &str = "/ai-market/v2/channel/open";
const CLOSE: &str = "/ai-market/v2/channel/close";
const TOP_UP: &str = "/ai-market/v2/channel/topup";
const ACCOUNT: &str = "/ai-market/v2/account";
const ACCOUNTS: &str = "/ai-market/v2/accounts";
const KEYS: &str = "/ai-market/v2/account/keys";
const ROTATE: &str = "/ai-market/v2/account/rotate-key";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

#[actix_web::test]
async fn an_agent_opens_one_account_by_its_token() {
    let shop = Shop::open(|_| ()).await;
    let alice = shop.hub.registered("alice").await;
    let bearer = format!("Bearer {}", shop.hub.token(&alice).await);
    let owner = [("authorization", bearer.as_str())];
    refused(&shop.posts(ACCOUNTS, &[], &json!({})).await, 403, "signup_closed");
    let nonsense = [("authorization", "Bearer nonsense")];
    refused(
        &shop.posts(ACCOUNTS, &nonsense, &json!({})).await,
        401,
        "token_invalid",
    );
    refused(
        &shop.posts(ACCOUNTS, &owner, &json!({ "grant_usd": 5 })).await,
        403,
        "grant_refused",
    );
    let untyped = TestRequest::post()
        .uri(ACCOUNTS)
        .insert_header(owner[0])
        .set_payload("{}");
    refused(&shop.hub.ask(untyped).await, 415, "media_type_unsupported");
    for budget in [json!(-1), json!("1"), json!(1e300)] {
        refused(
            &shop
                .posts(ACCOUNTS, &owner, &json!({ "budget_usd": budget }))
                .await,
            400,
            "amount_invalid",
        );
    }
    for label in ["x".repeat(201), "a\u{1b}[2J".to_owned(), "a\u{202e}b".to_owned()] {
        let body = json!({ "label": label });
        refused(&shop.posts(ACCOUNTS, &owner, &body).await, 422, "request_invalid");
    }

    let made = shop
        .posts(ACCOUNTS, &owner, &json!({ "label": "mine", "budget_usd": 2 }))
        .await;
    assert_eq!(made.status, 200, "{made:?}");
    let made = made.json();
    let key = text(&made["api_key"]).to_owned();
    let body = refused(
        &shop.posts(ACCOUNTS, &owner, &json!({})).await,
        409,
        "account_exists",
    );
    assert_eq!(body["account_id"], made["account_id"]);
    for who in [owner, [("x-api-key", key.as_str())]] {
        let shown = shop.reads(ACCOUNT, &who).await;
        assert!(
            !String::from_utf8_lossy(&shown.body).contains(&key),
            "a key is told twice"
        );
        let shown = shown.json();
        assert_eq!(
            (
                &shown["account_id"],
                &shown["owner"],
                &shown["budget_usd"],
                &shown["status"]
            ),
            (
                &made["account_id"],
                &json!(alice.did.as_str()),
                &json!(2.0),
                &json!("active")
            )
        );
    }
    refused(&shop.hub.get(ACCOUNT).await, 401, "invalid_api_key");
    let bearer = format!("Bearer {}", shop.hub.token(&shop.seller).await);
    refused(
        &shop.reads(ACCOUNT, &[("authorization", &bearer)]).await,
        404,
        "account_not_found",
    );
}

#[actix_web::test]
async fn keys_are_made_replaced_and_ended() {
    let shop = Shop::open(|_| ()).await;
    shop.sells("paid@v1", Some("0.01")).await;
    shop.sells("free@v1", None).await;
    let (_, key) = shop.account("1").await;
    let by = [("x-api-key", key.as_str())];
    let made = shop
        .posts(KEYS, &by, &json!({ "label": "small", "budget_usd": 0.015 }))
        .await
        .json();
    let (small, small_id) = (
        text(&made["api_key"]).to_owned(),
        text(&made["key"]["key_id"]).to_owned(),
    );
    let by_small = [("x-api-key", small.as_str())];
    assert_eq!(shop.calls("paid@v1", &by_small, &json!({})).await.status, 200);
    let body = refused(
        &shop.calls("paid@v1", &by_small, &json!({})).await,
        402,
        "payment_failed",
    );
    assert_eq!(body["budget_left"], 0.005);
    assert_eq!(shop.calls("free@v1", &by_small, &json!({})).await.status, 200);
    let shown = shop.reads(ACCOUNT, &by_small).await.json();
    assert_eq!(
        shown["keys"].as_array().map(Vec::len),
        Some(1),
        "of the others it learns nothing"
    );

    let ended = format!("{KEYS}/{small_id}");
    refused(&shop.posts(KEYS, &by_small, &json!({})).await, 403, "key_limited");
    refused(
        &shop.posts(ROTATE, &by_small, &json!({})).await,
        403,
        "key_limited",
    );
    refused(
        &shop.asks(Method::DELETE, &ended, &by_small, &json!({})).await,
        403,
        "key_limited",
    );
    assert_eq!(
        shop.asks(Method::DELETE, &ended, &by, &json!({})).await.status,
        200
    );
    refused(
        &shop.asks(Method::DELETE, &ended, &by, &json!({})).await,
        404,
        "key_not_found",
    );
    refused(
        &shop.calls("free@v1", &by_small, &json!({})).await,
        401,
        "invalid_api_key",
    );

    let fresh = shop.posts(ROTATE, &by, &json!({})).await.json();
    refused(&shop.reads(ACCOUNT, &by).await, 401, "invalid_api_key");
    let fresh = text(&fresh["api_key"]).to_owned();
    let by_fresh = [("x-api-key", fresh.as_str())];
    assert_eq!(shop.balance(&fresh).await.to_bits(), 0.99_f64.to_bits());
    for _ in 0..19 {
        assert_eq!(shop.posts(KEYS, &by_fresh, &json!({})).await.status, 200);
    }
    refused(
        &shop.posts(KEYS, &by_fresh, &json!({})).await,
        409,
        "too_many_keys",
    );
}

#[actix_web::test]
async fn a_channel_lives_from_its_account() {
    let shop = Shop::open(|_| ()).await;
    shop.sells("paid@v1", Some("0.001")).await;
    let (_, key) = shop.account("1").await;
    let by = [("x-api-key", key.as_str())];
    let opened = shop
        .posts(OPEN, &by, &json!({ "deposit_usd": 0.01, "tx_hash": "0x1" }))
        .await;
    assert_eq!(opened.status, 200, "{opened:?}");
    let opened = opened.json()["channel"].clone();
    let (id, secret) = (text(&opened["channel_id"]), text(&opened["channel_secret"]));
    assert_eq!(
        (
            &opened["balance_usd"],
            &opened["used_usd"],
            &opened["status"],
            &opened["funding"]
        ),
        (&json!(0.01), &json!(0.0), &json!("open"), &json!("account"))
    );
    assert_eq!(
        (text(&opened["opened_at"]), text(&opened["expires_at"])),
        ("2026-11-29T20:15:30Z", "2026-11-30T20:15:30Z")
    );
    let payer = [("x-payment-channel", id), ("x-payment-channel-secret", secret)];
    let call = shop.calls("paid@v1", &payer, &json!({})).await.json();
    assert_eq!(call["remaining_balance"], 0.009);

    let path = format!("/ai-market/v2/channel/{id}");
    let shown = shop.reads(&path, &payer).await;
    assert!(
        !String::from_utf8_lossy(&shown.body).contains(secret),
        "the secret is told twice"
    );
    assert_eq!(shown.json()["channel"]["used_usd"], 0.001);
    refused(&shop.hub.get(&path).await, 400, "channel_secret_required");
    let wrong = [("x-payment-channel-secret", "chs_wrong")];
    refused(&shop.reads(&path, &wrong).await, 404, "channel_not_found");

    let more = json!({ "channel_id": id, "amount_usd": 0.02 });
    let once = [payer[1], ("idempotency-key", "top-up-01")];
    refused(&shop.posts(TOP_UP, &once, &more).await, 401, "invalid_api_key");
    let once = [payer[1], by[0], ("idempotency-key", "top-up-01")];
    for _ in 0..2 {
        assert_eq!(
            shop.posts(TOP_UP, &once, &more).await.json()["channel"]["balance_usd"],
            0.029
        );
    }
    let other = json!({ "channel_id": id, "amount_usd": 0.03 });
    refused(
        &shop.posts(TOP_UP, &once, &other).await,
        409,
        "idempotency_conflict",
    );
    let short = [payer[1], by[0], ("idempotency-key", "short")];
    refused(
        &shop.posts(TOP_UP, &short, &more).await,
        400,
        "idempotency_key_invalid",
    );
    let all = json!({ "channel_id": id, "amount_usd": 5 });
    let body = refused(
        &shop.posts(TOP_UP, &[payer[1], by[0]], &all).await,
        402,
        "payment_failed",
    );
    assert_eq!((&body["balance"], &body["needed"]), (&json!(0.97), &json!(5.0)));

    refused(
        &shop.posts(CLOSE, &[], &json!({ "channel_id": id })).await,
        400,
        "channel_secret_required",
    );
    for _ in 0..2 {
        let body = json!({ "channel_id": id, "channel_secret": secret, "settle_tx_hash": "x" });
        let settled = shop.posts(CLOSE, &[], &body).await.json()["settlement"].clone();
        assert_eq!(
            (
                &settled["used_usd"],
                &settled["refund_usd"],
                &settled["refund_status"],
                &settled["status"]
            ),
            (
                &json!(0.001),
                &json!(0.029),
                &json!("executed"),
                &json!("settled")
            )
        );
    }
    assert_eq!(shop.balance(&key).await.to_bits(), 0.999_f64.to_bits());
    refused(
        &shop.posts(TOP_UP, &[payer[1], by[0]], &more).await,
        409,
        "channel_ended",
    );
    shop.balanced().await;
}

#[actix_web::test]
async fn pitfall_26_what_is_no_amount_opens_nothing() {
    let shop = Shop::open(|settings| settings.market.demo_credit = true).await;
    for amount in [
        "\"inf\"",
        "null",
        "-1",
        "0",
        "-0.0",
        "0.0000001",
        "1e300",
        "true",
        "100.000001",
    ] {
        let answer = shop.hub.post(OPEN, format!("{{\"deposit_usd\":{amount}}}")).await;
        refused(&answer, 400, "deposit_invalid");
    }
    for amount in ["NaN", "Infinity"] {
        refused(
            &shop.hub.post(OPEN, format!("{{\"deposit_usd\":{amount}}}")).await,
            400,
            "json_invalid",
        );
    }
    refused(&shop.hub.post(OPEN, "[]").await, 422, "request_invalid");
    let visitor = [("x-aimarket-sandbox-visitor", "visitor-1")];
    refused(
        &shop.posts(OPEN, &visitor, &json!({ "deposit_usd": 1 })).await,
        400,
        "sandbox_conflict",
    );
    let room = shop.hub.hub.app.market.as_ref().unwrap();
    assert_eq!(room.store().totals().await.unwrap().demo.micros(), 0);
    let opened = shop.posts(OPEN, &[], &json!({ "deposit_usd": 100 })).await.json();
    assert_eq!(
        (&opened["success"], &opened["channel"]["funding"]),
        (&json!(true), &json!("demo"))
    );
}

#[actix_web::test]
async fn pitfall_25_without_an_account_there_is_no_money() {
    let shop = Shop::open(|_| ()).await;
    let quoted = json!({ "deposit_usd": 3, "tx_hash": "0x01", "wallet": "0x02", "chain": "base" });
    let body = refused(&shop.posts(OPEN, &[], &quoted).await, 400, "payment_required");
    assert!(body["payment_ways"].is_array());
    refused(
        &shop.posts(OPEN, &[("x-api-key", "aimk_none")], &quoted).await,
        401,
        "invalid_api_key",
    );
}

#[actix_web::test]
async fn a_channel_whose_time_is_over_goes_back() {
    let shop = Shop::open(|_| ()).await;
    let (_, key) = shop.account("1").await;
    let by = [("x-api-key", key.as_str())];
    let opened = shop.posts(OPEN, &by, &json!({ "deposit_usd": 0.5 })).await.json();
    let secret = [(
        "x-payment-channel-secret",
        text(&opened["channel"]["channel_secret"]),
    )];
    let path = format!("/ai-market/v2/channel/{}", text(&opened["channel"]["channel_id"]));
    shop.hub.clock.advance(Duration::from_secs(24 * 3_600 + 1));
    assert_eq!(
        shop.reads(&path, &secret).await.json()["channel"]["status"],
        "expired"
    );
    shop.hub.hub.app.market.as_ref().unwrap().sweep().await;
    assert_eq!(shop.balance(&key).await.to_bits(), 1.0_f64.to_bits());
    shop.balanced().await;
}

#[actix_web::test]
async fn a_channel_is_opened_once_with_an_idempotency_key() {
    let shop = Shop::open(|settings| settings.market.demo_credit = true).await;
    let (_, key) = shop.account("5").await;
    let (_, other) = shop.account("5").await;
    let deposit = json!({ "deposit_usd": 2 });
    let once = [("x-api-key", key.as_str()), ("idempotency-key", "open-0001")];
    let first = shop.posts(OPEN, &once, &deposit).await.json();
    let again = shop.posts(OPEN, &once, &deposit).await.json();
    let part = |of: &Value, name: &str| of["channel"][name].clone();
    for name in ["channel_id", "channel_secret", "balance_usd"] {
        assert_eq!(part(&first, name), part(&again, name), "{name}");
    }
    assert!(
        (shop.balance(&key).await - 3.0).abs() < f64::EPSILON,
        "it is taken once"
    );
    refused(
        &shop.posts(OPEN, &once, &json!({ "deposit_usd": 1 })).await,
        409,
        "idempotency_conflict",
    );
    // The same key of another account, of nobody, and another key of this one are channels of their own.
    let mut ids = vec![part(&first, "channel_id")];
    for headers in [
        vec![("x-api-key", other.as_str()), ("idempotency-key", "open-0001")],
        vec![("idempotency-key", "open-0001")],
        vec![("x-api-key", key.as_str()), ("idempotency-key", "open-0002")],
        vec![("x-api-key", key.as_str())],
    ] {
        let opened = shop.posts(OPEN, &headers, &json!({ "deposit_usd": 1 })).await;
        assert_eq!(opened.status, 200, "{opened:?}");
        ids.push(part(&opened.json(), "channel_id"));
    }
    ids.sort_by_key(Value::to_string);
    ids.dedup();
    assert_eq!(ids.len(), 5, "{ids:?}");
    let short = [("x-api-key", key.as_str()), ("idempotency-key", "short")];
    refused(
        &shop.posts(OPEN, &short, &deposit).await,
        400,
        "idempotency_key_invalid",
    );
    // The secret that is told again opens the channel.
    let (id, secret) = (part(&again, "channel_id"), part(&again, "channel_secret"));
    let path = format!("/ai-market/v2/channel/{}", text(&id));
    let shown = shop
        .reads(&path, &[("x-payment-channel-secret", text(&secret))])
        .await;
    assert_eq!(shown.json()["channel"]["balance_usd"], 2.0);
    shop.balanced().await;
}
