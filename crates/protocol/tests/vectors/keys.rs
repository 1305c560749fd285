//! §2 and §6: Multikeys, signing input, strict verification, challenges.

use aip_protocol::challenge::challenge_object;
use aip_protocol::multikey::{SealingKey, SigningKey, VerifyingKey};
use aip_protocol::name::Did;
use aip_protocol::signature::{Signature, Tag, sign, signing_input, verify};

use crate::support::{hex_32, hex_bytes, json, run, text};

fn tag(text: &str) -> Tag {
    let known = [
        Tag::Envelope,
        Tag::Identity,
        Tag::Challenge,
        Tag::Hub,
        Tag::Listing,
    ];
    let further = Tag::Other("aip/1 receipt");
    known
        .into_iter()
        .chain([further])
        .find(|tag| tag.as_str() == text)
        .unwrap()
}

#[test]
fn multikeys() {
    run("multikeys", 13, |vector, _| {
        let key_text = text(&vector.input["text"]);
        let result = match text(&vector.input["kind"]) {
            "ed25519" => VerifyingKey::parse(key_text).map(|key| (*key.as_bytes(), key.to_string())),
            _ => SealingKey::parse(key_text).map(|key| (*key.as_bytes(), key.to_string())),
        };
        vector.expect(result, |(bytes, printed), expected| {
            assert_eq!(bytes.as_slice(), hex_bytes(&expected["raw"]), "{}", vector.name);
            assert_eq!(printed, key_text);
        });
    });
}

#[test]
fn row_20_published_keys_payloads_and_signatures_check() {
    run("signing", 6, |vector, _| {
        let key = SigningKey::from_seed(hex_32(&vector.input["seed"]));
        let (tag, object) = (tag(text(&vector.input["tag"])), json(&vector.input["object"]));
        let expected = &vector.expected;
        assert_eq!(
            object.to_jcs(),
            text(&expected["jcs"]).as_bytes(),
            "{}",
            vector.name
        );
        assert_eq!(
            signing_input(tag, &object),
            hex_bytes(&expected["signing_input"]),
            "{}",
            vector.name
        );
        assert_eq!(key.public().as_str(), text(&expected["public"]));
        let signature = sign(&key, tag, &object);
        assert_eq!(signature.to_string(), text(&expected["sig"]), "{}", vector.name);
        assert!(verify(key.public(), tag, &object, &signature));
    });
}

#[test]
fn signature_checks() {
    run("signature_checks", 9, |vector, _| {
        let key = VerifyingKey::parse(text(&vector.input["public"])).unwrap();
        let (tag, object) = (tag(text(&vector.input["tag"])), json(&vector.input["object"]));
        vector.expect(
            Signature::parse(text(&vector.input["sig"])),
            |signature, expected| {
                assert_eq!(
                    verify(&key, tag, &object, &signature),
                    expected["valid"],
                    "{}",
                    vector.name
                );
            },
        );
    });
}

#[test]
fn challenges() {
    run("challenges", 4, |vector, _| {
        let input = &vector.input;
        let did = Did::parse(text(&input["did"])).unwrap();
        let object = challenge_object(text(&input["audience"]), text(&input["challenge"]), &did);
        let key = SigningKey::from_seed(hex_32(&input["seed"]));
        assert_eq!(
            signing_input(Tag::Challenge, &object),
            hex_bytes(&vector.expected["signing_input"])
        );
        assert_eq!(
            sign(&key, Tag::Challenge, &object).to_string(),
            text(&vector.expected["sig"]),
            "{}",
            vector.name
        );
    });
}
