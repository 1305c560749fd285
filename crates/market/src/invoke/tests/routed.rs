//! Calls of other hubs' capabilities, under each of the three rules.

use aip_protocol::market::receipt::{Expected, verify};
use aip_protocol::market::{Value as Exact, Verdict};
use aip_protocol::multikey::SigningKey;
use bytes::Bytes;
use serde_json::{Value, json};

use super::desk::{Desk, by_channel, by_key, by_visitor, call, config, nothing, offer, once, usd};
use super::hubs::{OTHER, PEER, answered, ask_peer, peer, peer_key, receipt_for, sold_by, with_peer};
use crate::invoke::InvokeHeaders;
use crate::market::MarketConfig;
use crate::money::Usd;
use crate::peers::{MarketPeer, PeerStatus, RouteMode};
use crate::provider::ProviderError;
use crate::routing::{PeerAnswer, PeerFailure, Shown, Terms};
use crate::store::{Earnings as _, Invocations as _};

fn desk(mode: RouteMode, routing_fee_bps: u16) -> Desk {
    let config = MarketConfig {
        routing_fee_bps,
        ..config()
    };
    with_peer(Desk::with(config), mode)
}

fn paid_over_x402(payment: &str) -> InvokeHeaders {
    InvokeHeaders {
        x402: true,
        payment: vec![("payment-signature", payment.to_owned())],
        ..nothing()
    }
}

/// It is said where it is sold, and nothing is spent.
#[tokio::test]
async fn pitfall_53_who_forgets_the_hub_is_told_which_one() {
    let desk = with_peer(
        Desk::with(MarketConfig {
            trials_per_visitor: 1,
            ..config()
        }),
        RouteMode::SellsFor,
    );
    for hub in [None, Some("local"), Some("hub.example")] {
        let mut body = ask_peer(PEER);
        match hub {
            None => drop(body.as_object_mut().unwrap().remove("source_hub")),
            Some(hub) => body["source_hub"] = json!(hub),
        }
        let (status, refused) = desk.invoke(by_visitor("visitor-1"), body).await;
        assert_eq!((status, &refused["error"]), (400, &json!("source_hub_required")));
        assert_eq!(
            (&refused["source_hub"], &refused["source_hubs"]),
            (&json!(PEER), &json!([PEER]))
        );
        assert!(refused["detail"].as_str().unwrap().contains(PEER));
    }
    assert_eq!(desk.hubs.calls().len(), 0);
    let (status, _) = desk.invoke(by_visitor("visitor-1"), ask_peer(PEER)).await;
    assert_eq!(status, 200, "the trial is still there");
}

#[tokio::test]
async fn only_a_hub_that_was_let_in_is_called() {
    let desk = desk(RouteMode::Broker, 0);
    for hub in [
        "https://nobody.example",
        "peer.example",
        "",
        "https://peer.example?x=1",
    ] {
        let (status, refused) = desk.invoke(nothing(), ask_peer(hub)).await;
        assert_eq!((status, &refused["error"]), (404, &json!("hub_unknown")), "{hub}");
    }
    for status in [PeerStatus::Pending, PeerStatus::KeyMismatch, PeerStatus::Blocked] {
        desk.hubs.know(MarketPeer {
            status,
            ..peer(PEER, RouteMode::Broker)
        });
        let (got, refused) = desk.invoke(nothing(), ask_peer(PEER)).await;
        assert_eq!((got, &refused["error"]), (403, &json!("hub_not_active")));
        assert_eq!(refused["status"], json!(status.as_str()));
        // Who forgets the hub is not sent to one that is not called.
        let (got, refused) = desk.invoke(nothing(), ask_peer("local")).await;
        assert_eq!((got, &refused["error"]), (404, &json!("capability_unknown")));
    }
    desk.hubs.know(MarketPeer {
        key: None,
        ..peer(PEER, RouteMode::Broker)
    });
    assert_eq!(
        desk.invoke(nothing(), ask_peer(PEER)).await.0,
        403,
        "no key is pinned"
    );
    assert_eq!(desk.hubs.calls().len(), 0);
    desk.hubs.know(peer(PEER, RouteMode::Broker));
    for hub in [PEER, "https://peer.example/", "HTTPS://Peer.Example:443"] {
        assert_eq!(desk.invoke(nothing(), ask_peer(hub)).await.0, 200, "{hub}");
    }
    desk.shelve(vec![offer()]);
    for hub in ["https://HUB.example/", "https://hub.example:443", "hub.example"] {
        let (status, refused) = desk.invoke(nothing(), ask_peer(hub)).await;
        assert_eq!(
            (status, &refused["error"]),
            (402, &json!("payment_required")),
            "{hub} is here"
        );
    }
}

