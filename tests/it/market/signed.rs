//! Providers that sign what they answer.

use aip_client::protocol::market::Value as Exact;
use aip_client::protocol::market::digest::sha256_hex;
use aip_client::protocol::market::signature::key_text;
use aip_client::protocol::multikey::SigningKey;
use aip_tests::market::{listed, purse, sell};
use aip_tests::provider::{Call, Provider, Reply};
use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Shop, made, refused};

fn key() -> SigningKey {
    SigningKey::from_seed([61; 32])
}

/// The text that AIMarket signs.
fn spelled(value: Value) -> Vec<u8> {
    Exact::from(value).to_bytes()
}

/// An echo, with a signature over this input.
fn signed(call: &Call, input: &Value) -> Reply {
    let result = json!({ "echo": call.input() });
    let text = spelled(json!({
        "capability_id": call.body["capability_id"], "product_id": call.body["product_id"],
        "input_sha256": sha256_hex(&spelled(input.clone())), "result": result,
    }));
    let signature = STANDARD.encode(key().sign_bytes(&text));
    let body = json!({ "result": result }).to_string().into_bytes();
    Reply::Raw(200, format!("X-Provider-Signature: {signature}\r\n"), body)
}

#[tokio::test]
async fn an_answer_that_was_promised_signed_is_paid_only_where_it_is() -> Result<()> {
    let mut shop = Shop::open("").await?;
    shop.provider = Provider::answering(|call| match call.input()["as"].as_str() {
        Some("signed") => signed(call, call.input()),
        Some("for another call") => signed(call, &json!({ "as": "signed" })),
        _ => Reply::echo(call),
    })
    .await;
    let invoke = json!({ "url": shop.provider.url(), "public_key": key_text(key().public()) });
    let offer = listed("echo@v1", Some("0.01"), &invoke, &json!({}));
    sell(&shop.hub, &shop.seller, &[offer]).await?;
    let purse_of = shop.key("1").await?;
    let input = json!({ "as": "signed", "n": 1.5, "ü": [1, 2] });
    let body = made(&shop.calls("echo@v1", &purse_of, &input).await);
    assert_eq!(body["result"], json!({ "echo": input }));
    for unsigned in ["for another call", "nobody"] {
        let answer = shop.calls("echo@v1", &purse_of, &json!({ "as": unsigned })).await;
        let body = refused(&answer, 502, "provider_failed");
        assert_eq!(body["reason"], "answer_unsigned", "{body}");
    }
    assert_eq!(purse(&shop.hub, &purse_of).await?, (990_000, 0));
    Ok(())
}
