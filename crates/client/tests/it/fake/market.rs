//! The market of the scripted hub: two capabilities, one account, channels from nothing, and receipts that are really signed.

use std::collections::BTreeMap;

use aip_client::protocol::market::receipt::ReceiptDraft;
use aip_client::protocol::market::{Members, Value as Exact, document, signature};
use aip_client::protocol::multikey::SigningKey;
use aip_client::protocol::time::Timestamp;
use serde_json::{Value, json};

use super::FakeHub;

/// The key of the only account.
pub(crate) const API_KEY: &str = "aimk_good";
/// The secret of every channel.
pub(crate) const SECRET: &str = "chs_good";
/// What a call of `paid@v1` costs, in millionths.
const PRICE: u64 = 10_000;

/// What the market knows.
#[derive(Debug, Default)]
pub(crate) struct Market {
    /// Answers by idempotency key.
    answers: BTreeMap<String, Value>,
    /// What is left in the channels, in millionths.
    pub(crate) channels: BTreeMap<String, u64>,
    /// How often a provider was called.
    pub(crate) calls: usize,
    /// Signs receipts with a key that is not the hub's.
    pub(crate) forges: bool,
    /// What receipts say was called instead.
    pub(crate) attests: Option<&'static str>,
    /// Whether the account was made.
    pub(crate) has_account: bool,
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed([seed; 32])
}

/// The key that the hub publishes, in base64.
pub(crate) fn key_text() -> String {
    signature::key_text(key(1).public())
}

fn plain(value: &Exact) -> Value {
    serde_json::to_value(value).unwrap()
}

fn refusal(status: u16, code: &str, members: &Value) -> (u16, Value) {
    let mut answer =
        json!({"success": false, "error": code, "detail": "as scripted", "protocol_version": "v2"});
    for (name, value) in members.as_object().unwrap() {
        answer[name] = value.clone();
    }
    (status, answer)
}

/// A header of the request, by its name in lower case.
fn header(head: &str, name: &str) -> Option<String> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    })
}

impl FakeHub {
    pub(super) fn well_known_market(&self) -> (u16, Value) {
        let members = Members::from([
            ("name".to_owned(), Exact::from(self.domain.as_str())),
            ("signer_public_key".to_owned(), Exact::from(key_text())),
        ]);
        (200, plain(&document::sign(members, &key(1))))
    }

    pub(super) fn market_door(&self, method: &str, parts: &[&str], body: &[u8]) -> (u16, Value) {
        let head = self.state().heads.last().cloned().unwrap_or_default();
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        match (method, parts) {
            ("POST", ["invoke"]) => self.invoke(&head, &body),
            ("POST", ["channel", "open"]) => self.open_channel(&head, &body),
            ("GET", ["channel", id]) => self.shown(&head, id),
            ("POST", ["channel", "topup"]) => self.top_up(&head, &body),
            ("POST", ["channel", "close"]) => self.close_channel(&head, &body),
            ("POST", ["accounts"]) => self.create_account(&head),
            ("GET", ["account"]) => account(&head),
            ("GET", ["account", "ledger"]) => (
                200,
                json!({"success": true, "next": null, "entries": [
                    {"number": 1, "kind": "credit", "amount_usd": 5.0, "reference": "r", "balance_usd": 5.0, "at": "2026-11-30T12:00:00Z"}
                ]}),
            ),
            ("POST", ["account", "keys"]) => (
                200,
                json!({"api_key": "aimk_second", "key": {"key_id": "key_2", "label": body["label"]}}),
            ),
            ("POST", ["account", "rotate-key"]) if header(&head, "x-api-key").as_deref() == Some(API_KEY) => {
                (
                    200,
                    json!({"success": true, "api_key": "aimk_next", "key_id": "key_3"}),
                )
            }
            ("DELETE", ["account", "keys", "key_2"]) => (200, json!({"success": true})),
            ("GET", ["receipts", nonce]) => match self.receipt(nonce) {
                Some(receipt) => (200, json!({"success": true, "receipt": receipt})),
                None => refusal(404, "receipt_not_found", &json!({})),
            },
            _ => refusal(404, "not_found", &json!({})),
        }
    }

    fn receipt(&self, nonce: &str) -> Option<Value> {
        let state = self.state();
        let mut receipts = state
            .market
            .answers
            .values()
            .map(|answer| answer["receipt"].clone());
        receipts.find(|receipt| receipt["nonce"] == nonce)
    }

    fn invoke(&self, head: &str, body: &Value) -> (u16, Value) {
        let once = header(head, "idempotency-key").expect("every call is one");
        if let Some(answer) = self.state().market.answers.get(&once) {
            let mut answer = answer.clone();
            answer["scripted_replay"] = true.into();
            return (200, answer);
        }
        let price = match body["capability_id"].as_str().unwrap() {
            "free@v1" => 0,
            "paid@v1" => PRICE,
            "fails@v1" => return refusal(502, "provider_failed", &json!({"reason": "timed_out"})),
            _ => return refusal(404, "capability_unknown", &json!({})),
        };
        if body["max_price_usd"].as_f64().is_some_and(|max| max < usd(price)) {
            return refusal(
                409,
                "price_limit_exceeded",
                &json!({"current_price_usd": usd(price)}),
            );
        }
        let left = match self.pay(head, price) {
            Ok(left) => left,
            Err(refused) => return refused,
        };
        self.state().market.calls += 1;
        let receipt = self.signed(body, price);
        let number = format!("call-{}", self.state().market.calls);
        let mut answer = json!({"success": true, "invocation_id": number, "result": {"echo": body["input"]}, "receipt": receipt,
            "price_usd": usd(price), "list_price_usd": usd(price), "latency_ms": 12, "protocol_version": "v2"});
        if let Some(left) = left {
            answer["remaining_balance"] = usd(left).into();
        }
        self.state().market.answers.insert(once, answer.clone());
        (200, answer)
    }

