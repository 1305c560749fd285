//! Accounts, keys with budgets, channels, earnings: what may be spent, and what is left.

use aip_tests::clients::agent;
use aip_tests::market::{Purse, account, books, channel, micros, purse};
use aip_tests::provider::Reply;
use aip_tests::raw::{Answer, Request, ask};
use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{Shop, made, refused};

const ACCOUNT: &str = "/ai-market/v2/account";

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

async fn close(shop: &Shop, id: &str, secret: Option<&str>) -> Answer {
    let body = json!({ "channel_id": id, "settle_tx_hash": "anything" }).to_string();
    let request = Request::post("/ai-market/v2/channel/close", body);
    let request = match secret {
        Some(secret) => request.field("X-Payment-Channel-Secret", secret),
        None => request,
    };
    shop.ask(&request).await
}

fn parts(channel: &Purse) -> (&str, &str) {
    match channel {
        Purse::Channel(id, secret) => (id, secret),
        _ => panic!("no channel"),
    }
}

#[tokio::test]
async fn pitfall_20_a_budget_of_nothing_spends_nothing_and_none_is_no_ceiling() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("paid@v1", Some("0.01")).await?;
    shop.sells("free@v1", None).await?;
    let all = shop.key("1").await?;
    let (nothing, _) = make_key(&shop, &all, json!(0)).await?;
    let (some, some_id) = make_key(&shop, &all, json!(0.025)).await?;
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

    // A budget holds for channels, and what comes back counts no more.
    refused_open(&shop, &nothing, 0.001, 402, "payment_failed").await;
    refused_open(&shop, &some, 0.005_001, 402, "payment_failed").await;
    let opened = channel(&shop.hub, &some, 0.005).await?;
    refused_open(&shop, &some, 0.000_001, 402, "payment_failed").await;
    let (id, secret) = parts(&opened);
    assert_eq!(close(&shop, id, Some(secret)).await.status, 200);
    channel(&shop.hub, &some, 0.005).await?;

    // A key with a budget makes none without.
    for (method, path) in [
        ("POST", "/ai-market/v2/account/keys".to_owned()),
        ("POST", "/ai-market/v2/account/rotate-key".to_owned()),
        ("DELETE", format!("/ai-market/v2/account/keys/{some_id}")),
    ] {
        let request = Request::new(method, path)
            .field("content-type", "application/json")
            .body("{}");
        refused(&shop.ask(&some.on(request)).await, 403, "key_limited");
    }
    let ended = shop
        .ask(&all.on(Request::new(
            "DELETE",
            format!("/ai-market/v2/account/keys/{some_id}"),
        )))
        .await;
    assert_eq!(ended.status, 200, "{}", ended.text());
    refused(
        &shop.calls("free@v1", &some, &json!({})).await,
        401,
        "invalid_api_key",
    );
    books(&shop.hub).await?;
    Ok(())
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
async fn a_channel_is_opened_looked_at_topped_up_spent_and_closed() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("paid@v1", Some("0.001")).await?;
    let key = shop.key("1").await?;
    let open = Request::post(
        "/ai-market/v2/channel/open",
        json!({ "deposit_usd": 0.01 }).to_string(),
    );
    let answer = shop.ask(&key.on(open)).await;
    let opened = answer.json()["channel"].clone();
    assert_eq!(
        (
            &opened["status"],
            &opened["funding"],
            micros(&opened["original_deposit_usd"]),
            micros(&opened["used_usd"])
        ),
        (&json!("open"), &json!("account"), 10_000, 0),
        "{opened}"
    );
    let member = |name: &str| opened[name].as_str().unwrap_or_default().to_owned();
    let (id, secret) = (member("channel_id"), member("channel_secret"));
    assert!(id.starts_with("ch_") && secret.len() >= 43, "{opened}");
    let open = Purse::Channel(id.clone(), secret.clone());
    made(&shop.calls("paid@v1", &open, &json!({})).await);

    let shown = shop
        .ask(&open.on(Request::get(format!("/ai-market/v2/channel/{id}"))))
        .await;
    assert_eq!(shown.status, 200);
    assert!(!shown.text().contains(&secret), "the secret is told twice");
    assert_eq!(
        (
            micros(&shown.json()["channel"]["balance_usd"]),
            micros(&shown.json()["channel"]["used_usd"])
        ),
        (9_000, 1_000)
    );
    refused(
        &shop
            .ask(&Request::get(format!("/ai-market/v2/channel/{id}")))
            .await,
        400,
        "channel_secret_required",
    );

    let topup = |by: &Purse, key: &str| {
        let body = json!({ "channel_id": id, "amount_usd": 0.02 }).to_string();
        let request = Request::post("/ai-market/v2/channel/topup", body).field("Idempotency-Key", key);
        by.on(request.field("X-Payment-Channel-Secret", &secret))
    };
    // The secret spends what is in the channel, and no more.
    refused(
        &shop.ask(&topup(&Purse::Empty, "topup-one")).await,
        401,
        "invalid_api_key",
    );
    for _ in 0..3 {
        let answer = shop.ask(&topup(&key, "topup-one")).await;
        assert_eq!(
            (answer.status, micros(&answer.json()["channel"]["balance_usd"])),
            (200, 29_000),
            "{}",
            answer.text()
        );
    }
    assert_eq!(purse(&shop.hub, &key).await?, (970_000, 0));

    refused(&close(&shop, &id, None).await, 400, "channel_secret_required");
    refused(
        &close(&shop, &id, Some("chs_wrong")).await,
        404,
        "channel_not_found",
    );
    refused(
        &close(&shop, "ch_0", Some(&secret)).await,
        404,
        "channel_not_found",
    );
    for _ in 0..2 {
        let answer = close(&shop, &id, Some(&secret)).await;
        let settlement = answer.json()["settlement"].clone();
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(
            (
                micros(&settlement["used_usd"]),
                micros(&settlement["refund_usd"]),
                micros(&settlement["refund_executed_usd"])
            ),
            (1_000, 29_000, 29_000)
        );
        assert_eq!(
            (&settlement["status"], &settlement["refund_status"]),
            (&json!("settled"), &json!("executed"))
        );
    }
    assert_eq!(purse(&shop.hub, &key).await?, (999_000, 0));
    refused(
        &shop.calls("paid@v1", &open, &json!({})).await,
        402,
        "payment_failed",
    );
    refused(&shop.ask(&topup(&key, "topup-two")).await, 409, "channel_ended");
    books(&shop.hub).await?;
    Ok(())
}