/// The price, the hold and what is taken are those of the hub that is asked.
#[tokio::test]
async fn pitfall_54_of_two_hubs_with_the_same_ids_the_one_that_is_named_is_called_and_paid() {
    let desk = desk(RouteMode::SellsFor, 0);
    desk.hubs.know(peer(OTHER, RouteMode::SellsFor));
    desk.shelve(vec![sold_by(PEER, "0.01"), sold_by(OTHER, "7.5"), offer()]);
    let key = desk.account("10", None).await;
    desk.hubs.says(Ok(answered(None)));
    for (hub, price, left) in [(OTHER, 7.5, "2.5"), (PEER, 0.01, "2.49")] {
        let (status, body) = desk.invoke(by_key(&key), ask_peer(hub)).await;
        assert_eq!((status, &body["price_usd"]), (200, &json!(price)), "{body}");
        assert_eq!(desk.balance(&key).await, usd(left));
        let called = desk.hubs.calls().pop().unwrap();
        assert_eq!((called.hub.as_str(), called.listing), (hub, format!("of {hub}")));
        assert_eq!(called.input, json!({ "a": 1 }));
    }
    let mut elsewhere = ask_peer(PEER);
    elsewhere["capability_id"] = json!("other@v1");
    let (status, refused) = desk.invoke(by_key(&key), elsewhere).await;
    assert_eq!((status, &refused["error"]), (404, &json!("capability_unknown")));
    desk.totals().await;
}

#[tokio::test]
async fn a_broker_takes_nothing_and_hands_on_what_the_peer_says() {
    let desk = desk(RouteMode::Broker, 0);
    let receipt = receipt_for(&peer_key(), "echo@v1", "0.01");
    desk.hubs.says(Ok(PeerAnswer {
        headers: vec![("payment-response", "e30=".to_owned())],
        ..answered(Some("0.01"))
    }));
    let invoked = desk
        .market
        .invoke(call(paid_over_x402("cGF5"), &ask_peer(PEER)))
        .await;
    let invoked = invoked.answer.unwrap();
    assert_eq!(invoked.headers, [("payment-response", "e30=".to_owned())]);
    let body = Exact::parse(&invoked.body).unwrap();
    assert_eq!(body.get("receipt"), Some(&receipt), "unchanged");
    let body: Value = serde_json::from_slice(&invoked.body).unwrap();
    for (name, value) in [
        ("success", json!(true)),
        ("result", json!({ "echo": 1 })),
        ("source_hub", json!(PEER)),
        ("routed_via", json!("https://hub.example")),
        ("route_mode", json!("broker")),
        ("receipt_verified", json!(true)),
        ("hub_receipt", Value::Null),
        ("price_usd", json!(0.01)),
        ("list_price_usd", json!(0.01)),
        ("charged_usd", json!(0.0)),
        ("routing_fee_usd", json!(0.0)),
        ("routing_fee_bps", json!(0)),
    ] {
        assert_eq!(body[name], value, "{name}");
    }
    let Shown::Buyer {
        visitor,
        payment,
        most,
    } = desk.hubs.shown()
    else {
        panic!("a broker shows what the buyer shows");
    };
    assert_eq!((visitor, most), (None, None));
    assert_eq!(payment, [("payment-signature", "cGF5".to_owned())]);
    // A purse of this hub pays nobody elsewhere, and is not shown.
    let key = desk.account("1", None).await;
    let mut capped = ask_peer(PEER);
    capped["max_price_usd"] = json!(0.02);
    assert_eq!(desk.invoke(by_key(&key), capped).await.0, 200);
    let shown = Shown::Buyer {
        visitor: None,
        payment: Vec::new(),
        most: Some(usd("0.02")),
    };
    assert_eq!(desk.hubs.shown(), shown);
    assert_eq!(desk.balance(&key).await, usd("1"));
}

