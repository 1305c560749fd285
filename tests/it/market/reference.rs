//! Beside the reference hub, `aimarket-hub` 3.16, as it is in the Python package index: each verifies what the other has signed,
//! every difference between the two is known and has a reason, and each buys at the other.
//!
//! `scripts/setup test` installs it; where that was not done, these tests are skipped and say so.

mod documents;
mod federated;
mod refusals;
mod shapes;

use aip_client::protocol::market::signature::parse_key;
use aip_client::protocol::multikey::VerifyingKey;
use aip_tests::market::{INVOKE, Purse};
use aip_tests::raw::{Answer, Request, ask};
use aip_tests::reference::{ReferenceHub, Sold, reference_python};
use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Shop;

/// What both sell: one capability for nothing, and one for so much.
const PRICE: &str = "0.02";
const PRICE_USD: f64 = 0.02;

/// A schema that asks for a text.
fn asks_for_text() -> Value {
    json!({
        "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"]
    })
}

/// Our hub and the reference, which sell the same at the same provider.
struct Both {
    ours: Shop,
    theirs: ReferenceHub,
}

impl Both {
    /// `None` where the reference is not installed.
    async fn open() -> Result<Option<Self>> {
        let Some(python) = reference_python() else {
            return Ok(None);
        };
        let ours = Shop::open("demo_credit = true\ntrials_per_visitor = 3\nopen_signup = true").await?;
        let schemas = json!({ "input_schema": asks_for_text(), "output_schema": { "type": "object" } });
        ours.sells_with("free@v1", None, &schemas).await?;
        ours.sells_with("paid@v1", Some(PRICE), &schemas).await?;
        let sold = [("free@v1", 0.0), ("paid@v1", PRICE_USD)].map(|(id, price)| Sold {
            input_schema: asks_for_text(),
            ..Sold::new(id, price, ours.provider.url())
        });
        let theirs = ReferenceHub::start(&python, &sold, &[]).await?;
        Ok(Some(Self { ours, theirs }))
    }

    /// Asks both the same.
    async fn ask(&self, request: &Request) -> [Answer; 2] {
        [self.ours.ask(request).await, self.theirs.ask(request).await]
    }
}

/// A call with an input that fits.
fn fitting(capability: &str) -> Request {
    let body = json!({ "product_id": "shop", "capability_id": capability, "input": { "text": "Köln" } });
    Request::post(INVOKE, body.to_string())
}

/// An account that this hub gives to anybody, with what it gives with it, and a channel from nowhere.
async fn purses(url: &str) -> Result<[Purse; 2]> {
    let member = |answer: &Answer, at: &str| {
        let answer = answer.json();
        let found = answer.pointer(at).and_then(Value::as_str).map(str::to_owned);
        found.with_context(|| format!("no {at} in {answer}"))
    };
    let made = ask(
        url,
        &Request::post("/ai-market/v2/accounts", r#"{"label":"a test"}"#),
    )
    .await;
    let opened = ask(
        url,
        &Request::post("/ai-market/v2/channel/open", r#"{"deposit_usd":1}"#),
    )
    .await;
    let channel = Purse::Channel(
        member(&opened, "/channel/channel_id")?,
        member(&opened, "/channel/channel_secret")?,
    );
    Ok([Purse::Key(member(&made, "/api_key")?), channel])
}

/// The key of a hub, out of its own discovery document.
fn key_of(document: &Value) -> Result<VerifyingKey> {
    let key = document["signer_public_key"].as_str().context("no key")?;
    Ok(parse_key(key)?)
}