/// While a call is under way its money is neither spent nor free.
#[tokio::test]
async fn pitfall_29_a_channel_with_a_call_under_way_is_not_closed() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("paid@v1", Some("0.4")).await?;
    let key = shop.key("1").await?;
    let open = channel(&shop.hub, &key, 1.0).await?;
    let (id, secret) = parts(&open);
    let release = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let released = std::sync::Arc::clone(&release);
    shop.provider.answer(move |call| {
        // The first waits for the test, by breaking off only when it is told.
        if released.load(std::sync::atomic::Ordering::SeqCst) {
            Reply::echo(call)
        } else {
            Reply::Never
        }
    });
    let (url, request) = (
        shop.hub.url().to_owned(),
        open.on(aip_tests::market::call("shop", "paid@v1", &json!({}))),
    );
    let waiting = tokio::spawn(async move { ask(&url, &request).await });
    shop.provider.called(1).await;
    assert_eq!(purse(&shop.hub, &open).await?, (600_000, 400_000));
    let body = refused(&close(&shop, id, Some(secret)).await, 409, "channel_busy");
    assert_eq!(micros(&body["held_usd"]), 400_000, "{body}");
    release.store(true, std::sync::atomic::Ordering::SeqCst);
    made(&shop.calls("paid@v1", &open, &json!({})).await);
    refused(
        &shop.calls("paid@v1", &open, &json!({})).await,
        402,
        "payment_failed",
    );
    // The caller goes; the call does not become free for it, and its money is not lost either.
    waiting.abort();
    drop(waiting);
    assert_eq!(books(&shop.hub).await?.earned, 400_000);
    Ok(())
}

#[tokio::test]
async fn money_for_trying_out_has_a_limit_and_is_gone_at_the_end() -> Result<()> {
    let shop = Shop::open("demo_credit = true\ndemo_deposit_usd_max = 2").await?;
    let body = json!({ "deposit_usd": 2.000_001 }).to_string();
    refused(
        &shop.ask(&Request::post("/ai-market/v2/channel/open", body)).await,
        400,
        "deposit_invalid",
    );
    let open = channel(&shop.hub, &Purse::Empty, 2.0).await?;
    let (id, secret) = parts(&open);
    let settlement = close(&shop, id, Some(secret)).await.json()["settlement"].clone();
    assert_eq!(
        (
            micros(&settlement["refund_executed_usd"]),
            &settlement["refund_status"]
        ),
        (0, &json!("none"))
    );
    let books = books(&shop.hub).await?;
    assert_eq!(
        (books.demo, books.demo_returned, books.channels),
        (2_000_000, 2_000_000, 0)
    );
    Ok(())
}