#[tokio::test]
async fn a_visitor_has_another_name_at_each_hub() {
    let desk = desk(RouteMode::Broker, 0);
    desk.hubs.know(peer(OTHER, RouteMode::Broker));
    desk.shelve(vec![sold_by(PEER, "0.01"), sold_by(OTHER, "0.01")]);
    let mut names = Vec::new();
    for (visitor, hub) in [
        ("visitor-1", PEER),
        ("visitor-1", PEER),
        ("visitor-1", OTHER),
        ("visitor-2", PEER),
    ] {
        let (status, body) = desk.invoke(by_visitor(visitor), ask_peer(hub)).await;
        assert_eq!(status, 200, "{body}");
        let Shown::Buyer {
            visitor: Some(name), ..
        } = desk.hubs.shown()
        else {
            panic!("the visitor is named");
        };
        assert!(
            name.starts_with("hub-fed-") && name.len() == 40 && !name.contains("visitor"),
            "{name}"
        );
        names.push(name);
    }
    assert_eq!(names[0], names[1]);
    assert!(names[2] != names[0] && names[3] != names[0]);
    let mut capped = ask_peer(PEER);
    capped["max_price_usd"] = json!(0.005);
    let mut both = by_visitor("visitor-1");
    both.payment = paid_over_x402("cGF5").payment;
    assert_eq!(desk.invoke(both, capped).await.0, 409, "who pays does not try");
}

/// Word for word, with its headers; and who pays then is not answered the same again.
#[tokio::test]
async fn pitfall_44_the_402_of_a_peer_goes_to_the_buyer_as_it_is() {
    let desk = desk(RouteMode::Broker, 100);
    let key = desk.account("1", None).await;
    let terms = Terms {
        body: Bytes::from_static(
            br#"{"error":"payment_required","needed":0.01,"accepts":[{"payTo":"0xpeer"}]}"#,
        ),
        headers: vec![("payment-required", "eyJ4NDAyVmVyc2lvbiI6Mn0=".to_owned())],
    };
    desk.hubs.says(Err(PeerFailure::Unpaid(terms.clone())));
    for headers in [once("idempotent", nothing()), once("idempotent", by_key(&key))] {
        let invoked = desk
            .market
            .invoke(call(headers, &ask_peer(PEER)))
            .await
            .answer
            .unwrap();
        assert_eq!((invoked.status, invoked.body), (402, terms.body.clone()));
        assert_eq!(
            (invoked.headers, invoked.replayed),
            (terms.headers.clone(), false)
        );
    }
    assert_eq!(desk.balance(&key).await, usd("1"), "no fee for what was not done");
    desk.hubs.says(Ok(answered(Some("0.01"))));
    let paid = once("idempotent", paid_over_x402("cGF5"));
    for replayed in [false, true] {
        let (status, body, again) = desk.invoke_on(&desk.market, paid.clone(), ask_peer(PEER)).await;
        assert_eq!((status, again), (200, replayed), "{body}");
    }
    let (status, _, again) = desk
        .invoke_on(
            &desk.market,
            once("idempotent", paid_over_x402("YW4=")),
            ask_peer(PEER),
        )
        .await;
    assert_eq!((status, again), (200, false), "another payment pays another call");
    desk.totals().await;
}

/// The fee is of the listed price at most, and of what the peer says it took.
#[tokio::test]
async fn pitfall_27_the_fee_is_of_the_lower_price() {
    let desk = desk(RouteMode::Broker, 1_000);
    let channel = desk.channel("1").await;
    let mut left = usd("1");
    for (price, fee) in [
        (Some("0.01"), "0.001"),
        (Some("49000"), "0.001"),
        (Some("0.004"), "0.0004"),
        (Some("0"), "0"),
        (None, "0"),
    ] {
        desk.hubs.says(Ok(answered(price)));
        let (status, body) = desk.invoke(by_channel(&channel), ask_peer(PEER)).await;
        assert_eq!(status, 200, "{body}");
        left = left.checked_sub(usd(fee)).unwrap();
        let now = desk.channel_now(&channel.0).await;
        assert_eq!((now.balance(), now.held), (left, Usd::ZERO), "{price:?}");
        assert_eq!(body["charged_usd"], json!(usd(fee).to_f64()));
        assert_eq!(body["remaining_balance"], json!(left.to_f64()));
        assert_eq!(body["routing_fee_usd"], body["charged_usd"]);
        let is_charged = usd(fee) > Usd::ZERO;
        assert_eq!(body["hub_receipt"].is_object(), is_charged);
        if is_charged {
            assert!(desk.is_receipt(&body["hub_receipt"], fee));
            let nonce = body["hub_receipt"]["nonce"].as_str().unwrap();
            assert!(desk.store.receipt(nonce).await.unwrap().is_some(), "it is kept");
        }
    }
    desk.hubs
        .says(Err(ProviderError::Refused("no".to_owned()).into()));
    let (status, body) = desk.invoke(by_channel(&channel), ask_peer(PEER)).await;
    assert_eq!((status, &body["error"]), (502, &json!("provider_failed")));
    assert_eq!(desk.channel_now(&channel.0).await.balance(), left);
    // Nothing is left to hold the fee from.
    let poor = desk.channel("0.0001").await;
    let (status, body) = desk.invoke(by_channel(&poor), ask_peer(PEER)).await;
    assert_eq!((status, &body["error"]), (402, &json!("payment_failed")));
    assert_eq!(
        body["needed"],
        json!(0.001),
        "of what the hub takes, which is its fee"
    );
    let mut capped = ask_peer(PEER);
    capped["max_price_usd"] = json!(0.0105);
    let (status, body) = desk.invoke(by_channel(&channel), capped).await;
    assert_eq!((status, &body["current_price_usd"]), (409, &json!(0.011)));
    let totals = desk.totals().await;
    assert_eq!((totals.fees, totals.earned), (usd("0.0024"), Usd::ZERO));
}

