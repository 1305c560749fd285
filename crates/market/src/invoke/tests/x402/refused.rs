//! Payments that pay nothing.

use std::time::Duration;

use aip_protocol::market::evm::Word;
use aip_protocol::market::x402::{REQUIRED_HEADER, RESPONSE_HEADER, SIGNATURE_HEADER, to_header};
use serde_json::json;

use super::KEY;
use super::chain::{Bank, Says, header_json, payable, shows};
use crate::facilitator::Settled;
use crate::invoke::tests::desk::{Desk, ask, nothing, once};
use crate::money::Usd;
use crate::testsuite::facilitators::{NOW_SECS, wallet};

#[tokio::test]
async fn without_a_chain_no_payment_is_taken() {
    let (desk, bank) = (Desk::new(), Bank::new());
    let (status, body) = desk.invoke(bank.pays(1, 1), ask(json!({}))).await;
    assert_eq!((status, &body["error"]), (402, &json!("payment_invalid")));
    let (_, body) = desk.invoke(nothing(), ask(json!({}))).await;
    assert_eq!(body.get("accepts"), None);
}

/// Nobody is paid in its place, least of all the operator.
#[tokio::test]
async fn pitfall_42_a_listing_without_an_address_is_not_sold_on_a_chain() {
    let bank = Bank::new();
    bank.desk.sell(|_| {});
    let refusal = bank.refusal(bank.pays(1, 1), ask(json!({}))).await;
    assert_eq!(
        (refusal.code.as_str(), refusal.code.status()),
        ("listing_not_sellable", 402)
    );
    let unpaid = bank.refusal(nothing(), ask(json!({}))).await;
    for refusal in [refusal, unpaid] {
        assert!(refusal.headers.is_empty());
        assert_eq!(refusal.body().get("accepts"), None);
        assert_eq!(refusal.body()["payment_ways"].as_array().unwrap().len(), 2);
    }
    assert_eq!((bank.desk.calls(), bank.moved(1)), (0, 0));
}

#[tokio::test]
async fn what_is_no_payment_is_refused_before_anything() {
    let bank = Bank::new();
    let payment = || bank.payment(1, 1, |_| {}).json;
    let mut stranger = payment();
    stranger["payload"]["authorization"]["from"] = json!(wallet(2).address().to_string());
    let mut dearer = payment();
    dearer["payload"]["authorization"]["value"] = json!("1");
    let mut older = payment();
    older["x402Version"] = json!(1);
    for (header, reason) in [
        ("%%%".to_owned(), "invalid_payload"),
        (to_header(&json!({ "x402Version": 2 })), "invalid_payload"),
        (to_header(&older), "invalid_x402_version"),
        (to_header(&stranger), "invalid_exact_evm_payload_signature"),
        (to_header(&dearer), "invalid_exact_evm_payload_signature"),
    ] {
        let refusal = bank
            .refusal(shows(SIGNATURE_HEADER, &header), ask(json!({})))
            .await;
        assert_eq!(refusal.code.as_str(), "payment_invalid");
        assert_eq!(refusal.body()["reason"], reason);
    }
    let older = bank
        .refusal(shows("x-payment", "0xdeadbeef"), ask(json!({})))
        .await;
    assert_eq!(older.code.as_str(), "payment_invalid");
    assert_eq!((bank.desk.calls(), bank.moved(1)), (0, 0));
}

#[tokio::test]
async fn a_payment_of_something_else_is_refused_with_the_terms() {
    let bank = Bank::new();
    let secs = |secs: u64| Word::from(NOW_SECS + secs);
    let payments = [
        (
            bank.payment(1, 1, |order| order.value = Word::from(9_999_u64)),
            "value",
        ),
        (
            bank.payment(1, 1, |order| order.value = Word::from(10_001_u64)),
            "value",
        ),
        (
            bank.payment(1, 1, |order| order.to = wallet(1).address()),
            "recipient_mismatch",
        ),
        (
            bank.payment(1, 1, |order| order.valid_after = secs(1)),
            "valid_after",
        ),
        // The work may take a minute, and the payment half of one.
        (
            bank.payment(1, 1, |order| order.valid_before = secs(85)),
            "valid_before",
        ),
        (
            bank.payment(1, 1, |order| order.valid_before = secs(86_401)),
            "valid_before",
        ),
    ];
    for (payment, fault) in payments {
        let headers = shows(SIGNATURE_HEADER, &to_header(&payment.json));
        let refusal = bank.refusal(headers, ask(json!({}))).await;
        assert_eq!(refusal.code.as_str(), "payment_invalid");
        let body = refusal.body();
        assert!(
            body["reason"].as_str().unwrap().ends_with(fault),
            "{fault}: {body}"
        );
        assert_eq!(body["accepts"][0]["amount"], "10000");
        assert_eq!(refusal.headers[0].0, REQUIRED_HEADER);
    }
    assert_eq!(bank.desk.calls(), 0);
}

