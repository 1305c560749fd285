//! Answers of facilitators that are lost, and processes that are.

use std::sync::atomic::Ordering;
use std::time::Duration;

use aip_protocol::clock::Clock as _;
use serde_json::{Value, json};

use super::KEY;
use super::chain::{Bank, Says};
use crate::facilitator::Settled;
use crate::invoke::tests::desk::{Does, ask, config, once, usd};
use crate::market::MarketConfig;
use crate::money::Usd;
use uuid::Uuid;

fn says(bank: &Bank, says: impl IntoIterator<Item = Says>) {
    bank.chain.settle.lock().unwrap().extend(says);
}

async fn again(bank: &Bank) -> (bool, Value) {
    let (invoked, body) = bank.invoke(once(KEY, bank.pays(1, 1)), ask(json!({}))).await;
    (invoked.replayed, body)
}

#[tokio::test(start_paused = true)]
async fn a_facilitator_that_is_silent_is_asked_again() {
    let bank = Bank::new();
    says(&bank, [Says::Nothing, Says::NothingOfIt]);
    let (invoked, body) = bank.invoke(bank.pays(1, 1), ask(json!({}))).await;
    assert_eq!((invoked.status, body.get("settled")), (200, None));
    assert!(bank.desk.is_receipt(&body["receipt"], "0.01"));
    assert_eq!(
        (bank.moved(1), bank.desk.totals().await.paid_directly),
        (10_000, usd("0.01"))
    );
}

/// The buyer has its result at once, and its receipt when somebody says that it paid.
#[tokio::test(start_paused = true)]
async fn a_payment_of_which_nobody_says_anything_is_asked_about_later() {
    let bank = Bank::new();
    says(&bank, [Says::NothingOfIt, Says::Nothing, Says::Nothing]);
    let (invoked, body) = bank.invoke(once(KEY, bank.pays(1, 1)), ask(json!({}))).await;
    assert_eq!(
        (invoked.status, &body["settled"], &body["receipt"]),
        (200, &json!(false), &Value::Null)
    );
    assert_eq!(
        (&body["payment"]["status"], &body["result"]),
        (&json!("settling"), &json!({}))
    );
    let refusal = bank.refusal(once(KEY, bank.pays(1, 1)), ask(json!({}))).await;
    assert_eq!(refusal.code.as_str(), "idempotency_in_progress");
    assert_eq!(
        bank.desk.market.resume_payments(None).await.unwrap(),
        0,
        "it has time yet"
    );
    bank.desk.clock.advance(Duration::from_mins(10));
    says(&bank, [Says::Nothing, Says::Nothing, Says::Nothing]);
    assert_eq!(bank.desk.market.resume_payments(None).await.unwrap(), 0);
    bank.desk.clock.advance(Duration::from_mins(10));
    assert_eq!(bank.desk.market.resume_payments(None).await.unwrap(), 1);
    let (replayed, body) = again(&bank).await;
    assert!(replayed && bank.desk.is_receipt(&body["receipt"], "0.01"));
    assert_eq!(body["payment"]["success"], true);
    assert_eq!((bank.desk.calls(), bank.moved(1)), (1, 10_000));
    assert_eq!(bank.desk.totals().await.paid_directly, usd("0.01"));
}

/// Nobody charges twice, and nobody says that it did not happen.
#[tokio::test(start_paused = true)]
async fn a_refusal_after_silence_is_unclear() {
    let bank = Bank::new();
    says(
        &bank,
        [
            Says::NothingOfIt,
            Says::This(Settled::Refused("insufficient_funds".to_owned())),
        ],
    );
    let (_, first) = bank
        .invoke(once(KEY, bank.pays(1, 1)), ask(json!({ "a": 1 })))
        .await;
    assert_eq!(
        (&first["result"], &first["settled"]),
        (&json!({ "a": 1 }), &json!(false))
    );
    assert_eq!(
        (&first["payment"]["status"], &first["receipt"]),
        (&json!("unclear"), &Value::Null)
    );
    let (invoked, body) = bank
        .invoke(once(KEY, bank.pays(1, 1)), ask(json!({ "a": 1 })))
        .await;
    assert_eq!((invoked.replayed, body), (true, first));
    let refusal = bank.refusal(bank.pays(1, 1), ask(json!({}))).await;
    assert_eq!(refusal.body()["reason"], "payment_used");
    assert_eq!(bank.desk.totals().await.paid_directly, Usd::ZERO);
}

