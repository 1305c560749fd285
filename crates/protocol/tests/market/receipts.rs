//! Receipts: what their signatures cover, and which call they are about.

use std::collections::BTreeSet;
use std::convert::Infallible;

use aip_protocol::market::receipt::{Expected, NonceKind, is_evidence_covered, nonce};
use aip_protocol::market::{Check, Members, Number, Reason, Value, Verdict, manifest, receipt};

use crate::support::{
    base64, code, key, manifest, members, pinned, rejection, signed, verify, with, with_in_signature,
};

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

/// The call that the receipt of [`signed`] is about.
const SAME: Expected<'_> = Expected {
    capability_id: Some("translate.multi@v2"),
    product_id: Some("prod-001"),
    price_micros: Some(400_000),
};

fn against(receipt: &Members, expected: Expected<'_>) -> Check {
    receipt::verify(&receipt.clone().into(), &pinned(), &expected)
}

#[test]
fn pitfall_15_a_receipt_of_another_call_is_no_proof() {
    let good = signed();
    assert_eq!(against(&good, SAME).verdict, Verdict::True);
    let capability_id = Some("skopos.security.posture@v1");
    let product_id = Some("prod-002");
    let at = |micros| Expected {
        price_micros: Some(micros),
        ..SAME
    };
    for (expected, member) in [
        (
            Expected {
                capability_id,
                ..SAME
            },
            "capability_id",
        ),
        (Expected { product_id, ..SAME }, "product_id"),
        (at(150_000), "price_usd"),
        (at(400_006), "price_usd"),
        (at(399_994), "price_usd"),
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
    for micros in [399_995, 400_005] {
        assert_eq!(against(&good, at(micros)).verdict, Verdict::True);
    }
}

#[test]
fn pitfall_15_a_receipt_without_a_product_is_of_none_and_a_forged_one_is_forged() {
    let mut unnamed = signed();
    unnamed.remove("product_id");
    let unnamed = members(&receipt::sign(unnamed, &key()).unwrap());
    assert_eq!(against(&unnamed, SAME).verdict, Verdict::True);
    let forged = with(&signed(), "capability_id", "another@v1");
    assert_eq!(code(&against(&forged, SAME)), "signature-invalid");
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

#[test]
fn a_post_quantum_signature_is_reported_and_not_believed() {
    let good = signed();
    assert!(!verify(&good).has_post_quantum);
    let hybrid = with_in_signature(&good, "pq_value", "AAAA");
    assert_eq!(verify(&hybrid).verdict, Verdict::True);
    assert!(verify(&hybrid).has_post_quantum);
}
