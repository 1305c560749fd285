//! What is refused, with which code, and in which order.

use bytes::Bytes;
use serde_json::{Value, json};

use super::desk::{Desk, answer, ask, by_channel, by_key, call, nothing, once, schema, usd};
use crate::invoke::{InvokeCall, InvokeHeaders};
use crate::money::Usd;
use crate::refusal::MarketCode;
use crate::store::Accounts as _;

#[tokio::test]
async fn a_body_that_is_not_of_its_form_is_refused_with_its_place() {
    let desk = Desk::new();
    for text in [
        "",
        "{",
        r#"{"product_id":"prod","product_id":"prod","capability_id":"echo@v1"}"#,
        r#"{"product_id":"prod","capability_id":"echo@v1","max_price_usd":NaN}"#,
        r#"{"product_id":"prod","capability_id":"echo@v1","input":{"a":1e999}}"#,
    ] {
        let call = InvokeCall {
            body: Bytes::copy_from_slice(text.as_bytes()),
            ..call(nothing(), &Value::Null)
        };
        let (status, body, _) = answer(&desk.market, call).await;
        assert_eq!((status, &body["error"]), (400, &json!("json_invalid")), "{text}");
    }
    for (member, value) in [
        ("product_id", json!(7)),
        ("product_id", json!("a")),
        ("capability_id", json!("c".repeat(81))),
        ("source_hub", json!(null)),
        ("source_hub", json!("h".repeat(257))),
        ("input", json!([])),
        ("input", json!(null)),
        ("max_price_usd", json!(-0.01)),
        ("max_price_usd", json!(1_000_001)),
        ("max_price_usd", json!("0.01")),
        ("verify", json!(true)),
        ("verify", json!({ "requested": "yes" })),
        ("subcontract", json!("x")),
        ("payment_authorization", json!(1)),
    ] {
        let mut body = ask(json!({}));
        body[member] = value.clone();
        let (status, refused) = desk.invoke(nothing(), body).await;
        assert_eq!(
            (status, &refused["error"]),
            (422, &json!("request_invalid")),
            "{member} {value}"
        );
        assert_eq!(refused["detail"][0]["loc"], json!(["body", member]));
        assert!(refused["detail"][0]["msg"].is_string() && refused["detail"][0]["type"].is_string());
    }
    let (status, refused) = desk
        .invoke(nothing(), json!({ "capability_id": "echo@v1" }))
        .await;
    assert_eq!(
        (status, &refused["detail"][0]["loc"]),
        (422, &json!(["body", "product_id"]))
    );
    assert_eq!(desk.invoke(nothing(), json!([])).await.0, 422);
    for id in ["a/b", "a..b", "a b", "éé"] {
        let (status, refused) = desk
            .invoke(nothing(), json!({ "product_id": "prod", "capability_id": id }))
            .await;
        assert_eq!((status, &refused["error"]), (400, &json!("id_invalid")), "{id}");
    }
    assert_eq!(desk.calls(), 0);
}

/// These headers and members are refused like this, for a capability that is free.
async fn refused<const N: usize>(desk: &Desk, cases: [(InvokeHeaders, Value, u16, &str); N]) {
    desk.sell(|offer| offer.price = Usd::ZERO);
    for (headers, body, status, error) in cases {
        let (got, refused) = desk.invoke(headers, body).await;
        assert_eq!((got, &refused["error"]), (status, &json!(error)));
    }
    assert_eq!(desk.calls(), 0);
}

/// A call with one more member.
fn with(name: &str, value: Value) -> Value {
    let mut body = ask(json!({}));
    body[name] = value;
    body
}

