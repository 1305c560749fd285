//! What another hub does for the one that is asked: its receipt is checked with the key that it publishes itself.

use aip_client::market::{Call, Purse};
use aip_client::protocol::market::receipt::{Expected, ReceiptDraft};
use aip_client::protocol::market::{Members, Reason, Value as Exact, Verdict, document, signature};
use aip_client::protocol::multikey::SigningKey;
use aip_client::protocol::time::Timestamp;
use serde_json::{Map, Value, json};

use crate::aip::Aip;
use crate::fake::{FakeHub, Fault};
use crate::support::builder;

const INVOKE: &str = "/ai-market/v2/invoke";
const WELL_KNOWN: &str = "/.well-known/ai-market.json";

fn plain(value: &Exact) -> Value {
    serde_json::to_value(value).unwrap()
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed([seed; 32])
}

/// A receipt for `echo@v1` of `prod`; the scripted hubs sign with the key of seed 1.
fn receipt(seed: u8, capability_id: &str, price_micros: u64) -> Value {
    let draft = ReceiptDraft {
        nonce: "rcpt_00112233445566778899aabbccddeeff",
        product_id: "prod",
        capability_id,
        price_micros,
        list_price_micros: price_micros,
        timestamp: Timestamp::from_unix_secs(1_764_500_000),
        success: true,
        latency_ms: 12,
        sandbox: false,
    };
    plain(&draft.sign(&key(seed)).unwrap())
}

fn routed(mode: &str, receipt: &Value, price: f64) -> Value {
    json!({"success": true, "result": 1, "price_usd": price, "list_price_usd": 0.01, "route_mode": mode,
        "charged_usd": 0.011, "routing_fee_usd": 0.001, "receipt": receipt, "hub_receipt": self::receipt(1, "echo@v1", 11_000),
        "receipt_verified": true, "protocol_version": "v2"})
}

/// The document of a hub whose key this is.
fn published(seed: u8, is_signed: bool) -> Value {
    let key = key(seed);
    let members = Members::from([(
        "signer_public_key".to_owned(),
        Exact::from(signature::key_text(key.public())),
    )]);
    if is_signed {
        plain(&document::sign(members, &key))
    } else {
        plain(&members.into())
    }
}

fn call(hub: &FakeHub) -> Call {
    Call::new("prod", "echo@v1", Map::new()).source_hub(hub.url())
}

/// Pitfall 3: not with the key of the hub that was asked.
#[tokio::test]
async fn a_receipt_is_checked_with_the_key_of_the_hub_that_did_the_work() {
    let (asked, peer) = (FakeHub::start().await, FakeHub::start().await);
    peer.fail(WELL_KNOWN, [Fault::Answer(200, published(9, false))]);
    let client = builder(&asked).build().unwrap();
    let call = call(&peer);
    let of = |seed: u8| receipt(seed, "echo@v1", 10_000);
    for (mode, receipt, price, is_true) in [
        ("broker", of(9), 0.01, true),
        // Where the hub that was asked sells, what it took is in its own receipt.
        ("reseller", of(9), 0.011, true),
        ("broker", of(9), 0.5, false),
        ("broker", of(1), 0.01, false),
        ("broker", self::receipt(9, "other@v1", 10_000), 0.01, false),
    ] {
        asked.fail(INVOKE, [Fault::Answer(200, routed(mode, &receipt, price))]);
        let invoked = client.invoke(&call, &Purse::Nothing).await.unwrap();
        let check = client.check_invoked(&call, &invoked).await.unwrap().unwrap();
        assert_eq!(
            check.verdict.is_true(),
            is_true,
            "{mode} {price} {:?}",
            check.verdict
        );
        let own = client.check_hub_receipt(&call, &invoked).await.unwrap().unwrap();
        assert_eq!(
            own.verdict,
            Verdict::True,
            "with the key of the hub that was asked"
        );
    }
    assert_eq!(peer.count(WELL_KNOWN), 1, "the key is asked for once");
    let sent: Value = serde_json::from_slice(&asked.bodies(INVOKE)[0]).unwrap();
    assert_eq!(sent["source_hub"], json!(peer.url()));
}

/// Pitfalls 16 and 17: a key that cannot be had makes nothing false, and is not asked for at once again.
#[tokio::test]
async fn without_a_key_nothing_is_said() {
    let (asked, peer) = (FakeHub::start().await, FakeHub::start().await);
    let client = builder(&asked).build().unwrap();
    let call = call(&peer);
    let forged = {
        let mut document = published(9, true);
        document["name"] = json!("changed");
        document
    };
    peer.fail(WELL_KNOWN, [Fault::Answer(200, forged)]);
    for _ in 0..2 {
        let answer = routed("broker", &receipt(9, "echo@v1", 10_000), 0.01);
        asked.fail(INVOKE, [Fault::Answer(200, answer)]);
        let invoked = client.invoke(&call, &Purse::Nothing).await.unwrap();
        let check = client.check_invoked(&call, &invoked).await.unwrap().unwrap();
        assert_eq!(check.verdict, Verdict::NotChecked(Reason::NoKey));
    }
    assert_eq!(peer.count(WELL_KNOWN), 1, "not again within a minute");
    let wrong = client
        .check_receipt_of("ftp://peer.example", b"{}", &Expected::default())
        .await;
    assert!(wrong.is_err());
}

#[tokio::test]
async fn the_command_says_who_signed_what() {
    let (asked, peer) = (FakeHub::start().await, FakeHub::start().await);
    let alice = Aip::new(&asked);
    let url = peer.url();
    let missing = json!({"success": false, "error": "source_hub_required", "detail": "x", "source_hub": url,
        "source_hubs": [url], "protocol_version": "v2"});
    asked.fail(INVOKE, [Fault::Answer(400, missing)]);
    let said = alice.fails(3, &["invoke", "prod", "echo@v1"]).await;
    assert!(said.contains(&format!("--source-hub {url}")), "{said}");
    peer.fail(WELL_KNOWN, [Fault::Answer(200, published(9, true))]);
    let answer = routed("broker", &receipt(9, "echo@v1", 10_000), 0.01);
    asked.fail(INVOKE, [Fault::Answer(200, answer)]);
    let output = alice
        .run(&["invoke", "prod", "echo@v1", "--source-hub", &url])
        .await;
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(
        notes.contains("0.01 USD were paid, and 0.011 USD to the hub")
            && notes.contains(&format!("signed by {url}"))
            && notes.contains("signed by the hub"),
        "{notes}"
    );
    let file = alice.path("receipt.json");
    std::fs::write(&file, receipt(9, "echo@v1", 10_000).to_string()).unwrap();
    alice.fails(1, &["receipt", "verify", "receipt.json"]).await;
    peer.fail(WELL_KNOWN, [Fault::Answer(200, published(9, true))]);
    alice
        .succeeds(&["receipt", "verify", "receipt.json", "--source-hub", &url])
        .await;
}
