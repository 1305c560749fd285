//! Whose key it is, and which ones are none.

use std::time::Duration;

use aip_protocol::error::ErrorCode;
use aip_protocol::market::origin::{Lookup, Origin, OriginKeys};
use aip_protocol::market::receipt::Expected;
use aip_protocol::market::signature::{key_text, parse_key};
use aip_protocol::market::{Reason, Value, Verdict, origin, receipt};
use aip_protocol::multikey::SigningKey;

use crate::support::{base64, code, draft, key, members, now, other_key, signed, verify, with_in_signature};

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
fn one_of_several_pinned_keys_is_enough() {
    let receipt = draft().sign(&other_key()).unwrap();
    let keys = [key().public().clone(), other_key().public().clone()];
    let check = receipt::verify(&receipt, &keys, &Expected::default());
    assert_eq!(
        (check.verdict, check.key.as_ref()),
        (Verdict::True, Some(other_key().public()))
    );
}
