//! What becomes of a call that does not come to its end by itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aip_protocol::name::Did;
use serde_json::json;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::desk::{Desk, Does, answer, ask, by_key, call, config, once, usd};
use crate::limits::{SWEEP_ROWS, UNDER_WAY_MAX, UNDER_WAY_PER_AGENT_MAX};
use crate::market::MarketConfig;
use crate::money::Usd;

const KEY: &str = "order-0001";

#[tokio::test(start_paused = true)]
async fn a_provider_has_its_time_and_no_more() {
    let desk = Desk::new();
    let key = desk.account("1", None).await;
    desk.does(Does::Hang);
    desk.sell(|offer| offer.timeout = Some(Duration::from_secs(5)));
    let start = tokio::time::Instant::now();
    let (status, body) = desk.invoke(by_key(&key), ask(json!({}))).await;
    assert_eq!((status, &body["reason"]), (502, &json!("timed_out")));
    assert_eq!(start.elapsed().as_secs(), 5);
    desk.sell(|_offer| {});
    desk.invoke(by_key(&key), ask(json!({}))).await;
    assert_eq!(start.elapsed().as_secs(), 65);
    assert_eq!(
        (desk.balance(&key).await, desk.totals().await.held),
        (usd("1"), Usd::ZERO)
    );
}

/// The caller goes away in the middle: the work is done and paid for, and the same request has its answer.
#[tokio::test]
async fn a_call_outlives_its_caller() {
    let desk = Arc::new(Desk::new());
    let key = desk.account("1", None).await;
    let gate = Arc::new(Semaphore::new(0));
    desk.does(Does::Wait(Arc::clone(&gate)));
    let caller = tokio::spawn({
        let (desk, key) = (Arc::clone(&desk), key.clone());
        async move { desk.invoke(once(KEY, by_key(&key)), ask(json!({ "a": 1 }))).await }
    });
    while desk.calls() == 0 {
        tokio::task::yield_now().await;
    }
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    assert_eq!(
        (desk.market.under_way(), desk.totals().await.held),
        (1, usd("0.01"))
    );
    gate.add_permits(1);
    desk.market.drained().await;
    assert_eq!(
        (desk.market.under_way(), desk.totals().await.held),
        (0, Usd::ZERO)
    );
    let (status, body, replayed) = desk
        .invoke_on(&desk.market, once(KEY, by_key(&key)), ask(json!({ "a": 1 })))
        .await;
    assert_eq!((status, replayed, desk.calls()), (200, true, 1));
    assert_eq!(
        (&body["result"], desk.balance(&key).await),
        (&json!({ "a": 1 }), usd("0.99"))
    );
}

/// A call in the middle of which the process is lost: nobody ends it.
async fn lost(desk: &Arc<Desk>, key: &str) {
    desk.does(Does::Hang);
    let (before, desk, key) = (desk.calls(), Arc::clone(desk), key.to_owned());
    let counted = Arc::clone(&desk);
    tokio::spawn(async move { desk.invoke(once(KEY, by_key(&key)), ask(json!({}))).await });
    while counted.calls() == before {
        tokio::task::yield_now().await;
    }
    counted.does(Does::Echo);
}

#[tokio::test]
async fn a_hub_that_starts_again_gives_up_what_it_lost() {
    let desk = Arc::new(Desk::new());
    let key = desk.account("1", None).await;
    lost(&desk, &key).await;
    assert_eq!(desk.totals().await.held, usd("0.01"));

    let again = desk.another(config(), 2);
    assert_eq!(again.recover().await.unwrap(), 1);
    assert_eq!(again.recover().await.unwrap(), 0);
    assert_eq!(
        (desk.totals().await.held, desk.balance(&key).await),
        (Usd::ZERO, usd("1"))
    );
    let (status, _, replayed) = desk
        .invoke_on(&again, once(KEY, by_key(&key)), ask(json!({})))
        .await;
    assert_eq!(
        (status, replayed),
        (200, false),
        "what a crash ended may be asked again"
    );
    assert_eq!(desk.balance(&key).await, usd("0.99"));
}

#[tokio::test]
async fn another_process_gives_it_up_when_its_time_is_over() {
    let desk = Arc::new(Desk::new());
    let key = desk.account("1", None).await;
    lost(&desk, &key).await;
    let other = desk.another(
        MarketConfig {
            holder: Uuid::from_u128(8),
            ..config()
        },
        2,
    );
    assert_eq!(other.recover().await.unwrap(), 0);
    desk.clock.advance(Duration::from_secs(89));
    assert_eq!(other.sweep().await.unwrap().abandoned, 0);
    desk.clock.advance(Duration::from_secs(2));
    assert_eq!(other.sweep().await.unwrap().abandoned, 1);
    assert_eq!(
        (desk.totals().await.held, desk.balance(&key).await),
        (Usd::ZERO, usd("1"))
    );
}

/// Others give a call up at its deadline, which was set before: what beginning took, the provider does not have.
#[tokio::test(start_paused = true)]
async fn what_took_long_to_begin_ends_before_it_is_given_up() {
    let desk = Desk::new();
    let key = desk.account("1", None).await;
    desk.does(Does::Hang);
    for (takes, works, calls) in [(10, 60, 1), (35, 40, 2), (80, 0, 2)] {
        *desk.store.begin_takes.lock().unwrap() = Some((Arc::clone(&desk.clock), Duration::from_secs(takes)));
        let start = tokio::time::Instant::now();
        let (status, _) = desk.invoke(by_key(&key), ask(json!({}))).await;
        assert_eq!(
            (status, start.elapsed().as_secs(), desk.calls()),
            (502, works, calls)
        );
        assert_eq!(
            (desk.balance(&key).await, desk.totals().await.held),
            (usd("1"), Usd::ZERO)
        );
    }
}

