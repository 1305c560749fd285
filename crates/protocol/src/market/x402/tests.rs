//! Against the objects of the specification, and against payments that are none.

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::*;
use crate::limits::X402_HEADER_CHARS_MAX;
use crate::market::evm::EvmKey;
use crate::market::evm::transfer::Transfer;

const NOW: u64 = 1_800_000_000;

fn wallet() -> EvmKey {
    EvmKey::from_bytes(&[3; 32]).unwrap()
}

fn asked() -> Requirements {
    Requirements {
        chain_id: 84_532,
        amount: 10_000,
        asset: Address::parse("0x036CbD53842c5426634e7929541eC2318f3dCF7e").unwrap(),
        asset_name: "USDC".to_owned(),
        asset_version: "2".to_owned(),
        pay_to: Address::parse("0x209693Bc6afc0C5328bA36FaF03C514EF312287C").unwrap(),
        timeout_secs: 60,
    }
}

fn payload(change: impl FnOnce(&mut Transfer)) -> Value {
    let asked = asked();
    let mut transfer = Transfer {
        from: wallet().address(),
        to: asked.pay_to,
        value: Word::from(asked.amount),
        valid_after: Word::from(NOW - 600),
        valid_before: Word::from(NOW + 60),
        nonce: Word::from_bytes([5; 32]),
    };
    change(&mut transfer);
    let signature = wallet().sign(&transfer.digest(&asked.token()));
    let secs = |word: Word| word.to_u128().unwrap().to_string();
    json!({
        "x402Version": 2,
        "resource": { "url": "https://hub.example" },
        "accepted": asked.to_json(),
        "payload": {
            "signature": signature.to_string(),
            "authorization": {
                "from": transfer.from.to_string(),
                "to": transfer.to.to_string(),
                "value": secs(transfer.value),
                "validAfter": secs(transfer.valid_after),
                "validBefore": secs(transfer.valid_before),
                "nonce": transfer.nonce.to_string(),
            },
        },
    })
}

#[test]
fn requirements_are_the_object_of_the_specification() {
    let expected = json!({
        "scheme": "exact", "network": "eip155:84532", "amount": "10000",
        "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
        "payTo": "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
        "maxTimeoutSeconds": 60,
        "extra": { "name": "USDC", "version": "2", "assetTransferMethod": "eip3009" },
    });
    assert_eq!(asked().to_json(), expected);
    assert_eq!(Requirements::from_json(&expected), Ok(asked()));
    let with = |name: &str, value: Value| {
        let mut json = expected.clone();
        json[name] = value;
        Requirements::from_json(&json).unwrap_err()
    };
    assert_eq!(with("scheme", json!("upto")), Fault::Scheme);
    for network in [
        "base",
        "eip155:",
        "eip155:0",
        "eip155:08453",
        "eip155:-1",
        "solana:x",
    ] {
        assert_eq!(with("network", json!(network)), Fault::Network, "{network}");
    }
    assert_eq!(with("amount", json!(10_000)), Fault::Requirements);
    assert_eq!(with("payTo", json!("merchant")), Fault::Requirements);
    assert_eq!(with("extra", Value::Null), Fault::Requirements);
}

#[test]
fn the_402_object_says_what_is_to_be_paid() {
    let resource = Resource {
        url: "https://hub.example/x",
        description: "Echo",
    };
    let object = payment_required("why", &resource, &[asked()]);
    assert_eq!(object["x402Version"], 2);
    assert_eq!(object["resource"]["url"], "https://hub.example/x");
    assert_eq!(object["accepts"], json!([asked().to_json()]));
    let header = to_header(&object);
    let back: Value = serde_json::from_slice(&STANDARD.decode(header).unwrap()).unwrap();
    assert_eq!(back, object);
}

#[test]
fn a_payment_is_read_from_its_header_in_every_spelling_of_base64() {
    let object = payload(|_| {});
    for header in [to_header(&object), URL_SAFE_NO_PAD.encode(object.to_string())] {
        let payment = Payment::from_header(&header).unwrap();
        assert_eq!(payment.transfer.from, wallet().address());
        assert_eq!(payment.json, object);
        assert_eq!(payment.check(&asked(), NOW, NOW + 30), Ok(()));
    }
}

