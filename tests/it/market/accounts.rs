//! Accounts: what went through them, who owns them, and what providers earned.

use aip_tests::clients::agent;
use aip_tests::market::{Purse, account, books, micros, purse};
use aip_tests::provider::Reply;
use aip_tests::raw::Request;
use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{Shop, made, refused};

const ACCOUNT: &str = "/ai-market/v2/account";
const ACCOUNTS: &str = "/ai-market/v2/accounts";

#[tokio::test]
async fn a_credit_counts_once() -> Result<()> {
    let shop = Shop::open("").await?;
    let (id, key) = account(&shop.hub, "0.5").await?;
    let credit = |amount: &str| {
        let body = json!({ "amount": amount, "reference": "invoice-1" }).to_string();
        Request::post(format!("/admin/accounts/{id}/credits"), body)
    };
    for _ in 0..2 {
        let credited = shop.hub.operate(credit("0.5")).await;
        assert!(credited.status < 300, "{}", credited.text());
    }
    assert_eq!(shop.hub.operate(credit("0.6")).await.status, 409);
    assert_eq!(purse(&shop.hub, &key).await?, (1_000_000, 0));
    Ok(())
}

/// What an account's owner reads of it: kind, amount, balance.
fn line(entry: &Value) -> (String, i64, i64) {
    let kind = entry["kind"].as_str().unwrap_or_default().to_owned();
    (kind, micros(&entry["amount_usd"]), micros(&entry["balance_usd"]))
}

#[tokio::test]
async fn the_ledger_says_what_became_of_every_cent() -> Result<()> {
    let shop = Shop::open("").await?;
    shop.sells("paid@v1", Some("0.1")).await?;
    let key = shop.key("1").await?;
    made(&shop.calls("paid@v1", &key, &json!({})).await);
    shop.provider.answer(|_| Reply::Break);
    refused(
        &shop.calls("paid@v1", &key, &json!({})).await,
        502,
        "provider_failed",
    );
    let page = |query: String| {
        let request = key.on(Request::get(format!("{ACCOUNT}/ledger{query}")));
        let shop = &shop;
        async move { shop.ask(&request).await.json() }
    };
    let ledger = page(String::new()).await;
    let lines: Vec<_> = ledger["entries"]
        .as_array()
        .into_iter()
        .flatten()
        .map(line)
        .collect();
    let wanted = [
        ("credit", 1_000_000, 1_000_000),
        ("hold", 100_000, 900_000),
        ("capture", 100_000, 900_000),
        ("hold", 100_000, 800_000),
        ("release", 100_000, 900_000),
    ];
    assert_eq!(
        lines,
        wanted.map(|(kind, amount, balance)| (kind.to_owned(), amount, balance))
    );
    let next = page("?limit=2".to_owned()).await["next"]
        .as_u64()
        .context("no next")?;
    let rest = page(format!("?after={next}")).await;
    assert_eq!(rest["entries"].as_array().map(Vec::len), Some(3));
    Ok(())
}

#[tokio::test]
async fn a_provider_earns_and_is_paid_once() -> Result<()> {
    let shop = Shop::open("fee_bps = 1000").await?;
    shop.sells("paid@v1", Some("0.1")).await?;
    let key = shop.key("1").await?;
    made(&shop.calls("paid@v1", &key, &json!({})).await);
    let token = shop.seller.token().await?;
    let earned = shop
        .ask(&Request::get("/api/v1/market/earnings").bearer(&token))
        .await;
    assert_eq!(earned.status, 200, "{}", earned.text());
    let earned = earned.json();
    let amounts =
        ["earned", "paid_out", "owed"].map(|name| earned[name].as_str().unwrap_or_default().to_owned());
    assert_eq!(
        (amounts, &earned["calls"]),
        (["0.09", "0", "0.09"].map(str::to_owned), &json!(1))
    );
    let agent = format!("shop#{}", shop.hub.domain());
    for (amount, reference, is_taken) in [
        ("0.05", "pay-1", true),
        ("0.05", "pay-1", true),
        ("0.04", "pay-1", false),
        ("0.05", "pay-2", false),
        ("0.04", "pay-3", true),
    ] {
        let body = json!({ "agent": agent, "amount": amount, "reference": reference }).to_string();
        let answer = shop.hub.operate(Request::post("/admin/payouts", body)).await;
        assert_eq!(
            answer.status < 300,
            is_taken,
            "{amount} {reference}: {}",
            answer.text()
        );
    }
    let books = books(&shop.hub).await?;
    assert_eq!(
        (books.earned, books.paid_out, books.fees, books.held),
        (90_000, 90_000, 10_000, 0)
    );
    Ok(())
}