/// A day later nothing can be paid from a channel, and what was left of it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_ends_with_its_time() -> Result<()> {
    let later = match crate::faults::clock::off_by(2 * 3_600 + 60) {
        Ok(environment) => environment,
        Err(skip) => {
            skip.print("a_channel_ends_with_its_time");
            return Ok(());
        }
    };
    let mut shop = Shop::open("channel_lifetime_hours = 2").await?;
    shop.sells("paid@v1", Some("0.1")).await?;
    let key = shop.key("1").await?;
    let open = channel(&shop.hub, &key, 0.5).await?;
    made(&shop.calls("paid@v1", &open, &json!({})).await);
    shop.hub.use_environment(later);
    tokio::task::block_in_place(|| shop.hub.restart());
    aip_tests::market::until_sold(&shop.hub, 1).await;
    refused(
        &shop.calls("paid@v1", &open, &json!({})).await,
        402,
        "payment_failed",
    );
    let back = || async {
        purse(&shop.hub, &key)
            .await
            .is_ok_and(|left| left == (900_000, 0))
    };
    crate::faults::until("what was left comes back", back).await;
    let (id, _) = parts(&open);
    let shown = shop
        .ask(&open.on(Request::get(format!("/ai-market/v2/channel/{id}"))))
        .await;
    assert_eq!(shown.json()["channel"]["status"], "expired", "{}", shown.text());
    assert_eq!(books(&shop.hub).await?.channels, 0);
    Ok(())
}

/// Money in, money through, money out; every step once.
#[tokio::test]
async fn an_account_its_ledger_and_what_the_provider_earns() -> Result<()> {
    let shop = Shop::open("fee_bps = 1000").await?;
    shop.sells("paid@v1", Some("0.1")).await?;
    let (id, key) = account(&shop.hub, "0.5").await?;
    let credit = |amount: &str| {
        let body = json!({ "amount": amount, "reference": "invoice-1" }).to_string();
        Request::post(format!("/admin/accounts/{id}/credits"), body)
    };
    for _ in 0..2 {
        let credited = shop.hub.operate(credit("0.5")).await;
        assert!(credited.status < 300, "{}", credited.text());
    }
    assert_eq!(shop.hub.operate(credit("0.6")).await.status, 409);
    assert_eq!(purse(&shop.hub, &key).await?, (1_000_000, 0));
    made(&shop.calls("paid@v1", &key, &json!({})).await);
    shop.provider.answer(|_| Reply::Break);
    refused(
        &shop.calls("paid@v1", &key, &json!({})).await,
        502,
        "provider_failed",
    );

    let ledger = shop
        .ask(&key.on(Request::get("/ai-market/v2/account/ledger")))
        .await
        .json();
    let entries = ledger["entries"].as_array().context("no entries")?;
    let lines: Vec<(&str, i64, i64)> = entries
        .iter()
        .map(|entry| {
            (
                entry["kind"].as_str().unwrap_or_default(),
                micros(&entry["amount_usd"]),
                micros(&entry["balance_usd"]),
            )
        })
        .collect();
    assert_eq!(
        lines,
        [
            ("credit", 500_000, 500_000),
            ("credit", 500_000, 1_000_000),
            ("hold", 100_000, 900_000),
            ("capture", 100_000, 900_000),
            ("hold", 100_000, 800_000),
            ("release", 100_000, 900_000),
        ]
    );
    let page = shop
        .ask(&key.on(Request::get("/ai-market/v2/account/ledger?limit=2")))
        .await
        .json();
    let next = page["next"].as_u64().context("no next")?;
    let rest = shop
        .ask(&key.on(Request::get(format!("/ai-market/v2/account/ledger?after={next}"))))
        .await
        .json();
    assert_eq!(rest["entries"].as_array().map(Vec::len), Some(4));

    let token = shop.seller.token().await?;
    let earned = shop
        .ask(&Request::get("/api/v1/market/earnings").bearer(&token))
        .await;
    assert_eq!(earned.status, 200, "{}", earned.text());
    let earned = earned.json();
    assert_eq!(
        (
            &earned["earned"],
            &earned["paid_out"],
            &earned["owed"],
            &earned["calls"]
        ),
        (&json!("0.09"), &json!("0"), &json!("0.09"), &json!(1))
    );
    let pay = |amount: &str, reference: &str| {
        let agent = format!("shop#{}", shop.hub.domain());
        Request::post(
            "/admin/payouts",
            json!({ "agent": agent, "amount": amount, "reference": reference }).to_string(),
        )
    };
    for (amount, reference, status) in [
        ("0.05", "pay-1", 2),
        ("0.05", "pay-1", 2),
        ("0.04", "pay-1", 4),
        ("0.05", "pay-2", 4),
        ("0.04", "pay-3", 2),
    ] {
        let answer = shop.hub.operate(pay(amount, reference)).await;
        assert_eq!(
            answer.status / 100,
            status,
            "{amount} {reference}: {}",
            answer.text()
        );
    }
    let books = books(&shop.hub).await?;
    assert_eq!(
        (books.earned, books.paid_out, books.fees, books.held),
        (90_000, 90_000, 10_000, 0)
    );
    Ok(())
}