/// Between the payment and the end of the call: the payment is asked about at the next start, and the call ends as it should.
#[tokio::test(start_paused = true)]
async fn a_crash_after_the_payment_loses_nothing() {
    let bank = Bank::new();
    bank.desk.store.finish_fails.store(4, Ordering::SeqCst);
    let (invoked, body) = bank.invoke(once(KEY, bank.pays(1, 1)), ask(json!({}))).await;
    assert_eq!((invoked.status, &body["settled"]), (200, &json!(false)));
    assert_eq!(bank.moved(1), 10_000);
    let next = bank.desk.another(config(), 9);
    assert_eq!(
        next.recover().await.unwrap(),
        0,
        "what is being paid is not given up"
    );
    next.drained().await;
    let (invoked, body) = bank
        .invoke_on(&next, once(KEY, bank.pays(1, 1)), ask(json!({})))
        .await;
    assert!(invoked.replayed && bank.desk.is_receipt(&body["receipt"], "0.01"));
    assert_eq!((bank.desk.calls(), bank.moved(1)), (1, 10_000));
    assert_eq!(bank.desk.totals().await.paid_directly, usd("0.01"));
}

/// Before the payment: it is given back with the call.
#[tokio::test(start_paused = true)]
async fn a_crash_before_the_payment_costs_nothing() {
    let bank = std::sync::Arc::new(Bank::new());
    bank.desk.does(Does::Hang);
    let lost = std::sync::Arc::clone(&bank);
    tokio::spawn(async move { lost.invoke(once(KEY, lost.pays(1, 1)), ask(json!({}))).await });
    while bank.desk.calls() == 0 {
        tokio::task::yield_now().await;
    }
    let next = bank.desk.another(config(), 9);
    assert_eq!(next.recover().await.unwrap(), 1);
    bank.desk.does(Does::Echo);
    let (invoked, _) = bank
        .invoke_on(&next, once(KEY, bank.pays(1, 1)), ask(json!({})))
        .await;
    assert_eq!(
        (invoked.status, invoked.replayed, bank.moved(1)),
        (200, false, 10_000)
    );
}

/// What a process makes itself it does not take up, though it has the name of the one before it.
#[tokio::test(start_paused = true)]
async fn what_is_being_paid_here_is_not_taken_up() {
    let bank = std::sync::Arc::new(Bank::new());
    says(&bank, [Says::Nothing]);
    let paying = std::sync::Arc::clone(&bank);
    let call = tokio::spawn(async move { paying.invoke(paying.pays(1, 1), ask(json!({}))).await });
    while !bank.chain.settle.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let holder = config().holder;
    assert_eq!(bank.desk.market.resume_payments(Some(holder)).await.unwrap(), 0);
    assert_eq!(bank.moved(1), 0, "nobody asks beside it");
    let (invoked, body) = call.await.unwrap();
    assert_eq!((invoked.status, body.get("settled")), (200, None));
    assert_eq!(bank.moved(1), 10_000);
}

/// The processes of a cluster take up what one of them left, after its time.
#[tokio::test(start_paused = true)]
async fn another_process_takes_up_what_was_being_paid() {
    let bank = Bank::new();
    says(&bank, [Says::NothingOfIt, Says::Nothing, Says::Nothing]);
    bank.invoke(once(KEY, bank.pays(1, 1)), ask(json!({}))).await;
    let holder = Uuid::from_u128(8);
    let other = bank.desk.another(MarketConfig { holder, ..config() }, 9);
    assert_eq!(other.resume_payments(Some(holder)).await.unwrap(), 0);
    assert_eq!(other.resume_payments(None).await.unwrap(), 0);
    bank.desk.clock.advance(Duration::from_mins(3));
    assert_eq!(other.resume_payments(None).await.unwrap(), 1);
    assert_eq!((again(&bank).await.0, bank.moved(1)), (true, 10_000));
}

/// After a day of silence the operator has to look.
#[tokio::test(start_paused = true)]
async fn nobody_asks_for_ever() {
    let bank = Bank::new();
    let silence = || std::iter::repeat_n(Says::Nothing, 3);
    says(&bank, silence());
    bank.invoke(once(KEY, bank.pays(1, 1)), ask(json!({}))).await;
    let start = bank.desk.clock.now();
    for hours in [1, 23, 2] {
        bank.desk.clock.advance(Duration::from_hours(hours));
        says(&bank, silence());
        let is_over = bank.desk.clock.now() > start + Duration::from_hours(24);
        let ended = bank.desk.market.resume_payments(None).await.unwrap();
        assert_eq!(ended, u64::from(is_over));
    }
    assert_eq!(again(&bank).await.1["payment"]["status"], "unclear");
}