/// Who is not paid is told at once, the trial comes first, and there is no fee on top.
#[tokio::test]
async fn pitfall_41_a_hub_that_sells_for_another_takes_the_list_price() {
    let config = MarketConfig {
        routing_fee_bps: 1_000,
        fee_bps: 2_000,
        trials_per_visitor: 1,
        ..config()
    };
    let desk = with_peer(Desk::with(config), RouteMode::SellsFor);
    let (status, refused) = desk.invoke(nothing(), ask_peer(PEER)).await;
    assert_eq!((status, &refused["needed"]), (402, &json!(0.01)));
    let (status, refused) = desk.invoke(paid_over_x402("cGF5"), ask_peer(PEER)).await;
    assert_eq!((status, &refused["error"]), (402, &json!("payment_invalid")));
    assert_eq!(desk.hubs.calls().len(), 0, "the peer was not asked");
    desk.hubs.says(Ok(answered(None)));
    let (status, body) = desk.invoke(by_visitor("visitor-1"), ask_peer(PEER)).await;
    assert_eq!(
        (status, &body["sandbox"], &body["price_usd"]),
        (200, &json!(true), &json!(0.0))
    );
    assert_eq!(desk.hubs.shown(), Shown::Admission);
    assert_eq!(desk.invoke(by_visitor("visitor-1"), ask_peer(PEER)).await.0, 429);
    let key = desk.account("1", None).await;
    let (status, body) = desk.invoke(by_key(&key), ask_peer(PEER)).await;
    assert_eq!((status, &body["price_usd"]), (200, &json!(0.01)));
    assert_eq!(
        (&body["charged_usd"], &body["routing_fee_usd"]),
        (&json!(0.01), &json!(0.0))
    );
    assert!(desk.is_receipt(&body["hub_receipt"], "0.01"));
    assert_eq!(
        (desk.balance(&key).await, desk.hubs.shown()),
        (usd("0.99"), Shown::Admission)
    );
    let agent = sold_by(PEER, "0").agent;
    let earned = desk.store.earned(&agent).await.unwrap();
    assert_eq!(
        (earned.earned, earned.calls),
        (usd("0.008"), 1),
        "owed to the peer"
    );
    desk.totals().await;
}

#[tokio::test]
async fn a_reseller_takes_price_and_fee_and_pays_with_its_own_key() {
    let config = MarketConfig {
        routing_fee_bps: 1_000,
        trials_per_visitor: 5,
        ..config()
    };
    let desk = with_peer(Desk::with(config), RouteMode::Reseller);
    for headers in [nothing(), by_visitor("visitor-1")] {
        let (status, refused) = desk.invoke(headers, ask_peer(PEER)).await;
        assert_eq!((status, &refused["needed"]), (402, &json!(0.011)));
        assert_eq!(refused["routing_fee_usd"], json!(0.001));
    }
    let key = desk.account("1", None).await;
    let mut capped = ask_peer(PEER);
    capped["max_price_usd"] = json!(0.0105);
    let (status, refused) = desk.invoke(by_key(&key), capped).await;
    assert_eq!((status, &refused["current_price_usd"]), (409, &json!(0.011)));
    assert_eq!(desk.hubs.calls().len(), 0);
    let (status, body) = desk.invoke(by_key(&key), ask_peer(PEER)).await;
    assert_eq!(
        (status, &body["price_usd"], &body["charged_usd"]),
        (200, &json!(0.011), &json!(0.011))
    );
    assert_eq!(body["routing_fee_usd"], json!(0.001));
    assert!(desk.is_receipt(&body["hub_receipt"], "0.011"));
    assert_eq!(desk.hubs.shown(), Shown::Key(usd("0.01")));
    assert_eq!(desk.balance(&key).await, usd("0.989"));
    let totals = desk.totals().await;
    assert_eq!(
        (totals.fees, totals.earned),
        (usd("0.011"), Usd::ZERO),
        "the hub pays the peer itself"
    );
}