/// Everybody who moves money waits for a step, and a step that takes too long is undone.
#[tokio::test]
async fn a_sweep_goes_in_small_steps_to_its_end() {
    let desk = Desk::new();
    let count = u64::from(SWEEP_ROWS) * 2 + 1;
    for _ in 0..count {
        desk.channel("0.01").await;
    }
    desk.clock.advance(Duration::from_hours(25));
    assert_eq!(desk.market.sweep().await.unwrap().expired, count);
    assert_eq!(desk.totals().await.channels, Usd::ZERO);
    assert_eq!(desk.store.sweep_rows.load(Ordering::SeqCst), 50);
}

/// It was given up while its provider worked: the caller has the result, and has not paid.
#[tokio::test]
async fn what_was_given_up_is_not_paid_when_it_ends() {
    let desk = Arc::new(Desk::new());
    let key = desk.account("1", None).await;
    let gate = Arc::new(Semaphore::new(0));
    desk.does(Does::Wait(Arc::clone(&gate)));
    let caller = tokio::spawn({
        let (desk, key) = (Arc::clone(&desk), key.clone());
        async move { desk.invoke(by_key(&key), ask(json!({}))).await }
    });
    while desk.calls() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(desk.market.recover().await.unwrap(), 1);
    gate.add_permits(1);
    let (status, body) = caller.await.unwrap();
    assert_eq!(
        (status, &body["settled"], &body["receipt"]),
        (200, &json!(false), &json!(null))
    );
    assert_eq!(
        (desk.balance(&key).await, desk.totals().await.earned),
        (usd("1"), Usd::ZERO)
    );
}

/// Pitfall 61: the work is done and cannot be written down.
#[tokio::test(start_paused = true)]
async fn pitfall_61_a_result_that_cannot_be_settled_is_delivered_and_not_paid() {
    let desk = Desk::new();
    let key = desk.account("1", None).await;
    desk.store.finish_fails.store(100, Ordering::SeqCst);
    let (status, body) = desk.invoke(by_key(&key), ask(json!({ "a": 1 }))).await;
    assert_eq!((status, &body["result"]), (200, &json!({ "a": 1 })));
    assert_eq!(
        (&body["settled"], &body["receipt"]),
        (&json!(false), &json!(null))
    );
    assert_eq!(desk.totals().await.held, usd("0.01"));
    desk.clock.advance(Duration::from_secs(91));
    assert_eq!(desk.market.sweep().await.unwrap().abandoned, 1);
    assert_eq!(desk.balance(&key).await, usd("1"));
    desk.totals().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_now_and_then_is_asked_again() {
    let desk = Desk::new();
    let key = desk.account("1", None).await;
    for (begin_lost, finish_fails, finish_lost) in [(2, 0, 0), (0, 2, 0), (0, 0, 1), (1, 1, 1)] {
        desk.store.begin_lost.store(begin_lost, Ordering::SeqCst);
        desk.store.finish_fails.store(finish_fails, Ordering::SeqCst);
        desk.store.finish_lost.store(finish_lost, Ordering::SeqCst);
        let (before, calls) = (desk.balance(&key).await, desk.calls());
        let (status, body) = desk.invoke(by_key(&key), ask(json!({}))).await;
        assert_eq!((status, body.get("settled")), (200, None), "{body}");
        assert!(desk.is_receipt(&body["receipt"], "0.01"));
        assert_eq!(desk.balance(&key).await, before.saturating_sub(usd("0.01")));
        assert_eq!((desk.calls(), desk.totals().await.held), (calls + 1, Usd::ZERO));
    }
}

#[tokio::test]
async fn so_many_are_under_way_and_no_more() {
    let desk = Arc::new(Desk::new());
    let gate = Arc::new(Semaphore::new(0));
    desk.does(Does::Wait(Arc::clone(&gate)));
    let mut callers = Vec::new();
    // One provider that does not answer takes its own places only.
    for seller in 0..UNDER_WAY_MAX / UNDER_WAY_PER_AGENT_MAX {
        desk.sell(|offer| {
            offer.price = Usd::ZERO;
            offer.agent = Did::parse(&format!("did:aip:hub.example:seller{seller}")).unwrap();
        });
        for _ in 0..UNDER_WAY_PER_AGENT_MAX {
            let desk = Arc::clone(&desk);
            callers.push(tokio::spawn(async move {
                desk.invoke(super::desk::nothing(), ask(json!({}))).await.0
            }));
        }
        while desk.calls() < callers.len() {
            tokio::task::yield_now().await;
        }
        let (status, body) = desk.invoke(super::desk::nothing(), ask(json!({}))).await;
        assert_eq!((status, &body["error"]), (503, &json!("unavailable")));
    }
    desk.sell(|offer| offer.price = Usd::ZERO);
    let report = desk
        .market
        .invoke(call(super::desk::nothing(), &ask(json!({}))))
        .await;
    let refusal = report.answer.expect_err("it is full").into_refusal();
    assert_eq!(
        (refusal.code.as_str(), refusal.retry_after_secs),
        ("unavailable", Some(1))
    );
    gate.add_permits(UNDER_WAY_MAX);
    for caller in callers {
        assert_eq!(caller.await.unwrap(), 200);
    }
    gate.add_permits(1);
    assert_eq!(
        answer(&desk.market, call(super::desk::nothing(), &ask(json!({}))))
            .await
            .0,
        200
    );
}
