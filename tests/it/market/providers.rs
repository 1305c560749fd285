//! Providers: by message over the relay, and over HTTP as far as a stranger's address may be called.

use std::time::Duration;

use aip_client::protocol::name::Did;
use aip_client::{Client, Content, Draft, Incoming};
use aip_tests::clients::agent;
use aip_tests::market::{Purse, books, call, listed, purse, sell, settings, until_sold};
use aip_tests::provider::{Provider, Reply};
use aip_tests::raw::ask;
use aip_tests::{HubOptions, TestHub};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Shop, made, refused};

const REQUEST: &str = "aip.invoke.request";
const RESPONSE: &str = "aip.invoke.response";

/// The next request that waits for a provider; it is settled.
async fn next(provider: &Client) -> Result<Incoming> {
    let deadline = tokio::time::Instant::now() + crate::faults::DEADLINE;
    loop {
        let page = provider.fetch_inbox(None, 1, Duration::from_secs(5)).await?;
        if let Some(message) = page.items.into_iter().next() {
            provider.ack_inbox(&message.epoch, message.seq, &[]).await?;
            return Ok(message);
        }
        ensure!(tokio::time::Instant::now() < deadline, "nothing came");
    }
}

fn body_of(message: &Incoming) -> Result<Value> {
    ensure!(message.kind == REQUEST, "{message:?}");
    message.content.as_json().cloned().context("no JSON")
}

fn answer(to: &Incoming, body: Value) -> Draft {
    Draft::reply(to, Content::json(body)).kind(RESPONSE)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_without_an_address_is_called_by_message() -> Result<()> {
    let shop = Shop::open("").await?;
    let relayed = json!({ "relay": true, "timeout_secs": 60 });
    let more = json!({ "output_schema": { "type": "object", "required": ["half"] } });
    sell(
        &shop.hub,
        &shop.seller,
        &[listed("halve@v1", Some("0.01"), &relayed, &more)],
    )
    .await?;
    let key = shop.key("1").await?;
    let provider = shop.seller.clone();
    let hub = Did::parse(&format!("did:aip:{}:hub", shop.hub.domain().replace(':', "%3A")))?;
    let serving = tokio::spawn(async move {
        let mut ids = Vec::new();
        for round in 0..3 {
            let message = next(&provider).await?;
            ensure!(message.from == hub, "{message:?}");
            let request = body_of(&message)?;
            ensure!(
                request["product_id"] == "shop" && request["capability_id"] == "halve@v1",
                "{request}"
            );
            let id = request["id"].clone();
            ids.push(id.clone());
            let half = request["input"]["n"].as_f64().context("no n")? / 2.0;
            let body = match round {
                0 => json!({ "id": id, "ok": true, "result": { "half": half } }),
                1 => json!({ "id": id, "ok": false, "error": "not today" }),
                _ => json!({ "id": id, "ok": true, "result": { "whole": 1 } }),
            };
            provider.send(&answer(&message, body)).await?;
        }
        Ok(ids)
    });
    let body = made(&shop.calls("halve@v1", &key, &json!({ "n": 2.5 })).await);
    assert_eq!(
        (&body["result"], &body["price_usd"]),
        (&json!({ "half": 1.25 }), &json!(0.01))
    );
    let body = refused(
        &shop.calls("halve@v1", &key, &json!({ "n": 1 })).await,
        502,
        "provider_failed",
    );
    assert_eq!(body["reason"], "refused", "{body}");
    let body = refused(
        &shop.calls("halve@v1", &key, &json!({ "n": 1 })).await,
        502,
        "provider_failed",
    );
    assert_eq!(body["reason"], "output_invalid", "{body}");
    let mut ids = serving.await??;
    ids.dedup();
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert_eq!(purse(&shop.hub, &key).await?, (990_000, 0));
    assert_eq!(books(&shop.hub).await?.earned, 10_000);
    Ok(())
}

/// Nobody but the provider answers, and only what it was asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_of_somebody_else_is_none() -> Result<()> {
    let shop = Shop::open("").await?;
    let relayed = json!({ "relay": true, "timeout_secs": 30 });
    sell(
        &shop.hub,
        &shop.seller,
        &[listed("paid@v1", Some("0.01"), &relayed, &json!({}))],
    )
    .await?;
    let mallory = agent(&shop.hub, "mallory").await?;
    let key = shop.key("1").await?;
    let (url, request) = (
        shop.hub.url().to_owned(),
        key.on(call("shop", "paid@v1", &json!({}))),
    );
    let caller = tokio::spawn(async move { ask(&url, &request).await });
    let message = next(&shop.seller).await?;
    let id = body_of(&message)?["id"].clone();
    let forged = json!({ "id": id, "ok": true, "result": { "forged": true } });
    let hub = format!("hub#{}", shop.hub.domain());
    let to = message.id.to_string();
    mallory
        .send(&Draft::json(&hub, forged).kind(RESPONSE).reply_to(&to))
        .await?;
    // Of the provider itself, but to another message.
    let other = json!({ "id": id, "ok": true, "result": { "other": true } });
    let elsewhere = "6f8f3f5e-2a52-4e0b-9a5f-6f0c6f1d7c11";
    shop.seller
        .send(&Draft::json(&hub, other).kind(RESPONSE).reply_to(elsewhere))
        .await?;
    shop.seller
        .send(&answer(
            &message,
            json!({ "id": id, "ok": true, "result": { "real": true } }),
        ))
        .await?;
    let body = made(&caller.await?);
    assert_eq!(body["result"], json!({ "real": true }));
    Ok(())
}

