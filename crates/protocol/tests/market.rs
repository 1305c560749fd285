//! What has gone wrong in AIMarket's implementations with signatures, each as a test of its own. The numbers are those of the
//! table in `tests/it/market/pitfalls.rs`.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use aip_protocol::error::ErrorCode;
use aip_protocol::market::origin::{Lookup, Origin, OriginKeys};
use aip_protocol::market::receipt::{
    Expected, NonceKind, ReceiptDraft, Rejection, RejectionDraft, is_evidence_covered, nonce,
};
use aip_protocol::market::signature::{key_text, parse_key};
use aip_protocol::market::{Check, Members, Number, Reason, Value, Verdict, announce, digest, document};
use aip_protocol::market::{manifest, origin, receipt};
use aip_protocol::multikey::{SigningKey, VerifyingKey};
use aip_protocol::time::Timestamp;

fn key() -> SigningKey {
    SigningKey::from_seed([7; 32])
}

fn other_key() -> SigningKey {
    SigningKey::from_seed([8; 32])
}

fn pinned() -> Vec<VerifyingKey> {
    vec![key().public().clone()]
}

fn now() -> Timestamp {
    Timestamp::parse("2026-11-30T14:00:00.789Z").unwrap()
}

fn draft() -> ReceiptDraft<'static> {
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

fn rejection() -> RejectionDraft<'static> {
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

fn signed() -> Members {
    members(&draft().sign(&key()).unwrap())
}

fn members(value: &Value) -> Members {
    value.as_object().unwrap().clone()
}

fn verify(receipt: &Members) -> Check {
    receipt::verify(&receipt.clone().into(), &pinned(), &Expected::default())
}

fn code(check: &Check) -> &'static str {
    check.verdict.reason().map_or("true", Reason::code)
}

fn with(receipt: &Members, name: &str, value: impl Into<Value>) -> Members {
    let mut changed = receipt.clone();
    changed.insert(name.to_owned(), value.into());
    changed
}

/// The receipt with another member in its signature.
fn with_in_signature(receipt: &Members, name: &str, value: impl Into<Value>) -> Members {
    let block = with(&members(&receipt["signature"]), name, value);
    with(receipt, "signature", block)
}

/// Bytes that are as random as a test needs, and the same every time.
struct Counter(u64);

impl rand_core::TryRng for Counter {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|word| u32::try_from(word >> 32).unwrap())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Ok(self.0)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            let word = self.try_next_u64()?.to_be_bytes();
            chunk.copy_from_slice(word.get(..chunk.len()).unwrap());
        }
        Ok(())
    }
}

impl rand_core::TryCryptoRng for Counter {}

#[test]
fn what_is_signed_verifies_and_every_covered_member_counts() {
    let receipt = signed();
    let check = verify(&receipt);
    assert_eq!(check.verdict, Verdict::True);
    assert_eq!(check.version, Some(1));
    assert_eq!(check.key, pinned().pop());
    assert_eq!(check.uncovered, ["list_price_usd"]);
    assert_eq!(receipt["timestamp"], Value::from("2026-11-30T14:00:00Z"));
    for name in receipt::FIELDS_V1 {
        let changed = match &receipt[name] {
            Value::Str(text) => with(&receipt, name, format!("{text}x")),
            Value::Bool(truth) => with(&receipt, name, !truth),
            _ => with(&receipt, name, 13_u32),
        };
        assert_eq!(code(&verify(&changed)), "signature-invalid", "{name}");
        let mut without = receipt.clone();
        without.remove(name);
        assert_eq!(code(&verify(&without)), "signature-invalid", "{name}");
    }
    let rejected = members(&rejection().sign(&key()).unwrap());
    assert_eq!(verify(&rejected).version, Some(2));
    assert!(verify(&rejected).uncovered.is_empty());
    for name in receipt::FIELDS_V2 {
        let changed = with(&rejected, name, "changed");
        assert_eq!(code(&verify(&changed)), "signature-invalid", "{name}");
        let mut without = rejected.clone();
        if without.remove(name).is_some() {
            assert_eq!(code(&verify(&without)), "signature-invalid", "{name}");
        }
    }
}

