//! Manifests, documents and announcements.

use aip_protocol::market::{Members, Value, Verdict, announce, document, manifest};

use crate::support::{base64, code, key, manifest, members, pinned, with, with_in_signature};

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