/// Between the terms and the payment: the terms are told anew.
#[tokio::test]
async fn pitfall_34_a_price_that_was_raised_is_not_taken() {
    let bank = Bank::new();
    let headers = bank.pays(1, 1);
    bank.desk.sell(|offer| {
        payable(offer);
        offer.price = Usd::from_micros(20_000).unwrap();
    });
    let refusal = bank.refusal(headers.clone(), ask(json!({}))).await;
    assert_eq!(refusal.body()["reason"], "invalid_payment_requirements");
    assert_eq!(refusal.body()["accepts"][0]["amount"], "20000");
    let mut capped = ask(json!({}));
    capped["max_price_usd"] = json!(0.01);
    let refusal = bank.refusal(headers, capped).await;
    assert_eq!(refusal.code.as_str(), "price_limit_exceeded");
}

/// And the call leaves nothing behind, not even its key.
#[tokio::test]
async fn a_payment_that_the_facilitator_refuses_is_given_back() {
    let bank = Bank::new();
    bank.chain
        .verify
        .lock()
        .unwrap()
        .extend([Says::Invalid, Says::Nothing]);
    let refusal = bank.refusal(once(KEY, bank.pays(1, 1)), ask(json!({}))).await;
    assert_eq!(refusal.code.as_str(), "payment_invalid");
    assert_eq!(refusal.body()["reason"], "insufficient_funds");
    assert_eq!(refusal.headers[0].0, REQUIRED_HEADER);
    let refusal = bank.refusal(once(KEY, bank.pays(1, 1)), ask(json!({}))).await;
    assert_eq!(
        (refusal.code.as_str(), refusal.retry_after_secs),
        ("unavailable", Some(1))
    );
    assert_eq!(bank.desk.calls(), 0);
    let (paid, _) = bank.invoke(once(KEY, bank.pays(1, 1)), ask(json!({}))).await;
    assert_eq!((paid.status, bank.desk.calls(), bank.moved(1)), (200, 1, 10_000));
}

/// Who has spent its money meanwhile gets no result.
#[tokio::test]
async fn a_payment_that_is_refused_after_the_work_is_told() {
    let bank = Bank::new();
    let refused = Settled::Refused("insufficient_funds".to_owned());
    bank.chain.settle.lock().unwrap().push_back(Says::This(refused));
    let (invoked, body) = bank
        .invoke(once(KEY, bank.pays(1, 1)), ask(json!({ "a": 1 })))
        .await;
    assert_eq!((invoked.status, &body["error"]), (402, &json!("payment_failed")));
    assert_eq!(
        (body.get("result"), &body["reason"]),
        (None, &json!("insufficient_funds"))
    );
    let response = invoked
        .headers
        .iter()
        .find(|(name, _)| *name == RESPONSE_HEADER)
        .unwrap();
    assert_eq!(header_json(&response.1)["success"], false);
    assert_eq!(bank.desk.totals().await.paid_directly, Usd::ZERO);
    let (paid, _) = bank
        .invoke(once(KEY, bank.pays(1, 1)), ask(json!({ "a": 1 })))
        .await;
    assert_eq!((paid.status, bank.desk.calls(), bank.moved(1)), (200, 2, 10_000));
}

/// Who cancelled its order meanwhile, or spent it elsewhere, gets no result: no attempt of this hub can have used the nonce.
#[tokio::test]
async fn an_order_that_is_used_before_the_first_attempt_pays_nothing() {
    let bank = Bank::new();
    let used = Settled::Refused("invalid_exact_evm_nonce_already_used".to_owned());
    bank.chain.settle.lock().unwrap().push_back(Says::This(used));
    let (invoked, body) = bank.invoke(bank.pays(1, 1), ask(json!({ "a": 1 }))).await;
    assert_eq!((invoked.status, &body["error"]), (402, &json!("payment_failed")));
    assert_eq!(
        (body.get("result"), &body["reason"]),
        (None, &json!("invalid_exact_evm_nonce_already_used"))
    );
    assert_eq!(
        (bank.moved(1), bank.desk.totals().await.paid_directly),
        (0, Usd::ZERO)
    );
}

/// A payment must not be over while the provider works.
#[tokio::test]
async fn a_slow_provider_asks_for_longer_payments() {
    let bank = Bank::new();
    bank.desk.sell(|offer| {
        payable(offer);
        offer.timeout = Some(Duration::from_mins(5));
    });
    let short = bank.payment(1, 1, |order| order.valid_before = Word::from(NOW_SECS + 300));
    let headers = shows(SIGNATURE_HEADER, &to_header(&short.json));
    let refusal = bank.refusal(headers, ask(json!({}))).await;
    assert!(
        refusal.body()["reason"]
            .as_str()
            .unwrap()
            .ends_with("valid_before")
    );
    assert_eq!(refusal.body()["accepts"][0]["maxTimeoutSeconds"], 385);
}
