//! AIMarket v2: its signed objects, its negatives, and the two digests of 47 real tools.

use std::collections::BTreeMap;

use aip_protocol::market::signature::parse_key;
use aip_protocol::market::{Check, Value, Verdict, announce, digest, document, manifest, origin, receipt};
use aip_protocol::multikey::{SigningKey, VerifyingKey};

use crate::support::{hex_32, load, path, read, text};

fn object(file: &str) -> Value {
    Value::parse(&read(&format!("aimarket/vectors/{file}"))).unwrap()
}

/// The key of the vectors: test 1 of RFC 8032.
fn key() -> SigningKey {
    SigningKey::from_seed(hex_32(&load("rfc8032-7748/vectors.json")["ed25519"][0]["secret"]))
}

fn pinned() -> [VerifyingKey; 1] {
    [parse_key("11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=").unwrap()]
}

fn verify(file: &str) -> Check {
    let object = object(file);
    let name = file.trim_start_matches("negative/");
    if name.starts_with("receipt") {
        receipt::verify(&object, &pinned(), &receipt::Expected::default())
    } else if name.starts_with("manifest") {
        manifest::verify(&object, &pinned())
    } else {
        announce::verify(&object, &pinned())
    }
}

/// What each file should come to: a code of a refusal, or what is not covered.
const FILES: [(&str, Result<&[&str], &str>); 16] = [
    ("receipt-signed.json", Ok(&[])),
    ("receipt-v2-signed.json", Ok(&[])),
    ("manifest-signed.json", Ok(&["base_url", "products_count"])),
    (
        "federation-announce-signed.json",
        Ok(&["hub_name", "signer_public_key"]),
    ),
    ("manifest-signed.legacy-2026-05-21.json", Err("signature-invalid")),
    ("manifest-signed.legacy-2026-05-24.json", Err("signature-invalid")),
    ("receipt-signed.legacy-2026-05-21.json", Err("signature-invalid")),
    (
        "negative/announce-tampered-hub-url.json",
        Err("signature-invalid"),
    ),
    (
        "negative/manifest-legacy-3field-canonical.json",
        Err("signature-invalid"),
    ),
    ("negative/manifest-tampered-by-hub.json", Err("signature-invalid")),
    ("negative/manifest-tampered-price.json", Err("signature-invalid")),
    ("negative/receipt-flipped-success.json", Err("signature-invalid")),
    ("negative/receipt-stale-timestamp.json", Err("signature-invalid")),
    ("negative/receipt-tampered-latency.json", Err("signature-invalid")),
    ("negative/receipt-wrong-signer.json", Err("key-not-pinned")),
    (
        "negative/receipt-v2-downgraded-to-v1.json",
        Ok(&[
            "_expect",
            "channel_id",
            "delivery_reasons",
            "reason",
            "refunded",
            "trace_id",
            "type",
            "verify_score",
        ]),
    ),
];

/// Not signed with Ed25519 over one of these texts; the first is a discovery document.
const OTHERS: [&str; 5] = [
    "well-known.json",
    "debit-authorization.json",
    "payer-proof.json",
    "mandate-signed.json",
    "provenance-receipt-signed.json",
];

#[test]
fn all_21_vectors_are_here_and_come_to_what_they_should() {
    for (file, expected) in FILES {
        let check = verify(file);
        match (&check.verdict, expected) {
            (Verdict::True, Ok(uncovered)) => {
                assert_eq!(check.uncovered, uncovered, "{file}");
                assert_eq!(check.key, Some(pinned()[0].clone()), "{file}");
            }
            (Verdict::False(reason), Err(code)) => assert_eq!(reason.code(), code, "{file}"),
            (verdict, _) => panic!("{file}: {verdict:?}"),
        }
        let negative = object(file).get("_expect").cloned();
        if let Some(reason) = negative.and_then(|expect| expect.get("reason").cloned()) {
            let is_partial = reason.as_str() == Some("version-under-covers-content");
            assert_eq!(
                expected.err().or(Some("version-under-covers-content")),
                reason.as_str(),
                "{file}"
            );
            assert_eq!(
                is_partial,
                check.verdict.is_true() && !receipt::is_evidence_covered(&check)
            );
        }
    }
    for file in OTHERS {
        assert!(object(file).as_object().is_some());
    }
    let mut found = BTreeMap::new();
    for folder in ["", "negative"] {
        let files = std::fs::read_dir(path(&format!("aimarket/vectors/{folder}"))).unwrap();
        let is_json = |name: &str| name.rsplit('.').next() == Some("json");
        let count = files
            .filter(|entry| is_json(entry.as_ref().unwrap().file_name().to_str().unwrap()))
            .count();
        found.insert(folder, count);
    }
    assert_eq!(found, BTreeMap::from([("", 12), ("negative", 9)]));
    assert_eq!(FILES.len() + OTHERS.len(), 21);
}

