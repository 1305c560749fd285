//! The market of the real hub (`docs/protocol/market.md`): capabilities are listed, found, called and paid for, and the books
//! are right whatever happens.

mod accounts;
mod calling;
mod catalog;
mod channels;
mod checks;
mod clients;
mod commerce;
mod crash;
mod crash_shared;
mod crowd;
mod doors;
mod free;
mod jobs;
mod jobs_shared;
mod money;
mod pitfalls;
mod providers;
mod reference;
mod repeating;
mod routed;
mod signed;
mod story;
mod x402;

use aip_client::Client;
use aip_client::protocol::listing::Offer;
use aip_tests::clients::agent;
use aip_tests::market::{Purse, account, call, capability, sell, settings};
use aip_tests::provider::Provider;
use aip_tests::raw::{Answer, Request, ask};
use aip_tests::{HubOptions, TestHub};
use anyhow::Result;
use serde_json::{Value, json};

/// A hub with one agent who sells, and its provider on loopback.
struct Shop {
    hub: TestHub,
    seller: Client,
    provider: Provider,
}

impl Shop {
    /// On a hub whose market has these settings; nothing is sold yet.
    async fn open(market: &str) -> Result<Self> {
        Self::open_at(settings(market)).await
    }

    async fn open_at(options: HubOptions) -> Result<Self> {
        let hub = TestHub::start_with(options);
        let seller = agent(&hub, "shop").await?;
        Ok(Self {
            seller,
            hub,
            provider: Provider::echo().await,
        })
    }

    /// A capability of this provider.
    fn offer(&self, id: &str, price: Option<&str>, more: &Value) -> Offer {
        capability(id, price, self.provider.url(), more)
    }

    /// Sells one, without schemas.
    async fn sells(&self, id: &str, price: Option<&str>) -> Result<()> {
        self.sells_with(id, price, &json!({})).await
    }

    async fn sells_with(&self, id: &str, price: Option<&str>, more: &Value) -> Result<()> {
        sell(&self.hub, &self.seller, &[self.offer(id, price, more)]).await
    }

    async fn ask(&self, request: &Request) -> Answer {
        ask(self.hub.url(), request).await
    }

    /// Calls one of this shop's, paid from `purse`.
    async fn calls(&self, id: &str, purse: &Purse, input: &Value) -> Answer {
        self.ask(&purse.on(call("shop", id, input))).await
    }

    /// A key of a new account with so many dollars.
    async fn key(&self, dollars: &str) -> Result<Purse> {
        Ok(account(&self.hub, dollars).await?.1)
    }
}

/// A schema that asks for `text`, and lets `count` be 0 to 10.
fn text_and_count() -> Value {
    json!({ "input_schema": {
        "type": "object",
        "properties": {
            "text": { "type": "string", "minLength": 1 },
            "count": { "type": "integer", "minimum": 0, "maximum": 10 },
        },
        "required": ["text"],
    } })
}

/// That an answer is a refusal in the market's form, with this status and code. Gives back its body.
fn refused(answer: &Answer, status: u16, code: &str) -> Value {
    let body = answer.json();
    let shown = answer.text();
    assert_eq!((answer.status, &body["error"]), (status, &json!(code)), "{shown}");
    assert_eq!(body["success"], false, "{shown}");
    assert_eq!(body["protocol_version"], "v2", "{shown}");
    let told = match &body["detail"] {
        Value::String(sentence) => sentence.len() >= 10,
        Value::Array(problems) => status == 422 && problems.iter().all(|problem| problem["msg"].is_string()),
        _ => false,
    };
    assert!(told, "{shown}");
    assert_eq!(answer.header("content-type"), "application/json", "{shown}");
    let waits = status == 429 && code != "trial_quota_exhausted" || code == "idempotency_in_progress";
    assert!(!waits || !answer.header("retry-after").is_empty(), "{answer:?}");
    for way in ["result", "receipt", "price_paid"] {
        assert!(body.get(way).is_none(), "{shown}");
    }
    body
}

/// That a call was made; gives back its body.
fn made(answer: &Answer) -> Value {
    let body = answer.json();
    assert_eq!(
        (answer.status, &body["success"]),
        (200, &json!(true)),
        "{}",
        answer.text()
    );
    assert_eq!(body["protocol_version"], "v2");
    for member in ["error", "ok", "safety_blocked", "payment_required"] {
        assert!(
            body.get(member).is_none(),
            "clients take {member} for a refusal: {body}"
        );
    }
    assert!(
        body["price_usd"].is_number() && body["list_price_usd"].is_number(),
        "{body}"
    );
    body
}