/// Pitfall 23.
#[tokio::test]
async fn a_call_is_paid_in_one_way() {
    let desk = Desk::new();
    let key = desk.account("1", None).await;
    let channel = desk.channel("1").await;
    let two = InvokeHeaders {
        api_key: Some(key.clone()),
        ..by_channel(&channel)
    };
    let chained = InvokeHeaders {
        x402: true,
        ..by_key(&key)
    };
    let mandated = InvokeHeaders {
        mandate: true,
        ..by_key(&key)
    };
    let conflict = "payment_rails_conflict";
    let cases = [
        (two, ask(json!({})), 400, conflict),
        (chained, ask(json!({})), 400, conflict),
        (mandated, ask(json!({})), 400, conflict),
        (
            by_key(&key),
            with("payment_authorization", json!({})),
            400,
            conflict,
        ),
    ];
    refused(&desk, cases).await;
    assert_eq!(desk.totals().await.held, Usd::ZERO);
}

/// Refused where it is asked for, never ignored.
#[tokio::test]
async fn what_is_not_here_is_refused() {
    let desk = Desk::new();
    let chained = InvokeHeaders {
        x402: true,
        ..nothing()
    };
    let mandated = InvokeHeaders {
        mandate: true,
        ..nothing()
    };
    let of_job = InvokeHeaders {
        job: true,
        ..nothing()
    };
    let allowance = json!({ "allowance_usd": 1 });
    let cases = [
        (chained, ask(json!({})), 402, "payment_invalid"),
        (
            nothing(),
            with("payment_authorization", json!({})),
            402,
            "payment_invalid",
        ),
        (mandated, ask(json!({})), 400, "mandate_unsupported"),
        (of_job, ask(json!({})), 400, "mandate_unsupported"),
        (nothing(), with("verify", json!({})), 400, "verify_unsupported"),
        (
            nothing(),
            with("subcontract", allowance),
            400,
            "subcontract_unsupported",
        ),
        (
            once("short", nothing()),
            ask(json!({})),
            400,
            "idempotency_key_invalid",
        ),
        (
            once(&"k".repeat(129), nothing()),
            ask(json!({})),
            400,
            "idempotency_key_invalid",
        ),
        (
            once("with\u{7f}del", nothing()),
            ask(json!({})),
            400,
            "idempotency_key_invalid",
        ),
    ];
    refused(&desk, cases).await;
}

#[tokio::test]
async fn what_is_named_and_not_asked_for_is_let_through() {
    let desk = Desk::new();
    desk.sell(|offer| offer.price = Usd::ZERO);
    assert_eq!(
        desk.invoke(nothing(), with("verify", json!({ "requested": false })))
            .await
            .0,
        200
    );
    assert_eq!(
        desk.invoke(nothing(), with("subcontract", json!(null))).await.0,
        200
    );
}

#[tokio::test]
async fn what_is_not_sold_here_is_not_found() {
    let desk = Desk::new();
    let key = desk.account("1", None).await;
    let of = |capability: &str, hub: &str| json!({ "product_id": "prod", "capability_id": capability, "source_hub": hub });
    for hub in [
        "local",
        "hub.example",
        "https://hub.example",
        "https://hub.example/",
    ] {
        assert_eq!(
            desk.invoke(by_key(&key), of("echo@v1", hub)).await.0,
            200,
            "{hub}"
        );
    }
    for (capability, hub, error) in [
        ("echo@v2", "local", "capability_unknown"),
        ("echo@v1", "other.example", "hub_unknown"),
        ("echo@v1", "", "hub_unknown"),
    ] {
        let (status, refused) = desk.invoke(by_key(&key), of(capability, hub)).await;
        assert_eq!((status, &refused["error"]), (404, &json!(error)));
    }
    desk.sell(|offer| offer.way = None);
    let (status, refused) = desk.invoke(by_key(&key), of("echo@v1", "local")).await;
    assert_eq!(
        (status, &refused["error"]),
        (404, &json!("capability_not_invocable"))
    );
    desk.sell(|offer| offer.output_schema = Some(schema(json!({ "type": "nothing known" }))));
    let (status, refused) = desk.invoke(by_key(&key), of("echo@v1", "local")).await;
    assert_eq!(
        (status, &refused["error"]),
        (404, &json!("capability_not_invocable"))
    );
}