#[tokio::test]
async fn an_agent_makes_one_account() -> Result<()> {
    let shop = Shop::open("").await?;
    let token = agent(&shop.hub, "alice").await?.token().await?;
    let create = |body: &str| Request::post(ACCOUNTS, body);
    refused(&shop.ask(&create("{}")).await, 403, "signup_closed");
    refused(
        &shop.ask(&create("{}").bearer("nonsense")).await,
        401,
        "token_invalid",
    );
    refused(
        &shop.ask(&create("{\"grant_usd\": 5}").bearer(&token)).await,
        403,
        "grant_refused",
    );
    let text = Request::new("POST", ACCOUNTS)
        .field("content-type", "text/plain")
        .bearer(&token)
        .body("{}");
    refused(&shop.ask(&text).await, 415, "media_type_unsupported");
    let answer = shop.ask(&create("{\"label\": \"mine\"}").bearer(&token)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let made = answer.json();
    let begins = |name: &str, with: &str| made[name].as_str().is_some_and(|text| text.starts_with(with));
    assert!(
        begins("api_key", "aimk_") && begins("account_id", "acct_"),
        "{made}"
    );
    assert_eq!(micros(&made["balance_usd"]), 0);
    let body = refused(
        &shop.ask(&create("{}").bearer(&token)).await,
        409,
        "account_exists",
    );
    assert_eq!(body["account_id"], made["account_id"]);
    Ok(())
}

#[tokio::test]
async fn an_owner_has_the_account_whatever_becomes_of_its_keys() -> Result<()> {
    let shop = Shop::open("").await?;
    let alice = agent(&shop.hub, "alice").await?;
    let token = alice.token().await?;
    let made = shop
        .ask(&Request::post(ACCOUNTS, "{}").bearer(&token))
        .await
        .json();
    let key = made["api_key"].as_str().context("no key")?.to_owned();
    let looked = |key: &str| Purse::Key(key.to_owned()).on(Request::get(ACCOUNT));
    let by_owner = shop.ask(&Request::get(ACCOUNT).bearer(&token)).await.json();
    let by_key = shop.ask(&looked(&key)).await;
    assert_eq!(by_owner["account_id"], by_key.json()["account_id"]);
    assert_eq!(by_owner["owner"], json!(alice.did().map(|did| did.to_string())));
    assert!(!by_key.text().contains(&key), "a key is told twice");

    let rotate = Purse::Key(key.clone()).on(Request::post(format!("{ACCOUNT}/rotate-key"), "{}"));
    let rotated = shop.ask(&rotate).await;
    assert_eq!(rotated.status, 200, "{}", rotated.text());
    refused(&shop.ask(&looked(&key)).await, 401, "invalid_api_key");
    let fresh = rotated.json()["api_key"].as_str().context("no key")?.to_owned();
    assert_eq!(shop.ask(&looked(&fresh)).await.status, 200);
    // Who lost every key makes a new one by being who it is.
    let another = shop
        .ask(&Request::post(format!("{ACCOUNT}/keys"), "{}").bearer(&token))
        .await;
    assert_eq!(another.status, 200, "{}", another.text());

    // The operator closes it to all its keys.
    let id = by_owner["account_id"].as_str().context("no id")?;
    let standing = Request::new("PUT", format!("/admin/accounts/{id}/standing"));
    let standing = standing
        .field("content-type", "application/json")
        .body("{\"suspended\": true}");
    assert!(shop.hub.operate(standing).await.status < 300);
    refused(&shop.ask(&looked(&fresh)).await, 401, "invalid_api_key");
    Ok(())
}

#[tokio::test]
async fn anybody_opens_an_account_where_the_operator_says_so() -> Result<()> {
    let shop = Shop::open("open_signup = true").await?;
    let answer = shop.ask(&Request::post(ACCOUNTS, "{\"label\": \"me\"}")).await;
    assert_eq!(
        (answer.status, &answer.json()["success"]),
        (200, &json!(true)),
        "{}",
        answer.text()
    );
    let known = shop
        .ask(&Request::get("/.well-known/ai-market.json"))
        .await
        .json();
    assert_eq!(known["payment_rails"]["credits"]["open_signup"], true);
    Ok(())
}