#[test]
fn the_same_objects_signed_here_have_the_same_signatures() {
    let value = |object: &Value| text_of(object.get("signature").unwrap().get("value").unwrap());
    for file in ["receipt-signed.json", "receipt-v2-signed.json"] {
        let theirs = object(file);
        let ours = receipt::sign(theirs.as_object().unwrap().clone(), &key()).unwrap();
        assert_eq!(value(&ours), value(&theirs), "{file}");
        let version = |object: &Value| object.get("signature").unwrap().get("version").cloned();
        assert_eq!(version(&ours), version(&theirs), "{file}");
    }
    let theirs = object("manifest-signed.json");
    let ours = manifest::sign(theirs.as_object().unwrap().clone(), &key()).unwrap();
    assert_eq!(ours, theirs);
    let theirs = object("federation-announce-signed.json");
    let draft = announce::AnnounceDraft {
        hub_url: theirs.get("hub_url").unwrap().as_str().unwrap(),
        well_known_url: theirs.get("well_known_url").unwrap().as_str().unwrap(),
        capabilities_count: 5,
        hub_name: "Test AI Hub",
    };
    assert_eq!(value(&draft.sign(&key()).unwrap()), value(&theirs));
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn the_discovery_document_publishes_the_key_and_is_not_signed() {
    let theirs = object("well-known.json");
    assert_eq!(origin::published_key(&theirs).unwrap(), pinned()[0]);
    let check = document::verify(&theirs, &pinned());
    assert_eq!(check.verdict.reason().unwrap().code(), "signature-missing");
    let signed = document::sign(theirs.as_object().unwrap().clone(), &key());
    let check = document::verify(&signed, &pinned());
    assert_eq!((check.verdict, check.uncovered), (Verdict::True, Vec::new()));
}

#[test]
fn the_digests_of_47_real_tools_are_those_of_python() {
    let file = [
        env!("CARGO_MANIFEST_DIR"),
        "..",
        "..",
        "tests",
        "data",
        "live_manifest.json",
    ];
    let bytes = std::fs::read(file.iter().collect::<std::path::PathBuf>()).unwrap();
    let capture = Value::parse(&bytes).unwrap();
    let tools = capture.get("tools").unwrap();
    assert_eq!(tools.as_array().unwrap().len(), 47);
    assert_eq!(
        digest::sha256_hex(&digest::spaced(tools)),
        "ed404668c24aa0dfb7ccfd8dd6a85ed5869237b8f0147ff521bc7758784e54e6"
    );
    assert_eq!(
        digest::sha256_hex(&digest::compact(tools)),
        "b83bd8cb0bdb1aa71e731e6c6a4c84642b2e1e7979c28261cc963a7f3eaa6ddd"
    );
    // What serde_json has read from the same bytes is the same.
    let theirs: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(Value::from(theirs), capture);
}

/// Every text that the standard takes is taken, and one that it does not take is refused; of the two that
/// are open in it, those with a member twice are refused, and so is what no double holds or no text is.
#[test]
fn json_test_suite() {
    const DUPLICATES: [&str; 2] = [
        "y_object_duplicated_key.json",
        "y_object_duplicated_key_and_value.json",
    ];
    let mut open = Vec::new();
    let mut counts = BTreeMap::new();
    for entry in std::fs::read_dir(path("json-test-suite/test_parsing")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let parsed = Value::parse(&std::fs::read(entry.path()).unwrap());
        match name.as_bytes()[0] {
            b'y' => assert_eq!(
                parsed.is_err(),
                DUPLICATES.contains(&name.as_str()),
                "{name}: {parsed:?}"
            ),
            b'n' => assert!(parsed.is_err(), "{name}: {parsed:?}"),
            _ if parsed.is_ok() => open.push(name.clone()),
            _ => {}
        }
        *counts.entry(name.as_bytes()[0]).or_insert(0) += 1;
    }
    assert_eq!(counts, BTreeMap::from([(b'i', 35), (b'n', 188), (b'y', 95)]));
    open.sort();
    assert_eq!(
        open,
        [
            "i_number_double_huge_neg_exp.json",
            "i_number_real_underflow.json"
        ],
        "what the standard leaves open, and is taken"
    );
}

/// The schemas are those that the vectors are of: each names the members that the texts are made of.
#[test]
fn the_schemas_know_the_members_that_are_signed() {
    for (file, names) in [
        ("receipt", &receipt::FIELDS_V1[..]),
        (
            "manifest",
            &[
                "capabilities_count",
                "generated_at",
                "protocol_version",
                "tools",
                "by_hub",
            ],
        ),
        (
            "federation-announce",
            &["hub_url", "well_known_url", "capabilities_count"],
        ),
        ("well-known", &["signer_public_key"]),
        ("provenance-receipt", &[]),
    ] {
        let schema = load(&format!("aimarket/schemas/{file}.json"));
        assert!(text(&schema["$schema"]).contains("2020-12"));
        for name in names {
            assert!(schema["properties"].get(name).is_some(), "{file}: {name}");
        }
    }
}
