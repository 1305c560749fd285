//! Arbitrary and nearly right input: no parser panics, and what is accepted keeps its promises.
//!
//! The functions are those of the fuzz targets, run here on generated input.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "../../../fuzz/src/protocol.rs"]
#[expect(
    unreachable_pub,
    reason = "the same file is in the library of the fuzz targets"
)]
mod targets;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

type Target = fn(&[u8]);

const TARGETS: [Target; 13] = [
    targets::json,
    targets::envelope,
    targets::operation,
    targets::identifier,
    targets::did,
    targets::multikey,
    targets::timestamp,
    targets::signature,
    targets::push,
    targets::hub_document,
    targets::request_signature,
    targets::market,
    targets::x402,
];

/// Good input of each parser, to be broken.
const SEEDS: [&str; 17] = [
    r#"{"a":[1,true,"é\ud83d\ude00"],"b":{"c":null},"n":-9007199254740991}"#,
    r#"{"price_usd":1e-05,"success":true,"signature":{"algorithm":"ed25519","version":2,"value":"AAAA-_+/"}}"#,
    "https://alice:s3cr3t@h.example:8080/family/?x=1#y",
    "-1059438285926254.25e-3",
    "alice#aigentix.org",
    "alice%23localhost%3A8080",
    "did:aip:localhost%3A8080:alice",
    "did%3Aaip%3Alocalhost%253A8080%3Aalice",
    "shop#пример.рф",
    "z6MkgwLiwrtrFmBp6tKwZkM63gJ8U8mNDNPGoWPMxxv2PCSN",
    "z6LSoUKKWrcQREfNtkq8VEyPuXiXRgx9B7xnEMZfRZDx6mEs",
    "2026-11-29T20:15:30.123456789Z",
    "2016-12-31T23:59:60Z",
    "ed25519:z5n8LkDmavbev4qepB5fZzFCeW5PZTv1tEJQ3bKpu8NM7A5iGh6JApedj6MHuVhmzPGTkwzTYC9ctw3DvMV7V1eV4",
    "xn--e1afmkfd.xn--p1ai:65535",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "115792089237316195423570985008687907853269984665640564039457584007913129639935",
];

fn run_all(data: &[u8]) {
    for target in TARGETS {
        target(data);
    }
}

fn load(file: &str) -> serde_json::Value {
    let path = format!("{}/../../tests/vectors/aip/{file}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The payment of x402's own documents, with the signature of another one.
fn payment() -> serde_json::Value {
    let signature = load("../aimarket/sdk/debit_authorization.json")["expectedSignature"].clone();
    json!({
        "x402Version": 2,
        "accepted": {
            "scheme": "exact", "network": "eip155:84532", "amount": "10000",
            "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
            "payTo": "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
            "maxTimeoutSeconds": 60, "extra": { "name": "USDC", "version": "2" },
        },
        "payload": {
            "signature": signature,
            "authorization": {
                "from": "0x857b06519E91e3A54538791bDbb0E22373e36b66",
                "to": "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
                "value": "10000", "validAfter": "1740672089", "validBefore": "1740672154",
                "nonce": "0xf3746613c2d920b5fdabc0856f2aeb2d4f88ee6037b8cc5d04a71a4462f13480",
            },
        },
    })
}

/// What is good by each of these targets, from the shared vectors.
fn good_objects() -> [(Target, Vec<u8>); 7] {
    let files = ["envelopes.json", "operations.json", "federation_items.json"];
    let [envelopes, operations, items] = files.map(load);
    let items = &items["vectors"][0]["input"]["items"];
    let push = json!({ "aip": "1", "domain": "aigentix.org", "epoch": "e1", "items": items });
    let wire = envelopes["vectors"][2]["input"]["wire"]
        .as_str()
        .unwrap()
        .as_bytes()
        .to_vec();
    let operation = serde_json::to_vec(&operations["vectors"][0]["input"]).unwrap();
    let document = load("discovery.json")["vectors"][0]["input"]["document"].to_string();
    let receipt = load("../aimarket/vectors/receipt-v2-signed.json").to_string();
    let headers = load("http_signatures.json")["vectors"][0]["expected"]["headers"].clone();
    let [input, signature] = ["Signature-Input", "Signature"].map(|name| headers[name].as_str().unwrap());
    [
        (targets::envelope, wire),
        (targets::operation, operation),
        (targets::push, push.to_string().into_bytes()),
        (targets::hub_document, document.into_bytes()),
        (targets::market, receipt.into_bytes()),
        (targets::x402, payment().to_string().into_bytes()),
        (
            targets::request_signature,
            format!("{input}\n{signature}").into_bytes(),
        ),
    ]
}

#[test]
fn row_07_wide_characters_at_every_offset() {
    for seed in SEEDS {
        for (offset, _) in seed.char_indices() {
            for wide in ["é", "😀", "\u{0}", "%", "#", "\u{202e}"] {
                let mut broken = seed.to_owned();
                broken.insert_str(offset, wide);
                run_all(broken.as_bytes());
            }
        }
    }
}

#[test]
fn every_truncation_and_every_changed_byte_of_a_good_object() {
    for (target, good) in good_objects() {
        for offset in 0..good.len() {
            run_all(&good[..offset]);
            for byte in [0, b'"', b'{', 0x80, 0xff] {
                let mut broken = good.clone();
                broken[offset] = byte;
                targets::envelope(&broken);
                targets::operation(&broken);
                target(&broken);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes(data in vec(any::<u8>(), 0..512)) {
        run_all(&data);
    }

    #[test]
    fn any_text(text in "\\PC{0,64}") {
        run_all(text.as_bytes());
    }

    #[test]
    fn texts_of_the_letters_that_matter(text in "[a-z0-9A-F#%:.@_\\-did\\[\\]{}\",TZ+zé😀]{0,40}") {
        run_all(text.as_bytes());
    }

    #[test]
    fn seeds_with_a_slice_replaced(
        seed in 0..SEEDS.len(), cut in any::<(prop::sample::Index, prop::sample::Index)>(), patch in "\\PC{0,4}",
    ) {
        let letters: Vec<char> = SEEDS[seed].chars().collect();
        let (a, b) = (cut.0.index(letters.len()), cut.1.index(letters.len()));
        let mut text: String = letters[..a.min(b)].iter().collect();
        text.push_str(&patch);
        text.extend(&letters[a.max(b)..]);
        run_all(text.as_bytes());
    }
}