/// Pitfalls 31 and 43: who has not paid is told the price before the input; a refused input costs nothing.
#[tokio::test]
async fn the_price_comes_before_the_input_and_the_input_before_the_money() {
    let desk = Desk::new();
    let key = desk.account("1", None).await;
    desk.sell(|offer| {
        offer.input_schema = Some(schema(json!({
            "type": "object",
            "properties": { "seed": { "type": "string" }, "n": { "type": "integer", "maximum": 5 } },
            "required": ["seed"],
            "additionalProperties": false,
        })));
    });
    assert_eq!(desk.invoke(nothing(), ask(json!({}))).await.0, 402);
    let (status, body) = desk.invoke(by_key(&key), ask(json!({ "n": 1 }))).await;
    assert_eq!((status, &body["error"]), (400, &json!("incomplete_input")));
    assert_eq!(
        (&body["missing"], &body["accepts"]),
        (&json!(["seed"]), &json!([["seed"]]))
    );
    assert_eq!(body["capability_id"], json!("echo@v1"));
    let (status, body) = desk
        .invoke(by_key(&key), ask(json!({ "seed": "s", "n": 7 })))
        .await;
    assert_eq!(
        (status, &body["error"], &body["problems"][0]["path"]),
        (400, &json!("invalid_input"), &json!("/n"))
    );
    assert_eq!((desk.totals().await.balances, desk.calls()), (usd("1"), 0));
    // Pitfall 36: a declared name is an input like any other.
    assert_eq!(
        desk.invoke(by_key(&key), ask(json!({ "seed": "s" }))).await.0,
        200
    );
}

#[tokio::test]
async fn alternatives_of_needed_members_are_all_named() {
    let desk = Desk::new();
    desk.sell(|offer| {
        offer.price = Usd::ZERO;
        offer.input_schema = Some(schema(json!({
            "type": "object",
            "anyOf": [{ "required": ["id", "token"] }, { "required": ["west", "east"] }],
        })));
    });
    let (status, body) = desk.invoke(nothing(), ask(json!({ "id": 1 }))).await;
    assert_eq!(status, 400);
    assert_eq!(body["accepts"], json!([["token"], ["west", "east"]]));
    assert_eq!(
        desk.invoke(nothing(), ask(json!({ "west": 1, "east": 2 })))
            .await
            .0,
        200
    );
}

#[tokio::test]
async fn an_input_has_a_largest_size() {
    let desk = Desk::new();
    desk.sell(|offer| offer.price = Usd::ZERO);
    let of = |bytes: usize| ask(json!({ "a": "x".repeat(bytes - r#"{"a":""}"#.len()) }));
    assert_eq!(desk.invoke(nothing(), of(64 * 1024)).await.0, 200);
    let (status, body) = desk.invoke(nothing(), of(64 * 1024 + 1)).await;
    assert_eq!((status, &body["error"]), (413, &json!("input_too_large")));
}

/// Not 403: AIMarket's client takes every 403 of a call for a blocked content.
#[tokio::test]
async fn an_account_that_was_closed_is_not_let_in() {
    let desk = Desk::new();
    let key = desk.account("1", None).await;
    let (_, account) = desk.market.account_of_key(&key).await.unwrap();
    desk.store.suspend(&account.id, true).await.unwrap();
    let (status, body) = desk.invoke(by_key(&key), ask(json!({}))).await;
    assert_eq!((status, &body["error"]), (401, &json!("invalid_api_key")));
}

#[test]
fn every_code_has_its_own_text_and_a_status_of_its_own_kind() {
    let mut texts: Vec<&str> = MarketCode::ALL.iter().map(|code| code.as_str()).collect();
    texts.sort_unstable();
    let twice: Vec<_> = texts.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert_eq!(
        twice,
        [["payment_required", "payment_required"]],
        "of a call 402, of a channel 400"
    );
    assert!(
        MarketCode::ALL
            .iter()
            .all(|code| (400..600).contains(&code.status()))
    );
}

#[test]
fn headers_are_printed_without_secrets() {
    let headers = InvokeHeaders {
        api_key: Some("aimk_hidden".to_owned()),
        channel_secret: Some("chs_hidden".to_owned()),
        ..nothing()
    };
    assert!(!format!("{headers:?}").contains("hidden"));
}
