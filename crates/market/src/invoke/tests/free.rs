//! What may be had for nothing.

use serde_json::json;

use super::desk::{
    Desk, Does, answer, ask, by_key, by_visitor, call, config, nothing, once, schema, tier, usd,
};
use crate::invoke::{InvokeCall, InvokeHeaders};
use crate::limits::VISITORS_PER_NETWORK_MAX;
use crate::market::MarketConfig;
use crate::money::Usd;
use crate::provider::ProviderError;

/// Pitfalls 39 and 40: about the input, nested, and never clamped.
#[tokio::test]
async fn a_small_input_is_free_and_a_large_one_is_refused_by_name() {
    let desk = Desk::new();
    desk.sell(|offer| offer.free_tier = Some(tier("puzzle.T", 1_000_000.0)));
    for free in [json!(0), json!(1_000_000), json!(999_999.5)] {
        let (status, body) = desk
            .invoke(nothing(), ask(json!({ "puzzle": { "T": free } })))
            .await;
        assert_eq!(
            (status, &body["price_usd"], &body["list_price_usd"]),
            (200, &json!(0.0), &json!(0.01))
        );
        assert_eq!(body["result"]["puzzle"]["T"], free);
    }
    let (status, body) = desk
        .invoke(nothing(), ask(json!({ "puzzle": { "T": 1_000_001 } })))
        .await;
    assert_eq!(
        (status, &body["error"], &body["ok"]),
        (402, &json!("payment_required"), &json!(false))
    );
    assert_eq!(
        body["free_tier"],
        json!({ "field": "puzzle.T", "requested": 1_000_001, "max": 1_000_000 })
    );
    assert_eq!(body["needed"], json!(0.01));
    for absent in [
        json!({}),
        json!({ "puzzle": { "T": "7" } }),
        json!({ "puzzle": [] }),
        json!({ "puzzle.T": 1 }),
    ] {
        let (status, body) = desk.invoke(nothing(), ask(absent)).await;
        assert_eq!(
            (status, &body["free_tier"]),
            (402, &json!({ "field": "puzzle.T", "max": 1_000_000 }))
        );
    }
    assert_eq!(desk.calls(), 3);
}

#[tokio::test]
async fn whoever_pays_pays_also_for_a_small_input() {
    let desk = Desk::new();
    desk.sell(|offer| offer.free_tier = Some(tier("T", 5.0)));
    let key = desk.account("1", None).await;
    for input in [json!({ "T": 1 }), json!({ "T": 6 })] {
        let (status, body) = desk.invoke(by_key(&key), ask(input)).await;
        assert_eq!((status, &body["price_usd"]), (200, &json!(0.01)));
    }
    assert_eq!(desk.balance(&key).await, usd("0.98"));
}

#[tokio::test]
async fn of_a_free_capability_a_free_tier_says_nothing() {
    let desk = Desk::new();
    desk.sell(|offer| {
        offer.price = Usd::ZERO;
        offer.free_tier = Some(tier("T", 5.0));
    });
    assert_eq!(desk.invoke(nothing(), ask(json!({ "T": 6 }))).await.0, 200);
}

fn with_trials(count: u32) -> Desk {
    Desk::with(MarketConfig {
        trials_per_visitor: count,
        ..config()
    })
}

/// Pitfalls 31 and 40: a trial is for a result; refusals and failures cost none.
#[tokio::test]
async fn a_visitor_has_its_trials_and_no_refusal_costs_one() {
    let desk = with_trials(2);
    desk.sell(|offer| offer.input_schema = Some(schema(json!({ "type": "object", "required": ["q"] }))));
    let visitor = || by_visitor("visitor-1");
    for _ in 0..5 {
        assert_eq!(desk.invoke(visitor(), ask(json!({}))).await.0, 400);
    }
    desk.does(Does::Fail(ProviderError::TimedOut));
    for _ in 0..5 {
        assert_eq!(desk.invoke(visitor(), ask(json!({ "q": 1 }))).await.0, 502);
    }
    desk.does(Does::Echo);
    for _ in 0..2 {
        let (status, body) = desk.invoke(visitor(), ask(json!({ "q": 1 }))).await;
        assert_eq!(
            (status, &body["sandbox"], &body["price_usd"]),
            (200, &json!(true), &json!(0.0))
        );
        assert_eq!(body["receipt"]["sandbox"], json!(true));
        assert!(desk.is_receipt(&body["receipt"], "0"));
    }
    let (status, body) = desk.invoke(visitor(), ask(json!({ "q": 1 }))).await;
    assert_eq!(
        (status, &body["error"], &body["needed"]),
        (429, &json!("trial_quota_exhausted"), &json!(0.01))
    );
    assert_eq!(
        body["sandbox"],
        json!({ "max_trials": 2, "used": 2, "remaining": 0 })
    );
    assert_eq!(
        desk.invoke(by_visitor("visitor-2"), ask(json!({ "q": 1 })))
            .await
            .0,
        200
    );
    desk.sell(|offer| offer.price = Usd::ZERO);
    assert_eq!(
        desk.invoke(visitor(), ask(json!({ "q": 1 }))).await.0,
        200,
        "what is free takes no trial"
    );
}