fn manifest() -> Members {
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

#[test]
fn pitfall_01_a_changed_price_or_trust_breaks_a_manifest() {
    let good = manifest();
    let verify = |manifest: &Members| manifest::verify(&manifest.clone().into(), &pinned());
    assert_eq!(verify(&good).verdict, Verdict::True);
    assert_eq!(verify(&good).uncovered, ["base_url", "total_capabilities"]);
    let tools = good["tools"].to_string().replace("1e-05", "1e-06");
    let by_hub = good["by_hub"].to_string().replace("1.0", "0.9");
    for (name, text) in [("tools", tools), ("by_hub", by_hub)] {
        assert_ne!(good[name].to_string(), text);
        let changed = with(&good, name, Value::parse(text.as_bytes()).unwrap());
        assert_eq!(code(&verify(&changed)), "signature-invalid", "{name}");
    }
    for name in ["generated_at", "protocol_version"] {
        assert_eq!(code(&verify(&with(&good, name, "v1"))), "signature-invalid");
    }
    assert_eq!(
        code(&verify(&with(&good, "capabilities_count", 2_u32))),
        "signature-invalid"
    );
    assert_eq!(code(&verify(&with(&good, "tools", "x"))), "signature-invalid");
}

#[test]
fn pitfall_02_the_old_text_of_a_manifest_is_not_accepted() {
    let good = manifest();
    let old = format!(
        "capabilities_count:1|generated_at:{}|protocol_version:v2",
        good["generated_at"].as_str().unwrap()
    );
    let signature = base64(&key().sign_bytes(old.as_bytes()));
    let forged = with_in_signature(&good, "value", signature);
    let check = manifest::verify(&forged.into(), &pinned());
    assert_eq!(code(&check), "signature-invalid");
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[test]
fn pitfall_03_the_key_is_that_of_the_origin() {
    let origin = |source_hub| Origin::of(source_hub, "https://hub.example/").unwrap();
    assert_eq!(origin("local").as_str(), "https://hub.example");
    assert_eq!(origin("").as_str(), "https://hub.example");
    assert_eq!(
        origin("https://oracles.example/family/").discovery_urls(),
        [
            "https://oracles.example/family/.well-known/ai-market.json",
            "https://oracles.example/.well-known/ai-market.json",
        ]
    );
    assert_eq!(
        origin("local").discovery_urls(),
        ["https://hub.example/.well-known/ai-market.json"]
    );
    let peer = draft().sign(&other_key()).unwrap();
    let by = |key: &SigningKey| receipt::verify(&peer, &[key.public().clone()], &Expected::default()).verdict;
    assert!(by(&key()).is_false());
    assert_eq!(by(&other_key()), Verdict::True);
    let discovery = Value::from([("signer_public_key", Value::from(key_text(other_key().public())))]);
    assert_eq!(&origin::published_key(&discovery).unwrap(), other_key().public());
}

#[test]
fn pitfall_04_the_key_inside_is_not_believed() {
    let foreign = members(&draft().sign(&other_key()).unwrap());
    assert_eq!(code(&verify(&foreign)), "key-not-pinned");
    assert!(verify(&foreign).verdict.is_false());
    let renamed = with_in_signature(&foreign, "public_key", key_text(key().public()));
    assert_eq!(code(&verify(&renamed)), "signature-invalid");
}

#[test]
fn pitfall_05_a_rejection_signed_at_version_1_is_covered_in_part() {
    let rejected = members(&rejection().sign(&key()).unwrap());
    assert!(is_evidence_covered(&verify(&rejected)));
    let text = "nonce:blocked_00000000000000000000000000000001|product_id:prod-001|capability_id:translate.multi@v2\
                |price_usd:0|timestamp:2026-11-30T14:00:00Z|success:0|latency_ms:0";
    let mut block = members(&rejected["signature"]);
    block.insert(
        "value".to_owned(),
        base64(&key().sign_bytes(text.as_bytes())).into(),
    );
    block.remove("version");
    let check = verify(&with(&rejected, "signature", block));
    assert_eq!(check.verdict, Verdict::True);
    assert!(!is_evidence_covered(&check));
    assert_eq!(
        check.uncovered,
        ["category", "channel_id", "plugin", "reason", "refunded", "type"]
    );
}

#[test]
fn pitfall_06_members_added_to_a_receipt_are_reported_as_unsigned() {
    let added = with(&with(&signed(), "reason", "never mind"), "refunded", true);
    let check = verify(&added);
    assert_eq!(check.verdict, Verdict::True);
    assert_eq!(check.uncovered, ["list_price_usd", "reason", "refunded"]);
    assert!(!is_evidence_covered(&check));
    // What is not proven proves none of its members.
    assert_eq!(
        verify(&with(&added, "success", false)).uncovered.len(),
        added.len() - 1
    );
}

#[test]
fn pitfall_07_a_bare_signature_is_refused_with_the_shape_that_is_wanted() {
    let good = signed();
    let value = members(&good["signature"])["value"].clone();
    for (bad, shape) in [
        (value, "a string"),
        (Value::from(1_u32), "a number"),
        (Value::from(true), "a boolean"),
        (Value::Array(Vec::new()), "an array"),
        (
            Value::Object(Members::new()),
            "an object without a text \"value\"",
        ),
    ] {
        let check = verify(&with(&good, "signature", bad));
        assert_eq!(code(&check), "signature-shape");
        let sentence = check.verdict.reason().unwrap().to_string();
        assert!(
            sentence.contains(shape) && sentence.contains("\"value\":\"<base64>\""),
            "{sentence}"
        );
    }
    assert_eq!(
        code(&verify(&with(&good, "signature", Value::Null))),
        "signature-missing"
    );
    assert_eq!(
        code(&verify(&with_in_signature(&good, "value", 1_u32))),
        "signature-shape"
    );
    let strange = receipt::verify(&Value::from("receipt"), &pinned(), &Expected::default());
    assert_eq!(strange.verdict, Verdict::NotChecked(Reason::NothingToCheck));
}

#[test]
fn pitfall_08_both_alphabets_and_no_padding_are_read_and_nothing_is_dropped() {
    let good = signed();
    let value = members(&good["signature"])["value"].as_str().unwrap().to_owned();
    let url = value.replace('+', "-").replace('/', "_");
    for spelling in [
        url.clone(),
        url.trim_end_matches('=').to_owned(),
        value.trim_end_matches('=').to_owned(),
    ] {
        assert_eq!(
            verify(&with_in_signature(&good, "value", spelling)).verdict,
            Verdict::True
        );
    }
    for stray in ["!", " ", "\n", "=", "é", "-_+/"] {
        let (head, tail) = value.split_at(40);
        for spelling in [
            format!("{head}{stray}{tail}"),
            format!("{stray}{value}"),
            format!("{value}{stray}"),
        ] {
            let check = verify(&with_in_signature(&good, "value", spelling));
            assert_eq!(code(&check), "signature-malformed", "{stray:?}");
        }
    }
    assert_eq!(
        code(&verify(&with_in_signature(&good, "value", ""))),
        "signature-malformed"
    );
    assert_eq!(
        code(&verify(&with_in_signature(&good, "value", "A".repeat(100_000)))),
        "signature-malformed"
    );
}

#[test]
fn pitfall_09_small_orders_are_refused_for_every_message() {
    let identity = {
        let mut point = [0; 32];
        point[0] = 1;
        point
    };
    for point in [[0; 32], identity] {
        assert_eq!(
            parse_key(&base64(&point)).unwrap_err().code,
            ErrorCode::KeyInvalid
        );
    }
    let mut forged = [0; 64];
    forged
        .iter_mut()
        .zip(identity)
        .for_each(|(byte, point)| *byte = point);
    let good = signed();
    assert_eq!(
        code(&verify(&with_in_signature(&good, "value", base64(&forged)))),
        "signature-invalid"
    );
    assert_eq!(
        code(&verify(&with_in_signature(&good, "value", base64(&[0; 64])))),
        "signature-invalid"
    );
    // Nor is such a key one that a receipt could name itself.
    let own = with_in_signature(
        &with_in_signature(&good, "value", base64(&forged)),
        "public_key",
        base64(&identity),
    );
    assert_eq!(code(&verify(&own)), "signature-invalid");
}

/// What is signed has the numbers as Python spells them, also floats where the schema has an integer.
#[test]
fn pitfall_10_numbers_are_signed_as_python_spells_them() {
    for (price, latency, spelled) in [
        ("1e-05", "12.34", ("1e-05", "12.34")),
        ("0.00001", "0", ("1e-05", "0")),
        ("0.0", "0.0", ("0.0", "0.0")),
        ("5.0", "8100", ("5.0", "8100")),
        ("0", "1e3", ("0", "1000.0")),
        ("1E16", "-0", ("1e+16", "0")),
    ] {
        let number = |text: &str| Value::from(Number::parse(text).unwrap());
        let unsigned = with(
            &with(&signed(), "price_usd", number(price)),
            "latency_ms",
            number(latency),
        );
        let (price, latency) = spelled;
        let text = format!(
            "nonce:rcpt_00000000000000000000000000000001|product_id:prod-001|capability_id:translate.multi@v2\
             |price_usd:{price}|timestamp:2026-11-30T14:00:00Z|success:1|latency_ms:{latency}"
        );
        let by_hand = with_in_signature(&unsigned, "value", base64(&key().sign_bytes(text.as_bytes())));
        assert_eq!(
            receipt::sign(unsigned, &key()).unwrap(),
            Value::Object(by_hand.clone())
        );
        assert_eq!(verify(&by_hand).verdict, Verdict::True);
    }
    // A hub writes a price that is whole as a float.
    let free = ReceiptDraft {
        price_micros: 0,
        ..draft()
    }
    .sign(&key())
    .unwrap();
    assert_eq!(free.get("price_usd").unwrap().to_string(), "0.0");
}

#[test]
fn pitfall_11_a_browser_may_drop_the_point_of_a_whole_price() {
    for micros in [0, 5_000_000] {
        let receipt = ReceiptDraft {
            price_micros: micros,
            ..draft()
        }
        .sign(&key())
        .unwrap();
        let bytes = String::from_utf8(receipt.to_bytes()).unwrap();
        let whole = format!("\"price_usd\":{}", Number::usd(micros));
        let browser = bytes.replace(&whole, whole.trim_end_matches(".0"));
        let spelled = bytes.replace(&whole, &format!("{whole}00"));
        for text in [&browser, &spelled] {
            assert_ne!(text, &bytes);
            let value = Value::parse(text.as_bytes()).unwrap();
            assert_eq!(verify(&members(&value)).verdict, Verdict::True, "{text}");
        }
    }
    // Only of the price, and only the spelling.
    let good = signed();
    assert_eq!(
        code(&verify(&with(&good, "latency_ms", Number::float(12.0).unwrap()))),
        "signature-invalid"
    );
    assert_eq!(
        code(&verify(&with(&good, "price_usd", 0_u32))),
        "signature-invalid"
    );
    let text = Value::Object(good).to_string().replace(":0.4,", ":0.40,");
    assert_eq!(
        verify(&members(&Value::parse(text.as_bytes()).unwrap())).verdict,
        Verdict::True
    );
}

#[test]
fn pitfall_12_letters_are_hashed_raw_and_the_two_texts_differ() {
    let tools = Value::parse("[{\"b\": 1e-05, \"a\": \"é\\u00e9/\\u2028\"}]".as_bytes()).unwrap();
    let spaced = digest::spaced(&tools);
    assert_eq!(spaced, "[{\"a\": \"éé/\u{2028}\", \"b\": 1e-05}]".as_bytes());
    assert_eq!(
        digest::compact(&tools),
        "[{\"a\":\"éé/\u{2028}\",\"b\":1e-05}]".as_bytes()
    );
    assert_eq!(
        digest::sha256_hex(&digest::spaced(&Value::Object(Members::new()))),
        "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    );
    // A browser writes the same tools in other escapes.
    let escaped = Value::parse("[{\"a\":\"\\u00e9\\u00E9\\/\\u2028\",\"b\":0.00001}]".as_bytes()).unwrap();
    assert_eq!(digest::spaced(&escaped), spaced);
}

#[test]
fn pitfall_13_the_same_key_in_the_other_alphabet_is_the_same_key() {
    let key = (0..=255).map(|seed| SigningKey::from_seed([seed; 32]));
    let text = key
        .map(|key| key_text(key.public()))
        .find(|text| text.contains('+') && text.contains('/'))
        .unwrap();
    let url = text.replace('+', "-").replace('/', "_");
    assert_ne!(text, url);
    assert_eq!(parse_key(&text).unwrap(), parse_key(&url).unwrap());
    assert_eq!(
        parse_key(&text).unwrap(),
        parse_key(url.trim_end_matches('=')).unwrap()
    );
    for bad in [
        "",
        "AAAA",
        &format!("{text} "),
        &text.replace('+', "*"),
        &"A".repeat(44),
    ] {
        assert_eq!(parse_key(bad).unwrap_err().code, ErrorCode::KeyInvalid, "{bad}");
    }
}

#[test]
fn pitfall_14_a_version_that_came_later_is_unsupported_not_invalid() {
    let good = signed();
    for version in [3_u64, 1_000_000] {
        let check = verify(&with_in_signature(&good, "version", version));
        assert_eq!(
            check.verdict,
            Verdict::NotChecked(Reason::VersionUnsupported(version))
        );
    }
    for unreadable in [
        Value::from(0_u32),
        Value::from(Number::from(-1_i64)),
        Value::from(Number::float(1.0).unwrap()),
        Value::from("1"),
        Value::from(true),
        Value::Null,
    ] {
        let check = verify(&with_in_signature(&good, "version", unreadable));
        assert_eq!(check.verdict, Verdict::False(Reason::VersionUnreadable));
    }
    // Another version than it was signed at is another text.
    assert_eq!(
        code(&verify(&with_in_signature(&good, "version", 2_u32))),
        "signature-invalid"
    );
    let check = verify(&with_in_signature(&good, "algorithm", "ml-dsa-65"));
    assert_eq!(check.verdict, Verdict::NotChecked(Reason::AlgorithmUnsupported));
    let manifest = with_in_signature(&manifest(), "version", 2_u32);
    assert_eq!(
        manifest::verify(&manifest.into(), &pinned()).verdict,
        Verdict::NotChecked(Reason::VersionUnsupported(2))
    );
}

#[test]
fn pitfall_15_a_receipt_of_another_call_is_no_proof() {
    let good = signed();
    let against = |receipt: &Members, expected: Expected<'_>| {
        receipt::verify(&receipt.clone().into(), &pinned(), &expected)
    };
    let same = Expected {
        capability_id: Some("translate.multi@v2"),
        product_id: Some("prod-001"),
        price_micros: Some(400_000),
    };
    assert_eq!(against(&good, same).verdict, Verdict::True);
    for (expected, member) in [
        (
            Expected {
                capability_id: Some("skopos.security.posture@v1"),
                ..same
            },
            "capability_id",
        ),
        (
            Expected {
                product_id: Some("prod-002"),
                ..same
            },
            "product_id",
        ),
        (
            Expected {
                price_micros: Some(150_000),
                ..same
            },
            "price_usd",
        ),
        (
            Expected {
                price_micros: Some(400_006),
                ..same
            },
            "price_usd",
        ),
        (
            Expected {
                price_micros: Some(399_994),
                ..same
            },
            "price_usd",
        ),
    ] {
        let check = against(&good, expected);
        assert_eq!(code(&check), "different-call");
        assert!(check.verdict.is_false());
        let sentence = check.verdict.reason().unwrap().to_string();
        assert!(
            sentence.contains("different call") && sentence.contains(member),
            "{sentence}"
        );
    }
    for price_micros in [399_995, 400_005] {
        let expected = Expected {
            price_micros: Some(price_micros),
            ..same
        };
        assert_eq!(against(&good, expected).verdict, Verdict::True);
    }
    let mut unnamed = good.clone();
    unnamed.remove("product_id");
    let unnamed = members(&receipt::sign(unnamed, &key()).unwrap());
    assert_eq!(against(&unnamed, same).verdict, Verdict::True);
    // A forged receipt is called forged, whatever it is about.
    let forged = with(&good, "capability_id", "another@v1");
    assert_eq!(code(&against(&forged, same)), "signature-invalid");
}

#[test]
fn pitfall_16_a_look_up_that_failed_is_made_again_after_a_minute() {
    let origin = Origin::of("https://peer.example", "").unwrap();
    let mut keys = OriginKeys::default();
    assert_eq!(keys.look_up(&origin, now()), Lookup::Unknown);
    keys.missed(origin.clone(), now());
    let later = |secs| now() + Duration::from_secs(secs);
    assert_eq!(keys.look_up(&origin, later(59)), Lookup::Missed);
    assert_eq!(keys.look_up(&origin, later(60)), Lookup::Unknown);
    keys.found(origin.clone(), key().public().clone(), later(60));
    assert_eq!(
        keys.look_up(&origin, later(1_000_000)),
        Lookup::Known(key().public().clone())
    );
    // A key that is had outlives a look-up that fails, and many origins do not take all memory.
    keys.missed(origin.clone(), later(61));
    assert_eq!(
        keys.look_up(&origin, later(62)),
        Lookup::Known(key().public().clone())
    );
    for number in 0..3_000 {
        let many = Origin::of(&format!("https://{number}.example"), "").unwrap();
        keys.found(many.clone(), key().public().clone(), later(100 + number));
        keys.missed(many, later(100 + number));
    }
    assert_eq!(keys.look_up(&origin, later(4_000)), Lookup::Unknown);
    // Not checked is its own state.
    let check = receipt::verify(&signed().into(), &[], &Expected::default());
    assert_eq!(check.verdict, Verdict::NotChecked(Reason::NoKey));
    assert_eq!(check.verdict.as_bool(), None);
}

#[test]
fn pitfall_17_an_address_steers_no_request_elsewhere() {
    for (source_hub, first) in [
        (
            "http://h/_cluster/health#",
            "http://h/_cluster/health/.well-known/ai-market.json",
        ),
        (
            "http://h/v1/secret?list=true&",
            "http://h/v1/secret/.well-known/ai-market.json",
        ),
        (
            "http://alice:s3cr3t@h:8080/family",
            "http://h:8080/family/.well-known/ai-market.json",
        ),
        ("https://H:443/a/../b//", "https://h/b/.well-known/ai-market.json"),
        ("http://h?#", "http://h/.well-known/ai-market.json"),
    ] {
        let origin = Origin::of(source_hub, "https://hub.example").unwrap();
        let urls = origin.discovery_urls();
        assert_eq!(urls.first().map(String::as_str), Some(first), "{source_hub}");
        for url in urls {
            assert!(
                url.ends_with("/.well-known/ai-market.json") && !url.contains(['?', '#', '@']),
                "{url}"
            );
        }
    }
    for bad in [
        "file:///etc/passwd",
        "gopher://h/",
        "javascript:alert(1)",
        "ftp://h",
        "//h",
        "h",
        "http://",
        "data:,x",
        &format!("http://h/{}", "a".repeat(2_000)),
    ] {
        let refusal = Origin::of(bad, "https://hub.example").unwrap_err();
        assert_eq!(refusal.code, ErrorCode::MemberInvalid, "{bad}");
        assert!(!refusal.detail.contains("passwd"));
    }
}

#[test]
fn pitfall_18_two_rejections_of_one_second_have_two_nonces() {
    let mut rng = Counter(1);
    let nonces: BTreeSet<String> = (0..1_000).map(|_| nonce(NonceKind::Blocked, &mut rng)).collect();
    assert_eq!(nonces.len(), 1_000);
    for (kind, prefix) in [
        (NonceKind::Receipt, "rcpt_"),
        (NonceKind::Blocked, "blocked_"),
        (NonceKind::VerificationFailed, "vfail_"),
    ] {
        let nonce = nonce(kind, &mut rng);
        let digits = nonce.strip_prefix(prefix).unwrap();
        assert!(
            digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{nonce}"
        );
    }
}

/// Fields are joined by `|`: were one allowed inside, `a|product_id:b` and nothing would be signed as `a` and `b`.
#[test]
fn a_field_that_could_be_read_as_two_is_neither_signed_nor_believed() {
    for name in ["nonce", "product_id", "capability_id", "timestamp"] {
        let receipt = with(&signed(), name, "a|product_id:b");
        let refusal = receipt::sign(receipt.clone(), &key()).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::MemberInvalid);
        assert_eq!(
            verify(&receipt).verdict,
            Verdict::False(Reason::MemberInvalid(name))
        );
    }
    let text = "nonce:n|product_id:p|capability_id:c|price_usd:0|timestamp:t|success:0|latency_ms:0";
    let value = base64(&key().sign_bytes(text.as_bytes()));
    let block = Value::from([("value", Value::from(value))]);
    let parts = Value::from([
        ("nonce", Value::from("n")),
        ("product_id", "p".into()),
        ("capability_id", "c".into()),
        ("timestamp", "t".into()),
        ("signature", block.clone()),
    ]);
    assert_eq!(verify(&members(&parts)).verdict, Verdict::True);
    for name in ["price_usd", "latency_ms", "success"] {
        for odd in [
            Value::from("0"),
            Value::Array(Vec::new()),
            Value::from(1_u32).clone(),
        ] {
            let check = verify(&with(&members(&parts), name, odd));
            assert!(
                matches!(code(&check), "member-invalid" | "signature-invalid"),
                "{name}"
            );
        }
    }
}

#[test]
fn a_whole_document_is_covered_by_its_signature() {
    let body = members(&Value::from([
        ("name", Value::from("hub")),
        ("prices", Value::from(vec![Value::usd(1), Value::usd(0)])),
        ("count", Value::from(1_u32)),
    ]));
    let signed = members(&document::sign(body, &key()));
    let verify = |document: &Members| document::verify(&document.clone().into(), &pinned());
    assert_eq!(verify(&signed).verdict, Verdict::True);
    assert_eq!(code(&verify(&with(&signed, "name", "bank"))), "signature-invalid");
    assert_eq!(
        code(&verify(&with(&signed, "more", Value::Null))),
        "signature-invalid"
    );
    let again = members(&document::sign(signed.clone(), &key()));
    assert_eq!(again, signed);
    // Through a serializer that spells numbers otherwise.
    let theirs = serde_json::to_vec(&Value::Object(signed.clone())).expect("it is JSON");
    assert_eq!(
        verify(&members(&Value::parse(&theirs).unwrap())).verdict,
        Verdict::True
    );
}

#[test]
fn an_announcement_covers_where_the_hub_is() {
    let draft = announce::AnnounceDraft {
        hub_url: "https://hub.example",
        well_known_url: "https://hub.example/.well-known/ai-market.json",
        capabilities_count: 3,
        hub_name: "A hub",
    };
    let signed = members(&draft.sign(&key()).unwrap());
    let verify = |announcement: &Members| announce::verify(&announcement.clone().into(), &pinned());
    assert_eq!(verify(&signed).verdict, Verdict::True);
    assert_eq!(verify(&signed).uncovered, ["hub_name", "signer_public_key"]);
    for name in ["hub_url", "well_known_url"] {
        assert_eq!(
            code(&verify(&with(&signed, name, "https://attacker.example"))),
            "signature-invalid"
        );
    }
    assert_eq!(
        code(&verify(&with(&signed, "capabilities_count", 4_u32))),
        "signature-invalid"
    );
}

#[test]
fn a_post_quantum_signature_is_reported_and_not_believed() {
    let good = signed();
    assert!(!verify(&good).has_post_quantum);
    let hybrid = with_in_signature(&good, "pq_value", "AAAA");
    assert_eq!(verify(&hybrid).verdict, Verdict::True);
    assert!(verify(&hybrid).has_post_quantum);
}

#[test]
fn one_of_several_pinned_keys_is_enough() {
    let receipt = draft().sign(&other_key()).unwrap();
    let keys = [key().public().clone(), other_key().public().clone()];
    let check = receipt::verify(&receipt, &keys, &Expected::default());
    assert_eq!(
        (check.verdict, check.key.as_ref()),
        (Verdict::True, Some(other_key().public()))
    );
}