    fn pay(&self, head: &str, price: u64) -> Result<Option<u64>, (u16, Value)> {
        if let Some(id) = header(head, "x-payment-channel") {
            let mut state = self.state();
            let left = state.market.channels.get_mut(&id);
            let is_good = header(head, "x-payment-channel-secret").as_deref() == Some(SECRET);
            let left = left
                .filter(|_| is_good)
                .ok_or_else(|| refusal(402, "payment_failed", &json!({})))?;
            *left -= price;
            return Ok(Some(*left));
        }
        match header(head, "x-api-key") {
            Some(key) if key != API_KEY => Err(refusal(401, "invalid_api_key", &json!({}))),
            None if price > 0 => Err(refusal(402, "payment_required", &json!({"needed": usd(price)}))),
            _ => Ok(None),
        }
    }

    fn signed(&self, body: &Value, price: u64) -> Value {
        let state = self.state();
        let market = &state.market;
        let attests: Option<&str> = market.attests;
        let draft = ReceiptDraft {
            nonce: &format!("rcpt_{:032x}", market.calls),
            product_id: body["product_id"].as_str().unwrap(),
            capability_id: attests.unwrap_or(body["capability_id"].as_str().unwrap()),
            price_micros: price,
            list_price_micros: price,
            timestamp: Timestamp::from_unix_millis(1_764_500_000_000),
            success: true,
            latency_ms: 12,
            sandbox: false,
        };
        plain(&draft.sign(&key(if market.forges { 2 } else { 1 })).unwrap())
    }

    fn open_channel(&self, head: &str, body: &Value) -> (u16, Value) {
        if header(head, "x-api-key").is_some_and(|key| key != API_KEY) {
            return refusal(401, "invalid_api_key", &json!({}));
        }
        let mut state = self.state();
        let id = format!("ch_{}", state.market.channels.len());
        state
            .market
            .channels
            .insert(id.clone(), micros(&body["deposit_usd"]));
        let mut channel = channel(&id, micros(&body["deposit_usd"]));
        channel["channel_secret"] = SECRET.into();
        (200, json!({"success": true, "channel": channel}))
    }

    fn shown(&self, head: &str, id: &str) -> (u16, Value) {
        let left = self.state().market.channels.get(id).copied();
        match left.filter(|_| is_opened(head)) {
            Some(left) => (200, json!({"success": true, "channel": channel(id, left)})),
            None => refusal(404, "channel_not_found", &json!({})),
        }
    }

    fn top_up(&self, head: &str, body: &Value) -> (u16, Value) {
        assert!(header(head, "idempotency-key").is_some(), "done once");
        let id = body["channel_id"].as_str().unwrap().to_owned();
        let mut state = self.state();
        let left = state.market.channels.get_mut(&id).unwrap();
        *left += micros(&body["amount_usd"]);
        (200, json!({"success": true, "channel": channel(&id, *left)}))
    }

    fn close_channel(&self, head: &str, body: &Value) -> (u16, Value) {
        let id = body["channel_id"].as_str().unwrap();
        let left = self.state().market.channels.remove(id);
        match left.filter(|_| is_opened(head)) {
            Some(left) => (
                200,
                json!({"success": true, "settlement": {
                    "channel_id": id, "used_usd": 0.01, "refund_usd": usd(left), "refund_status": "executed", "status": "settled",
                }}),
            ),
            None => refusal(404, "channel_not_found", &json!({})),
        }
    }

    fn create_account(&self, head: &str) -> (u16, Value) {
        assert!(header(head, "authorization").is_some_and(|token| token.starts_with("Bearer ")));
        if std::mem::replace(&mut self.state().market.has_account, true) {
            return refusal(409, "account_exists", &json!({"account_id": "acct_1"}));
        }
        (
            200,
            json!({"success": true, "account_id": "acct_1", "api_key": API_KEY, "key_id": "key_1", "balance_usd": 0.0}),
        )
    }
}

fn account(head: &str) -> (u16, Value) {
    assert!(header(head, "authorization").is_some(), "the owner");
    (
        200,
        json!({"success": true, "account_id": "acct_1", "balance_usd": 4.99, "held_usd": 0.0, "spent_usd": 0.01,
        "budget_usd": null, "keys": [{"key_id": "key_1", "label": "", "budget_usd": null, "spent_usd": 0.01}]}),
    )
}

fn is_opened(head: &str) -> bool {
    header(head, "x-payment-channel-secret").as_deref() == Some(SECRET)
}

fn channel(id: &str, left: u64) -> Value {
    json!({"channel_id": id, "balance_usd": usd(left), "original_deposit_usd": 1.0, "used_usd": 0.0, "status": "open",
        "opened_at": "2026-11-30T12:00:00Z", "expires_at": "2026-12-01T12:00:00Z"})
}

fn usd(micros: u64) -> f64 {
    f64::from(u32::try_from(micros).unwrap()) / 1e6
}

fn micros(dollars: &Value) -> u64 {
    format!("{:.0}", dollars.as_f64().unwrap() * 1e6).parse().unwrap()
}