#[tokio::test]
async fn trials_are_taken_once_for_a_repeated_call() {
    let desk = with_trials(1);
    let visitor = || once("trial-key-1", by_visitor("visitor-1"));
    let (_, first) = desk.invoke(visitor(), ask(json!({}))).await;
    let (status, again, replayed) = desk.invoke_on(&desk.market, visitor(), ask(json!({}))).await;
    assert_eq!((status, replayed), (200, true));
    assert_eq!(first, again);
    assert_eq!(desk.invoke(by_visitor("visitor-1"), ask(json!({}))).await.0, 429);
}

/// What a visitor says of itself costs it nothing to change.
#[tokio::test]
async fn a_network_has_the_trials_of_so_many_visitors() {
    let desk = with_trials(1);
    let mut taken = 0;
    for number in 0..300 {
        let (status, body) = desk
            .invoke(by_visitor(&format!("visitor-{number}")), ask(json!({})))
            .await;
        assert!(
            status == 200 || body["error"] == "trial_quota_exhausted",
            "{body}"
        );
        taken += u8::from(status == 200);
    }
    assert_eq!(taken, VISITORS_PER_NETWORK_MAX);
    let elsewhere = InvokeCall {
        network: "198.51.100.7".to_owned(),
        ..call(by_visitor("visitor-1"), &ask(json!({})))
    };
    assert_eq!(answer(&desk.market, elsewhere).await.0, 200);
}

/// These three fall into one place of their network.
#[tokio::test]
async fn visitors_who_share_trials_do_not_share_answers() {
    let desk = with_trials(2);
    for (visitor, status) in [("visitor-1", 200), ("visitor-3", 200), ("visitor-8", 429)] {
        let headers = once("trial-key-1", by_visitor(visitor));
        let answered = desk.invoke_on(&desk.market, headers, ask(json!({}))).await;
        assert_eq!((answered.0, answered.2), (status, false), "{visitor}");
    }
    assert_eq!(desk.calls(), 2);
}

#[tokio::test]
async fn a_trial_is_no_other_way_to_pay() {
    let desk = with_trials(1);
    let channel = desk.channel("1").await;
    let both = InvokeHeaders {
        visitor: Some("visitor-1".to_owned()),
        ..super::desk::by_channel(&channel)
    };
    let (status, body) = desk.invoke(both, ask(json!({}))).await;
    assert_eq!((status, &body["error"]), (400, &json!("sandbox_conflict")));
    for bad in ["short", "with space", &"v".repeat(65), "visitor;1"] {
        let (status, body) = desk.invoke(by_visitor(bad), ask(json!({}))).await;
        assert_eq!(
            (status, &body["error"]),
            (400, &json!("visitor_invalid")),
            "{bad}"
        );
    }
    let key = desk.account("1", None).await;
    let paying = InvokeHeaders {
        visitor: Some("x".to_owned()),
        ..by_key(&key)
    };
    let (status, body) = desk.invoke(paying, ask(json!({}))).await;
    assert_eq!((status, &body["price_usd"]), (200, &json!(0.01)), "the key pays");

    let without = Desk::new();
    assert_eq!(
        without.invoke(by_visitor("visitor-1"), ask(json!({}))).await.0,
        402
    );
}

/// Anybody can ask for what is free, as often as it likes: what is kept of it is little, and it is still called once.
#[tokio::test]
async fn a_large_answer_for_nothing_is_given_once() {
    let desk = Desk::new();
    desk.sell(|offer| offer.price = Usd::ZERO);
    for (bytes, again) in [(1_000, 200), (16 * 1024, 409)] {
        desk.does(Does::Result(json!("x".repeat(bytes))));
        let key = format!("free-call-{bytes}");
        let first = desk.invoke(once(&key, nothing()), ask(json!({}))).await;
        assert_eq!(first.0, 200);
        let second = desk.invoke(once(&key, nothing()), ask(json!({}))).await;
        assert_eq!(second.0, again);
        if again == 409 {
            assert_eq!(second.1["error"], json!("idempotency_forgotten"));
        } else {
            assert_eq!(second.1, first.1);
        }
    }
    assert_eq!(desk.calls(), 2);
}