#[test]
fn what_is_no_payment_is_told_apart() {
    let fault = |change: &dyn Fn(&mut Value)| {
        let mut object = payload(|_| {});
        change(&mut object);
        Payment::from_json(object).unwrap_err()
    };
    assert_eq!(fault(&|object| object["x402Version"] = json!(1)), Fault::Version);
    assert_eq!(fault(&|object| object["accepted"] = Value::Null), Fault::Scheme);
    assert_eq!(fault(&|object| object["payload"] = json!({})), Fault::Payload);
    let signature = |text: &str| fault(&|object| object["payload"]["signature"] = json!(text));
    assert_eq!(signature("0x00"), Fault::Signature);
    let order =
        |name: &str, value: Value| fault(&|object| object["payload"]["authorization"][name] = value.clone());
    assert_eq!(order("from", json!("alice")), Fault::Payload);
    assert_eq!(order("value", json!("1e4")), Fault::Payload);
    assert_eq!(order("value", json!(10_000)), Fault::Payload);
    assert_eq!(order("nonce", Value::Null), Fault::Payload);
    for header in [
        "",
        "%%%",
        "bnVsbA==",
        "0xdeadbeef",
        &"A".repeat(X402_HEADER_CHARS_MAX + 4),
    ] {
        assert!(Payment::from_header(header).is_err());
    }
}

#[test]
fn a_payment_pays_exactly_what_is_asked() {
    let fault = |change: &dyn Fn(&mut Transfer)| {
        let payment = Payment::from_json(payload(change)).unwrap();
        payment.check(&asked(), NOW, NOW + 30).unwrap_err()
    };
    assert_eq!(
        fault(&|transfer| transfer.value = Word::from(9_999_u64)),
        Fault::Value
    );
    assert_eq!(
        fault(&|transfer| transfer.value = Word::from(10_001_u64)),
        Fault::Value
    );
    assert_eq!(
        fault(&|transfer| transfer.to = wallet().address()),
        Fault::Recipient
    );
    assert_eq!(
        fault(&|transfer| transfer.valid_after = Word::from(NOW)),
        Fault::ValidAfter
    );
    assert_eq!(
        fault(&|transfer| transfer.valid_before = Word::from(NOW + 30)),
        Fault::ValidBefore
    );
    assert_eq!(
        fault(&|transfer| transfer.from = asked().pay_to),
        Fault::Signature
    );
}

/// The terms may have changed since they were told.
#[test]
fn a_payment_is_for_the_terms_of_now() {
    let payment = Payment::from_json(payload(|_| {})).unwrap();
    let against = |asked: Requirements| payment.check(&asked, NOW, NOW).unwrap_err();
    assert_eq!(
        against(Requirements {
            amount: 20_000,
            ..asked()
        }),
        Fault::Requirements
    );
    assert_eq!(
        against(Requirements {
            chain_id: 8_453,
            ..asked()
        }),
        Fault::Network
    );
    assert_eq!(
        against(Requirements {
            asset: asked().pay_to,
            ..asked()
        }),
        Fault::Requirements
    );
    assert_eq!(
        against(Requirements {
            asset_name: "USD Coin".to_owned(),
            ..asked()
        }),
        Fault::Requirements
    );
    assert_eq!(
        payment.check(
            &Requirements {
                timeout_secs: 5,
                ..asked()
            },
            NOW,
            NOW
        ),
        Ok(())
    );
}

#[test]
fn what_became_of_it_is_the_object_of_the_specification() {
    let payer = wallet().address();
    let done = settled(&asked(), payer, "0xabc");
    assert_eq!(
        done,
        json!({ "success": true, "transaction": "0xabc", "network": "eip155:84532", "payer": payer.to_string() })
    );
    let not = not_settled(&asked(), payer, Fault::Funds.as_str());
    assert_eq!(
        (&not["success"], &not["errorReason"]),
        (&json!(false), &json!("insufficient_funds"))
    );
}
