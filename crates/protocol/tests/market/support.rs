//! Signed objects to be broken, and how to break them.

use aip_protocol::market::receipt::{Expected, ReceiptDraft, Rejection, RejectionDraft};
use aip_protocol::market::{Check, Members, Number, Reason, Value, manifest, receipt};
use aip_protocol::multikey::SigningKey;
use aip_protocol::multikey::VerifyingKey;
use aip_protocol::time::Timestamp;

pub(crate) fn key() -> SigningKey {
    SigningKey::from_seed([7; 32])
}

pub(crate) fn other_key() -> SigningKey {
    SigningKey::from_seed([8; 32])
}

pub(crate) fn pinned() -> Vec<VerifyingKey> {
    vec![key().public().clone()]
}

pub(crate) fn now() -> Timestamp {
    Timestamp::parse("2026-11-30T14:00:00.789Z").unwrap()
}

pub(crate) fn draft() -> ReceiptDraft<'static> {
    ReceiptDraft {
        nonce: "rcpt_00000000000000000000000000000001",
        product_id: "prod-001",
        capability_id: "translate.multi@v2",
        price_micros: 400_000,
        list_price_micros: 400_000,
        timestamp: now(),
        success: true,
        latency_ms: 12,
        sandbox: false,
    }
}

pub(crate) fn rejection() -> RejectionDraft<'static> {
    RejectionDraft {
        nonce: "blocked_00000000000000000000000000000001",
        product_id: "prod-001",
        capability_id: "translate.multi@v2",
        channel_id: Some("ch_1"),
        reason: "not | allowed",
        timestamp: now(),
        refunded: true,
        by: Rejection::Safety {
            category: "secrets",
            plugin: "guard",
        },
    }
}

pub(crate) fn signed() -> Members {
    members(&draft().sign(&key()).unwrap())
}

pub(crate) fn members(value: &Value) -> Members {
    value.as_object().unwrap().clone()
}

pub(crate) fn verify(receipt: &Members) -> Check {
    receipt::verify(&receipt.clone().into(), &pinned(), &Expected::default())
}

pub(crate) fn code(check: &Check) -> &'static str {
    check.verdict.reason().map_or("true", Reason::code)
}

pub(crate) fn with(receipt: &Members, name: &str, value: impl Into<Value>) -> Members {
    let mut changed = receipt.clone();
    changed.insert(name.to_owned(), value.into());
    changed
}

/// The receipt with another member in its signature.
pub(crate) fn with_in_signature(receipt: &Members, name: &str, value: impl Into<Value>) -> Members {
    let block = with(&members(&receipt["signature"]), name, value);
    with(receipt, "signature", block)
}

pub(crate) fn manifest() -> Members {
    let tool = Value::from([
        ("name", Value::from("a.b@v1")),
        ("description", "Übersetzt – 翻译 😀".into()),
        ("price_per_call_usd", Value::usd(10)),
    ]);
    let hub = Value::from([("trust_score", Value::from(Number::float(1.0).unwrap()))]);
    let draft = manifest::ManifestDraft {
        generated_at: now(),
        base_url: "https://hub.example".to_owned(),
        tools: vec![tool],
        by_hub: Members::from([("local".to_owned(), hub)]),
        further: Members::from([("total_capabilities".to_owned(), 1_u32.into())]),
    };
    members(&draft.sign(&key()).unwrap())
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