#[tokio::test]
async fn a_hub_that_is_not_paid_by_this_one_costs_the_buyer_nothing() {
    let terms = Terms {
        body: Bytes::from_static(b"{}"),
        headers: Vec::new(),
    };
    for mode in [RouteMode::SellsFor, RouteMode::Reseller] {
        let desk = desk(mode, 100);
        let key = desk.account("1", None).await;
        for failure in [
            PeerFailure::Unpaid(terms.clone()),
            PeerFailure::HubUnpaid("its key is none".to_owned()),
        ] {
            desk.hubs.says(Err(failure));
            let (status, body) = desk.invoke(by_key(&key), ask_peer(PEER)).await;
            assert_eq!(
                (status, &body["error"]),
                (502, &json!("upstream_unpaid")),
                "{mode:?}"
            );
            assert_eq!(desk.balance(&key).await, usd("1"));
        }
        desk.totals().await;
    }
}

/// Pitfalls 3, 4 and 15: by the key that is pinned for the hub that did the work, and about this call.
#[tokio::test]
async fn the_receipt_of_a_peer_is_true_or_false_or_was_not_checked() {
    let desk = desk(RouteMode::Broker, 0);
    let stranger = SigningKey::from_seed([78; 32]);
    let with = |receipt: Option<Exact>, price: &str| PeerAnswer {
        receipt,
        ..answered(Some(price))
    };
    let genuine = |price: &str| Some(receipt_for(&peer_key(), "echo@v1", price));
    for (answer, verified, reason) in [
        (with(genuine("0.01"), "0.01"), json!(true), None),
        (with(genuine("0"), "0"), json!(true), None),
        (with(None, "0.01"), Value::Null, Some("nothing-to-check")),
        (
            with(Some(json!("signed").into()), "0.01"),
            Value::Null,
            Some("nothing-to-check"),
        ),
        (
            with(Some(receipt_for(&stranger, "echo@v1", "0.01")), "0.01"),
            json!(false),
            Some("key-not-pinned"),
        ),
        (
            with(Some(receipt_for(&peer_key(), "cheap@v1", "0.01")), "0.01"),
            json!(false),
            Some("different-call"),
        ),
        (
            with(genuine("0.001"), "0.01"),
            json!(false),
            Some("different-call"),
        ),
        (
            with(genuine("49000"), "49000"),
            json!(false),
            Some("different-call"),
        ),
    ] {
        desk.hubs.says(Ok(answer));
        let (status, body) = desk.invoke(nothing(), ask_peer(PEER)).await;
        assert_eq!((status, &body["receipt_verified"]), (200, &verified), "{body}");
        assert_eq!(body.get("receipt_reason").and_then(Value::as_str), reason);
    }
    // The buyer finds the same with the peer's key.
    desk.hubs.says(Ok(answered(Some("0.01"))));
    let (_, body) = desk.invoke(nothing(), ask_peer(PEER)).await;
    let receipt = Exact::from(body["receipt"].clone());
    let check = verify(&receipt, &[peer_key().public().clone()], &Expected::default());
    assert_eq!(check.verdict, Verdict::True);
}

/// What the buyer pays another hub for is not kept from it; what this hub sells must be as it says.
#[tokio::test]
async fn a_result_in_another_form_is_kept_from_nobody_who_pays_elsewhere() {
    for (mode, expected) in [(RouteMode::Broker, 200), (RouteMode::SellsFor, 502)] {
        let desk = desk(mode, 0);
        let mut offer = sold_by(PEER, "0");
        offer.output_schema = Some(super::desk::schema(json!({ "required": ["sky"] })));
        desk.shelve(vec![offer]);
        desk.hubs.says(Ok(answered(Some("0"))));
        assert_eq!(
            desk.invoke(nothing(), ask_peer(PEER)).await.0,
            expected,
            "{mode:?}"
        );
    }
}
