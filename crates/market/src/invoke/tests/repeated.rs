//! The same call again.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::desk::{Desk, Does, answer, ask, by_channel, by_key, call, nothing, once, usd};
use crate::money::Usd;
use crate::provider::ProviderError;

const KEY: &str = "order-0001";

#[tokio::test]
async fn a_repetition_is_answered_and_not_made() {
    let desk = Desk::new();
    let key = desk.account("0.01", None).await;
    let (_, first, replayed) = desk
        .invoke_on(&desk.market, once(KEY, by_key(&key)), ask(json!({ "a": 1 })))
        .await;
    assert!(!replayed);
    // The money is gone, the price is up, the listing has another name for its input: it was answered all the same.
    desk.sell(|offer| offer.price = usd("7"));
    let (status, again, replayed) = desk
        .invoke_on(&desk.market, once(KEY, by_key(&key)), ask(json!({ "a": 1 })))
        .await;
    assert_eq!((status, replayed, desk.calls()), (200, true, 1));
    assert_eq!(first, again);
    desk.sell(|offer| "other".clone_into(&mut offer.product_id));
    assert_eq!(
        desk.invoke(once(KEY, by_key(&key)), ask(json!({ "a": 1 })))
            .await
            .1,
        first
    );
    assert_eq!(desk.totals().await.earned, usd("0.01"));
}

#[tokio::test]
async fn the_same_call_is_what_says_the_same() {
    let desk = Desk::new();
    let key = desk.account("1", None).await;
    let headers = || once(KEY, by_key(&key));
    let spelled = |text: &str| {
        let mut call = call(headers(), &Value::Null);
        call.body = text.to_owned().into();
        call
    };
    let first = spelled(r#"{"product_id":"prod","capability_id":"echo@v1","input":{"a":1,"b":"é"}}"#);
    let other = spelled(
        r#"{ "input": {"b":"\u00e9", "a":1}, "source_hub":"local", "purpose":"x", "capability_id":"echo@v1", "product_id":"prod" }"#,
    );
    let first = answer(&desk.market, first).await;
    let again = answer(&desk.market, other).await;
    assert_eq!((first.1, true), (again.1, again.2));
    for changed in [
        ask(json!({ "a": 2, "b": "é" })),
        json!({ "product_id": "prod", "capability_id": "echo@v2", "input": { "a": 1, "b": "é" } }),
        json!({ "product_id": "prod", "capability_id": "echo@v1", "input": { "a": 1, "b": "é" }, "max_price_usd": 1 }),
    ] {
        let (status, body) = desk.invoke(headers(), changed).await;
        assert_eq!((status, &body["error"]), (409, &json!("idempotency_conflict")));
    }
    assert_eq!((desk.calls(), desk.balance(&key).await), (1, usd("0.99")));
}

#[tokio::test]
async fn a_key_is_its_purses_own() {
    let desk = Desk::new();
    let (one, two) = (desk.account("1", None).await, desk.account("1", None).await);
    let channel = desk.channel("1").await;
    for headers in [by_key(&one), by_key(&two), by_channel(&channel)] {
        let (status, _, replayed) = desk
            .invoke_on(&desk.market, once(KEY, headers), ask(json!({})))
            .await;
        assert_eq!((status, replayed), (200, false));
    }
    desk.sell(|offer| offer.price = Usd::ZERO);
    let mut elsewhere = call(once(KEY, nothing()), &ask(json!({})));
    elsewhere.network = "198.51.100.1".to_owned();
    assert!(
        !answer(&desk.market, call(once(KEY, nothing()), &ask(json!({}))))
            .await
            .2
    );
    assert!(!answer(&desk.market, elsewhere).await.2);
    assert!(
        answer(&desk.market, call(once(KEY, nothing()), &ask(json!({}))))
            .await
            .2
    );
    assert_eq!(desk.calls(), 5);
}

#[tokio::test]
async fn one_that_is_under_way_is_not_made_twice() {
    let desk = Arc::new(Desk::new());
    let key = desk.account("1", None).await;
    let gate = Arc::new(Semaphore::new(0));
    desk.does(Does::Wait(Arc::clone(&gate)));
    let first = tokio::spawn({
        let (desk, key) = (Arc::clone(&desk), key.clone());
        async move { desk.invoke(once(KEY, by_key(&key)), ask(json!({}))).await }
    });
    while desk.calls() == 0 {
        tokio::task::yield_now().await;
    }
    let report = desk
        .market
        .invoke(call(once(KEY, by_key(&key)), &ask(json!({}))))
        .await;
    let refusal = report.answer.expect_err("it is under way").into_refusal();
    assert_eq!(
        (refusal.code.as_str(), refusal.retry_after_secs),
        ("idempotency_in_progress", Some(1))
    );
    gate.add_permits(1);
    let (status, body) = first.await.unwrap();
    assert_eq!(status, 200);
    assert_eq!(desk.invoke(once(KEY, by_key(&key)), ask(json!({}))).await.1, body);
    assert_eq!((desk.calls(), desk.balance(&key).await), (1, usd("0.99")));
}

#[tokio::test]
async fn a_failure_is_answered_again_and_a_refusal_is_not_kept() {
    let desk = Desk::new();
    let key = desk.account("1", None).await;
    desk.does(Does::Fail(ProviderError::TimedOut));
    let first = desk.invoke(once(KEY, by_key(&key)), ask(json!({}))).await;
    desk.does(Does::Echo);
    let (status, again, replayed) = desk
        .invoke_on(&desk.market, once(KEY, by_key(&key)), ask(json!({})))
        .await;
    assert_eq!((status, replayed), (502, true));
    assert_eq!(again, first.1);
    assert_eq!(
        desk.invoke(once("order-0002", by_key(&key)), ask(json!({})))
            .await
            .0,
        200
    );

    let poor = desk.account("0", None).await;
    assert_eq!(desk.invoke(once(KEY, by_key(&poor)), ask(json!({}))).await.0, 402);
    desk.sell(|offer| offer.price = Usd::ZERO);
    assert_eq!(desk.invoke(once(KEY, by_key(&poor)), ask(json!({}))).await.0, 200);
}

#[tokio::test]
async fn keys_are_forgotten_after_a_day() {
    let desk = Desk::new();
    let key = desk.account("1", None).await;
    desk.invoke(once(KEY, by_key(&key)), ask(json!({}))).await;
    desk.clock.advance(Duration::from_hours(23));
    assert_eq!(desk.market.sweep().await.unwrap().forgotten, 0);
    desk.clock.advance(Duration::from_hours(2));
    assert_eq!(desk.market.sweep().await.unwrap().forgotten, 1);
    let (status, _, replayed) = desk
        .invoke_on(&desk.market, once(KEY, by_key(&key)), ask(json!({})))
        .await;
    assert_eq!((status, replayed, desk.calls()), (200, false, 2));
}
