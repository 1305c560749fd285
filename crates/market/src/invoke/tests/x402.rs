//! Calls that are paid on a chain, with a facilitator that does as it is told.

mod chain;
mod lost;
mod refused;

use std::sync::Arc;

use aip_protocol::market::x402::{REQUIRED_HEADER, RESPONSE_HEADER, SIGNATURE_HEADER, to_header};
use serde_json::json;
use tokio::sync::Semaphore;

use self::chain::{Bank, Says, header_json, payable, shows};
use super::desk::{Does, ask, nothing, once, tier, usd};
use crate::invoke::{Followed, JobShown};
use crate::money::Usd;
use crate::provider::ProviderError;
use crate::store::Earnings as _;

const KEY: &str = "order-0001";

#[tokio::test]
async fn what_is_to_be_paid_is_told_with_the_402() {
    let bank = Bank::new();
    let refusal = bank.refusal(nothing(), ask(json!({}))).await;
    assert_eq!(refusal.code.as_str(), "payment_required");
    let body = refusal.body();
    let accepts = json!([bank.asked().to_json()]);
    assert_eq!((&body["x402Version"], &body["accepts"]), (&json!(2), &accepts));
    assert_eq!(body["accepts"][0]["amount"], "10000");
    assert_eq!(body["resource"]["url"], "https://hub.example/ai-market/v2/invoke");
    let ways = body["payment_ways"].as_array().unwrap();
    assert_eq!((ways.len(), &ways[2]["rail"]), (3, &json!("seller_direct")));
    let (name, header) = &refusal.headers[0];
    assert_eq!(*name, REQUIRED_HEADER);
    assert_eq!(header_json(header)["accepts"], accepts);
}

