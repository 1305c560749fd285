//! What the operator does about accounts, and about what providers earned.

use actix_web::http::Method;
use serde_json::{Value, json};

use super::{Shop, refused};

const ACCOUNT: &str = "/ai-market/v2/account";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

#[actix_web::test]
async fn the_operator_keeps_the_accounts_and_pays_providers() {
    let shop = Shop::open(|_| ()).await;
    shop.sells("paid@v1", Some("0.1")).await;
    let (id, key) = shop.account("0.5").await;
    let credit = |amount: &str, reference: &str| {
        let body = json!({ "amount": amount, "reference": reference });
        let (shop, path) = (&shop, format!("/admin/accounts/{id}/credits"));
        async move { shop.operates(Method::POST, &path, &body).await }
    };
    assert_eq!(
        credit("0.5", "bank 1").await.json(),
        json!({ "id": id, "balance": "1", "again": false })
    );
    assert_eq!(credit("0.5", "bank 1").await.json()["again"], true);
    assert_eq!(credit("0.6", "bank 1").await.status, 409);
    for (amount, reference) in [
        ("0", "a"),
        ("-1", "a"),
        ("0.0000004", "a"),
        ("1.1234567", "a"),
        ("1", ""),
        ("1", "grant:x"),
        ("1", "a\n"),
    ] {
        assert_eq!(
            credit(amount, reference).await.code(),
            "member_invalid",
            "{amount} {reference}"
        );
    }
    assert_eq!(
        shop.calls("paid@v1", &[("x-api-key", &key)], &json!({}))
            .await
            .status,
        200
    );
    let ledger = shop
        .reads("/ai-market/v2/account/ledger?limit=3", &[("x-api-key", &key)])
        .await
        .json();
    let kinds: Vec<&str> = ledger["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| text(&line["kind"]))
        .collect();
    assert_eq!(kinds, ["credit", "credit", "hold"]);
    let after = ledger["next"].as_u64().unwrap();
    let rest = shop
        .operates(
            Method::GET,
            &format!("/admin/accounts/{id}/ledger?after={after}"),
            &json!({}),
        )
        .await;
    assert_eq!(rest.json()["items"][0]["kind"], "capture");

    let budget = format!("/admin/accounts/{id}/budget");
    assert_eq!(
        shop.operates(Method::PUT, &budget, &json!({ "budget": "0.15" }))
            .await
            .status,
        204
    );
    refused(
        &shop.calls("paid@v1", &[("x-api-key", &key)], &json!({})).await,
        402,
        "payment_failed",
    );
    assert_eq!(
        shop.operates(Method::PUT, &budget, &json!({ "budget": null }))
            .await
            .status,
        204
    );
    let finer = shop
        .operates(Method::PUT, &budget, &json!({ "budget": "0.0000001" }))
        .await;
    assert_eq!(finer.code(), "member_invalid");
    let standing = format!("/admin/accounts/{id}/standing");
    assert_eq!(
        shop.operates(Method::PUT, &standing, &json!({ "suspended": true }))
            .await
            .status,
        204
    );
    refused(
        &shop.reads(ACCOUNT, &[("x-api-key", &key)]).await,
        401,
        "invalid_api_key",
    );
    let state = shop
        .operates(Method::GET, &format!("/admin/accounts/{id}"), &json!({}))
        .await
        .json();
    assert_eq!(
        (&state["standing"], &state["balance"], &state["spent"]),
        (&json!("suspended"), &json!("0.9"), &json!("0.1"))
    );
    let list = shop
        .operates(Method::GET, "/admin/accounts", &json!({}))
        .await
        .json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    let none = shop
        .operates(
            Method::PUT,
            "/admin/accounts/acct_0/standing",
            &json!({ "suspended": true }),
        )
        .await;
    assert_eq!(none.code(), "not_found");

    let pay = |amount: &str, reference: &str| {
        let body = json!({ "agent": "shop#hub.example", "amount": amount, "reference": reference });
        let shop = &shop;
        async move { shop.operates(Method::POST, "/admin/payouts", &body).await }
    };
    for again in [false, true] {
        let noted = pay("0.06", "pay 1").await.json();
        assert_eq!((&noted["owed"], &noted["again"]), (&json!("0.04"), &json!(again)));
    }
    assert_eq!(pay("0.05", "pay 1").await.code(), "id_reused");
    let exceeding = pay("0.05", "pay 2").await;
    assert_eq!(exceeding.code(), "member_invalid");
    let detail = exceeding.json()["detail"].clone();
    assert!(
        text(&detail).starts_with("0.05 USD are more than did:aip:hub.example:shop is owed: 0.04 USD."),
        "{detail}"
    );
    let payouts = shop
        .operates(Method::GET, "/admin/payouts", &json!({}))
        .await
        .json();
    assert_eq!(payouts["items"][0]["paid_out"], "0.06");
    let books = shop
        .operates(Method::GET, "/admin/market", &json!({}))
        .await
        .json();
    assert_eq!(
        (&books["balance"], &books["earned"], &books["credited"]),
        (&json!(true), &json!("0.1"), &json!("1"))
    );
}

#[actix_web::test]
async fn a_payout_to_nobody_is_told_so() {
    let shop = Shop::open(|_| ()).await;
    let pays = |agent: &str| json!({ "agent": agent, "amount": "1", "reference": format!("bank {agent}") });
    let answer = shop
        .operates(Method::POST, "/admin/payouts", &pays("shpo#hub.example"))
        .await;
    assert_eq!(answer.code(), "recipient_unknown");
    // One that is there and is owed nothing is told that.
    shop.hub.registered("alice").await;
    let answer = shop
        .operates(Method::POST, "/admin/payouts", &pays("alice#hub.example"))
        .await;
    assert_eq!(
        (answer.code().as_str(), &answer.json()["owed"]),
        ("member_invalid", &json!("0"))
    );
}