/// A provider who does not answer in time is not paid, and an answer that comes later changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_comes_too_late_is_none() -> Result<()> {
    let shop = Shop::open("").await?;
    let relayed = json!({ "relay": true, "timeout_secs": 1 });
    sell(
        &shop.hub,
        &shop.seller,
        &[listed("paid@v1", Some("0.01"), &relayed, &json!({}))],
    )
    .await?;
    let key = shop.key("1").await?;
    let body = refused(
        &shop.calls("paid@v1", &key, &json!({})).await,
        502,
        "provider_failed",
    );
    assert_eq!(body["reason"], "timed_out", "{body}");
    assert_eq!(purse(&shop.hub, &key).await?, (1_000_000, 0));
    assert_eq!(books(&shop.hub).await?.earned, 0);
    Ok(())
}

/// As in production, but for plain http: nobody on this machine is called, however the address is written.
#[tokio::test]
async fn pitfall_47_a_providers_address_reaches_no_private_network() -> Result<()> {
    let hub = TestHub::start_with(HubOptions {
        config: Some("[egress]\nallow_http = true\nallowed_private_ranges = []\n".to_owned()),
        ..HubOptions::default()
    });
    let trap = Provider::echo().await;
    let port = trap.url().rsplit(':').next().context("no port")?;
    let seller = agent(&hub, "shop").await?;
    let hosts = [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "169.254.169.254",
        "10.0.0.1",
    ];
    for (number, host) in hosts.iter().enumerate() {
        for (scheme, letter) in [("http", 'a'), ("https", 'b')] {
            let url = format!("{scheme}://{host}:{port}");
            let offer = listed(
                &format!("{letter}{number}@v1"),
                None,
                &json!({ "url": url, "timeout_secs": 5 }),
                &json!({}),
            );
            // Refusing the listing is as good as not calling it.
            let _published = seller.publish_listing(&offer).await;
        }
    }
    let canary = listed(
        "canary@v1",
        None,
        &json!({ "relay": true, "timeout_secs": 1 }),
        &json!({}),
    );
    seller.publish_listing(&canary).await?;
    crate::faults::until("the canary", || async {
        aip_tests::market::sold(&hub)
            .await
            .contains(&"canary@v1".to_owned())
    })
    .await;
    for number in 0..hosts.len() {
        for letter in ['a', 'b'] {
            let answer = ask(
                hub.url(),
                &call("shop", &format!("{letter}{number}@v1"), &json!({})),
            )
            .await;
            match answer.status {
                404 => {}
                _ => drop(refused(&answer, 502, "provider_failed")),
            }
        }
    }
    assert!(trap.calls().is_empty(), "called on loopback: {:?}", trap.calls());
    Ok(())
}

