//! Channels: money that is set aside, what it pays, and what is left of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aip_tests::market::{Purse, books, call, channel, micros, purse, until_sold};
use aip_tests::provider::Reply;
use aip_tests::raw::{Answer, Request, ask};
use anyhow::Result;
use serde_json::json;

use super::{Shop, made, refused};

pub(super) async fn close(shop: &Shop, id: &str, secret: Option<&str>) -> Answer {
    let body = json!({ "channel_id": id, "settle_tx_hash": "anything" }).to_string();
    let request = Request::post("/ai-market/v2/channel/close", body);
    let request = match secret {
        Some(secret) => request.field("X-Payment-Channel-Secret", secret),
        None => request,
    };
    shop.ask(&request).await
}

pub(super) fn parts(channel: &Purse) -> (&str, &str) {
    match channel {
        Purse::Channel(id, secret) => (id, secret),
        _ => panic!("no channel"),
    }
}

async fn top_up(shop: &Shop, channel: &Purse, by: &Purse, key: &str) -> Answer {
    let (id, secret) = parts(channel);
    let body = json!({ "channel_id": id, "amount_usd": 0.02 }).to_string();
    let request = Request::post("/ai-market/v2/channel/topup", body).field("Idempotency-Key", key);
    shop.ask(&by.on(request.field("X-Payment-Channel-Secret", secret)))
        .await
}

#[tokio::test]
async fn a_channel_is_opened_looked_at_and_spent() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("paid@v1", Some("0.001")).await?;
    let key = shop.key("1").await?;
    let body = json!({ "deposit_usd": 0.01 }).to_string();
    let answer = shop
        .ask(&key.on(Request::post("/ai-market/v2/channel/open", body)))
        .await;
    let opened = answer.json()["channel"].clone();
    assert_eq!(
        (&opened["status"], &opened["funding"]),
        (&json!("open"), &json!("account")),
        "{opened}"
    );
    assert_eq!(
        (
            micros(&opened["original_deposit_usd"]),
            micros(&opened["used_usd"])
        ),
        (10_000, 0)
    );
    let member = |name: &str| opened[name].as_str().unwrap_or_default().to_owned();
    let (id, secret) = (member("channel_id"), member("channel_secret"));
    assert!(id.starts_with("ch_") && secret.len() >= 43, "{opened}");
    let open = Purse::Channel(id.clone(), secret.clone());
    made(&shop.calls("paid@v1", &open, &json!({})).await);
    let path = format!("/ai-market/v2/channel/{id}");
    let shown = shop.ask(&open.on(Request::get(&path))).await;
    assert!(
        shown.status == 200 && !shown.text().contains(&secret),
        "the secret is told twice"
    );
    let shown = shown.json()["channel"].clone();
    assert_eq!(
        (micros(&shown["balance_usd"]), micros(&shown["used_usd"])),
        (9_000, 1_000)
    );
    refused(
        &shop.ask(&Request::get(&path)).await,
        400,
        "channel_secret_required",
    );
    Ok(())
}

/// The secret spends what is in the channel, and no more: who fills it shows the key.
#[tokio::test]
async fn a_channel_is_filled_once_by_who_opened_it() -> Result<()> {
    let shop = Shop::open("").await?;
    let (key, other) = (shop.key("1").await?, shop.key("1").await?);
    let open = channel(&shop.hub, &key, 0.01).await?;
    refused(
        &top_up(&shop, &open, &Purse::Empty, "topup-one").await,
        401,
        "invalid_api_key",
    );
    refused(
        &top_up(&shop, &open, &other, "topup-one").await,
        401,
        "invalid_api_key",
    );
    for _ in 0..3 {
        let answer = top_up(&shop, &open, &key, "topup-one").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(micros(&answer.json()["channel"]["balance_usd"]), 30_000);
    }
    assert_eq!(
        (purse(&shop.hub, &key).await?, purse(&shop.hub, &other).await?),
        ((970_000, 0), (1_000_000, 0))
    );
    Ok(())
}

#[tokio::test]
async fn a_channel_is_closed_and_what_is_left_comes_back() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("paid@v1", Some("0.001")).await?;
    let key = shop.key("1").await?;
    let open = channel(&shop.hub, &key, 0.03).await?;
    let (id, secret) = parts(&open);
    made(&shop.calls("paid@v1", &open, &json!({})).await);
    refused(&close(&shop, id, None).await, 400, "channel_secret_required");
    refused(
        &close(&shop, id, Some("chs_wrong")).await,
        404,
        "channel_not_found",
    );
    refused(
        &close(&shop, "ch_0", Some(secret)).await,
        404,
        "channel_not_found",
    );
    for _ in 0..2 {
        let answer = close(&shop, id, Some(secret)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let settlement = answer.json()["settlement"].clone();
        let amounts = ["used_usd", "refund_usd", "refund_executed_usd"].map(|name| micros(&settlement[name]));
        assert_eq!(amounts, [1_000, 29_000, 29_000]);
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
    refused(
        &top_up(&shop, &open, &key, "topup-two").await,
        409,
        "channel_ended",
    );
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
    let release = Arc::new(AtomicBool::new(false));
    let released = Arc::clone(&release);
    shop.provider.answer(move |call| {
        if released.load(Ordering::SeqCst) {
            Reply::echo(call)
        } else {
            Reply::Never
        }
    });
    let (url, request) = (
        shop.hub.url().to_owned(),
        open.on(call("shop", "paid@v1", &json!({}))),
    );
    let waiting = tokio::spawn(async move { ask(&url, &request).await });
    shop.provider.called(1).await;
    assert_eq!(purse(&shop.hub, &open).await?, (600_000, 400_000));
    let body = refused(&close(&shop, id, Some(secret)).await, 409, "channel_busy");
    assert_eq!(micros(&body["held_usd"]), 400_000, "{body}");
    release.store(true, Ordering::SeqCst);
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
    until_sold(&shop.hub, 1).await;
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