#[tokio::test]
async fn an_agent_has_one_account_and_is_its_owner() -> Result<()> {
    let shop = Shop::open("").await?;
    let alice = agent(&shop.hub, "alice").await?;
    let token = alice.token().await?;
    let create = |body: &str| Request::post("/ai-market/v2/accounts", body);
    refused(&shop.ask(&create("{}")).await, 403, "signup_closed");
    refused(
        &shop.ask(&create("{}").bearer("nonsense")).await,
        401,
        "token_invalid",
    );
    refused(
        &shop.ask(&create("{\"grant_usd\": 5}").bearer(&token)).await,
        403,
        "grant_refused",
    );
    let form = Request::new("POST", "/ai-market/v2/accounts")
        .field("content-type", "text/plain")
        .bearer(&token)
        .body("{}");
    refused(&shop.ask(&form).await, 415, "media_type_unsupported");
    let answer = shop.ask(&create("{\"label\": \"mine\"}").bearer(&token)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let made = answer.json();
    let key = made["api_key"].as_str().context("no key")?.to_owned();
    assert!(
        key.starts_with("aimk_")
            && made["account_id"]
                .as_str()
                .is_some_and(|id| id.starts_with("acct_")),
        "{made}"
    );
    assert_eq!(micros(&made["balance_usd"]), 0);
    let body = refused(
        &shop.ask(&create("{}").bearer(&token)).await,
        409,
        "account_exists",
    );
    assert_eq!(body["account_id"], made["account_id"]);

    let by_owner = shop.ask(&Request::get(ACCOUNT).bearer(&token)).await.json();
    let by_key = shop.ask(&Purse::Key(key.clone()).on(Request::get(ACCOUNT))).await;
    assert_eq!(by_owner["account_id"], by_key.json()["account_id"]);
    assert_eq!(by_owner["owner"], json!(alice.did().map(|did| did.to_string())));
    assert!(!by_key.text().contains(&key), "a key is told twice");

    let rotated = shop
        .ask(&Purse::Key(key.clone()).on(Request::post("/ai-market/v2/account/rotate-key", "{}")))
        .await;
    assert_eq!(rotated.status, 200, "{}", rotated.text());
    refused(
        &shop.ask(&Purse::Key(key.clone()).on(Request::get(ACCOUNT))).await,
        401,
        "invalid_api_key",
    );
    let fresh = rotated.json()["api_key"].as_str().context("no key")?.to_owned();
    assert_eq!(
        shop.ask(&Purse::Key(fresh.clone()).on(Request::get(ACCOUNT)))
            .await
            .status,
        200
    );

    // Who lost every key makes a new one by being who they are.
    let made_by_owner = shop
        .ask(&Request::post("/ai-market/v2/account/keys", "{}").bearer(&token))
        .await;
    assert_eq!(made_by_owner.status, 200, "{}", made_by_owner.text());

    // The operator closes it to all its keys.
    let id = by_owner["account_id"].as_str().context("no id")?;
    let standing = Request::new("PUT", format!("/admin/accounts/{id}/standing"))
        .field("content-type", "application/json")
        .body("{\"suspended\": true}");
    assert!(shop.hub.operate(standing).await.status < 300);
    refused(
        &shop.ask(&Purse::Key(fresh).on(Request::get(ACCOUNT))).await,
        401,
        "invalid_api_key",
    );
    Ok(())
}

#[tokio::test]
async fn anybody_opens_an_account_where_the_operator_says_so() -> Result<()> {
    let shop = Shop::open("open_signup = true").await?;
    let answer = shop
        .ask(&Request::post("/ai-market/v2/accounts", "{\"label\": \"me\"}"))
        .await;
    assert_eq!(
        (answer.status, &answer.json()["success"]),
        (200, &json!(true)),
        "{}",
        answer.text()
    );
    let known = shop
        .ask(&Request::get("/.well-known/ai-market.json"))
        .await
        .json();
    assert_eq!(known["payment_rails"]["credits"]["open_signup"], true);
    Ok(())
}