#[tokio::test]
async fn a_redirect_of_a_provider_is_not_followed() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("paid@v1", Some("0.01")).await?;
    let trap = Provider::echo().await;
    let key = shop.key("1").await?;
    for status in [301, 302, 303, 307, 308] {
        let location = format!("location: {}\r\n", trap.url());
        shop.provider
            .answer(move |_| Reply::Raw(status, location.clone(), Vec::new()));
        refused(
            &shop.calls("paid@v1", &key, &json!({})).await,
            502,
            "provider_failed",
        );
    }
    assert!(trap.calls().is_empty());
    Ok(())
}

/// A listing may name its time; where it does not, the settings do.
#[tokio::test]
async fn a_provider_has_the_time_of_the_settings() -> Result<()> {
    let shop = Shop::open("provider_timeout_secs = 1").await?;
    shop.sells("paid@v1", Some("0.01")).await?;
    let key = shop.key("1").await?;
    shop.provider.answer(|_| Reply::Never);
    let body = refused(
        &shop.calls("paid@v1", &key, &json!({})).await,
        502,
        "provider_failed",
    );
    assert_eq!(body["reason"], "timed_out", "{body}");
    assert_eq!(purse(&shop.hub, &key).await?, (1_000_000, 0));
    Ok(())
}

/// What a provider hears of its caller: the call, and nothing of who pays.
#[tokio::test]
async fn a_provider_does_not_learn_who_pays() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("paid@v1", Some("0.01")).await?;
    let Purse::Key(key) = shop.key("1").await? else {
        panic!("no key")
    };
    let request = call("shop", "paid@v1", &json!({ "n": 1 }))
        .field("X-API-Key", &key)
        .field("Cookie", "a=b")
        .bearer("some-token");
    made(&shop.ask(&request).await);
    let calls = shop.provider.calls();
    let seen = format!("{:?}", calls[0]);
    for secret in [
        key.as_str(),
        "some-token",
        "a=b",
        "acct_",
        "x-api-key",
        "x-payment",
    ] {
        assert!(!seen.contains(secret), "{seen}");
    }
    let body = json!({ "product_id": "shop", "capability_id": "paid@v1", "input": { "n": 1 } });
    assert_eq!(calls[0].body, body);
    assert_eq!(calls[0].header("content-type"), "application/json");
    Ok(())
}

/// Of two listings with the same ids the older is sold; when it is gone, the other one is.
#[tokio::test]
async fn the_same_ids_are_sold_once() -> Result<()> {
    let shop = Shop::open_at(settings("")).await?;
    let second = agent(&shop.hub, "second").await?;
    let other = Provider::answering(|_| Reply::Json(json!({ "result": "other" }))).await;
    let offer = |price: &str, url: &str| {
        let mut offer = listed("mine", Some(price), &json!({ "url": url }), &json!({}));
        offer.attributes = aip_client::protocol::json::Object::from([
            ("product_id", "shared".into()),
            ("capability_id", "one@v1".into()),
        ]);
        offer
    };
    let first = shop
        .seller
        .publish_listing(&offer("0.02", shop.provider.url()))
        .await?;
    until_sold(&shop.hub, 1).await;
    second.publish_listing(&offer("0.01", other.url())).await?;
    sell(
        &shop.hub,
        &second,
        &[listed(
            "canary@v1",
            None,
            &json!({ "url": other.url() }),
            &json!({}),
        )],
    )
    .await?;
    let key = shop.key("1").await?;
    let request = || key.on(call("shared", "one@v1", &json!({})));
    assert_eq!(made(&shop.ask(&request()).await)["price_usd"], 0.02);
    shop.seller.delete_listing(&first.id).await?;
    crate::faults::until("the other one is sold", || async {
        let answer = shop.ask(&request()).await;
        answer.status == 200 && answer.json()["price_usd"] == 0.01
    })
    .await;
    assert_eq!(made(&shop.ask(&request()).await)["result"], "other");
    Ok(())
}