#[tokio::test]
async fn a_call_is_paid_past_the_hub() {
    let bank = Bank::new();
    let (invoked, body) = bank.invoke(bank.pays(1, 1), ask(json!({ "a": 1.0 }))).await;
    assert_eq!((invoked.status, &body["result"]), (200, &json!({ "a": 1.0 })));
    assert_eq!(
        (&body["price_usd"], &body["payment"]["success"]),
        (&json!(0.01), &json!(true))
    );
    assert!(bank.desk.is_receipt(&body["receipt"], "0.01"));
    let (name, header) = &invoked.headers[0];
    assert_eq!(*name, RESPONSE_HEADER);
    assert_eq!(header_json(header), body["payment"]);
    assert_eq!(bank.moved(1), 10_000);
    let earned = bank.desk.store.earned(&super::desk::seller()).await.unwrap();
    assert_eq!(
        (earned.paid_directly, earned.earned, earned.calls),
        (usd("0.01"), Usd::ZERO, 1)
    );
    let totals = bank.desk.totals().await;
    assert_eq!(
        (totals.paid_directly, totals.fees, totals.held),
        (usd("0.01"), Usd::ZERO, Usd::ZERO)
    );
    let nonce = body["receipt"]["nonce"].as_str().unwrap();
    assert!(
        crate::store::Invocations::receipt(&*bank.desk.store, nonce)
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn pitfall_24_a_payment_pays_one_call() {
    let bank = Bank::new();
    let (first, _) = bank.invoke(bank.pays(1, 1), ask(json!({}))).await;
    assert_eq!(first.status, 200);
    let refusal = bank.refusal(bank.pays(1, 1), ask(json!({}))).await;
    assert_eq!(refusal.code.as_str(), "payment_invalid");
    assert_eq!(refusal.body()["reason"], "payment_used");
    let (second, _) = bank.invoke(bank.pays(1, 2), ask(json!({}))).await;
    assert_eq!(
        (second.status, bank.desk.calls(), bank.moved(1)),
        (200, 2, 20_000)
    );
}

#[tokio::test]
async fn the_same_call_again_is_answered_and_not_paid() {
    let bank = Bank::new();
    let (_, first) = bank.invoke(once(KEY, bank.pays(1, 1)), ask(json!({}))).await;
    // With the same payment, and with another one of the same wallet, which is not needed.
    for nonce in [1, 2] {
        let (again, body) = bank.invoke(once(KEY, bank.pays(1, nonce)), ask(json!({}))).await;
        assert_eq!((again.replayed, &body), (true, &first));
    }
    // Another wallet's key is another key.
    let (other, _) = bank.invoke(once(KEY, bank.pays(2, 1)), ask(json!({}))).await;
    assert_eq!(
        (other.replayed, bank.desk.calls(), bank.moved(1)),
        (false, 2, 10_000)
    );
}

#[tokio::test]
async fn pitfall_21_no_result_no_payment_and_the_payment_is_given_back() {
    let bank = Bank::new();
    bank.desk
        .does(Does::Fail(ProviderError::Refused("no".to_owned())));
    let (failed, _) = bank.invoke(bank.pays(1, 1), ask(json!({}))).await;
    bank.desk.does(Does::Panic);
    let (broken, _) = bank.invoke(bank.pays(1, 1), ask(json!({}))).await;
    assert_eq!((failed.status, broken.status, bank.moved(1)), (502, 502, 0));
    bank.desk.does(Does::Echo);
    let (paid, _) = bank.invoke(bank.pays(1, 1), ask(json!({}))).await;
    assert_eq!((paid.status, bank.moved(1)), (200, 10_000));
}

#[tokio::test]
async fn pitfall_31_a_refused_input_costs_no_payment() {
    let bank = Bank::new();
    bank.desk.sell(|offer| {
        payable(offer);
        offer.input_schema = Some(super::desk::schema(json!({ "required": ["town"] })));
    });
    let refusal = bank.refusal(bank.pays(1, 1), ask(json!({}))).await;
    assert_eq!(refusal.code.as_str(), "incomplete_input");
    let (paid, _) = bank.invoke(bank.pays(1, 1), ask(json!({ "town": "Köln" }))).await;
    assert_eq!((paid.status, bank.moved(1)), (200, 10_000));
}

#[tokio::test]
async fn what_is_free_is_not_paid() {
    let bank = Bank::new();
    bank.desk.sell(|offer| {
        payable(offer);
        offer.price = Usd::ZERO;
    });
    let (free, _) = bank.invoke(bank.pays(1, 1), ask(json!({}))).await;
    assert_eq!((free.status, bank.moved(1)), (200, 0));
    // The free tier is for who does not pay.
    bank.desk.sell(|offer| {
        payable(offer);
        offer.free_tier = Some(tier("T", 5.0));
    });
    let (paid, _) = bank.invoke(bank.pays(1, 1), ask(json!({ "T": 1 }))).await;
    assert_eq!((paid.status, bank.moved(1)), (200, 10_000));
}

/// Pitfall 19, on a chain.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_with_one_payment_are_one_call() {
    let bank = Arc::new(Bank::new());
    let calls = (0..20).map(|_| {
        let bank = Arc::clone(&bank);
        tokio::spawn(async move {
            let call = super::desk::call(bank.pays(1, 1), &ask(json!({})));
            bank.desk.market.invoke(call).await.answer.is_ok()
        })
    });
    let mut made = 0;
    for call in calls.collect::<Vec<_>>() {
        made += usize::from(call.await.unwrap());
    }
    assert_eq!((made, bank.desk.calls(), bank.moved(1)), (1, 1, 10_000));
}

#[tokio::test]
async fn another_spelling_of_a_payment_is_the_same_payment() {
    let bank = Bank::new();
    bank.invoke(bank.pays(1, 1), ask(json!({}))).await;
    let mut payment = bank.payment(1, 1, |_| {}).json;
    for name in ["from", "to", "nonce"] {
        let order = &mut payment["payload"]["authorization"][name];
        *order = json!(order.as_str().unwrap().to_lowercase());
    }
    payment["resource"] = json!({ "url": "https://elsewhere.example" });
    let headers = shows(SIGNATURE_HEADER, &to_header(&payment));
    let refusal = bank.refusal(headers, ask(json!({}))).await;
    assert_eq!(refusal.body()["reason"], "payment_used");
}

/// Cancelled while the provider works, its payment pays another call; refused, it is no job at all.
#[tokio::test]
async fn a_cancelled_job_gives_its_payment_back() {
    let bank = Bank::new();
    bank.desk.does(Does::Wait(Arc::new(Semaphore::new(0))));
    let call = || super::desk::call(bank.pays(1, 1), &ask(json!({})));
    bank.chain.verify.lock().unwrap().push_back(Says::Invalid);
    let refused = bank.desk.market.invoke_followed(call()).await.answer.unwrap_err();
    assert_eq!(refused.into_refusal().code.as_str(), "payment_invalid");
    let begun = bank.desk.market.invoke_followed(call()).await.answer.unwrap();
    let Followed::Job(mut handle) = begun else {
        panic!("no job: {begun:?}");
    };
    while bank.desk.calls() == 0 {
        tokio::task::yield_now().await;
    }
    let shown = JobShown {
        secret: Some(handle.secret.expose().to_owned()),
        ..JobShown::default()
    };
    let id = handle.job.id.to_string();
    let job = bank.desk.market.cancel_job(&id, &shown).await.unwrap();
    assert_eq!(
        (job.status(), handle.end().await.unwrap().status),
        ("cancelled", 409)
    );
    bank.desk.does(Does::Echo);
    let (paid, _) = bank.invoke(bank.pays(1, 1), ask(json!({}))).await;
    assert_eq!((paid.status, bank.moved(1)), (200, 10_000));
}
