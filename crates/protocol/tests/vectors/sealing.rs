//! §4: sealing and opening bodies.

use aip_protocol::envelope::header_bytes;
use aip_protocol::multikey::{OpeningKey, SealingKey};
use aip_protocol::seal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::support::{Vector, hex_32, json, load, run, text};

fn base64url(value: &Value) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text(value)).unwrap()
}

/// The secret half of the key that the sealing cases seal for, from an opening case.
fn recipient_secret(public: &SealingKey) -> OpeningKey {
    let file = load("aip/hpke.json");
    let secrets = file["vectors"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|vector| vector["input"].get("recipient_secret"));
    let mut keys = secrets.map(|secret| OpeningKey::from_seed(hex_32(secret)));
    keys.find(|key| key.public() == public).unwrap()
}

#[test]
fn hpke() {
    run("hpke", 12, |vector, _| {
        let header = json(&vector.input["header"]);
        let aad = header_bytes(header.as_object().unwrap());
        if vector.input.get("recipient_public").is_some() {
            sealed(vector, &aad);
        } else {
            opened(vector, &aad);
        }
    });
}

/// A ciphertext is a function of the ephemeral secret, the AAD and the plaintext, and opens to one
/// plaintext only: `enc` belongs to the given ephemeral secret, and `ct` opens to the plaintext, so
/// `ct` is what sealing gives.
fn sealed(vector: &Vector, aad: &[u8]) {
    let (input, expected) = (&vector.input, &vector.expected);
    assert_eq!(aad, text(&expected["aad"]).as_bytes(), "{}", vector.name);
    let ephemeral = OpeningKey::from_seed(hex_32(&input["ephemeral_secret"]));
    assert_eq!(
        base64url(&expected["enc"]),
        ephemeral.public().as_bytes(),
        "{}",
        vector.name
    );
    let recipient = recipient_secret(&SealingKey::from_bytes(&hex_32(&input["recipient_public"])).unwrap());
    let (enc, ct) = (base64url(&expected["enc"]), base64url(&expected["ct"]));
    let plaintext = seal::open(&recipient, &enc, &ct, aad).unwrap();
    assert_eq!(plaintext, text(&input["plaintext"]).as_bytes(), "{}", vector.name);
}

fn opened(vector: &Vector, aad: &[u8]) {
    let (input, expected) = (&vector.input, &vector.expected);
    let key = OpeningKey::from_seed(hex_32(&input["recipient_secret"]));
    let opened = seal::open(&key, &base64url(&input["enc"]), &base64url(&input["ct"]), aad);
    match expected.get("plaintext") {
        Some(plaintext) => assert_eq!(opened.unwrap(), text(plaintext).as_bytes(), "{}", vector.name),
        None => assert_eq!(opened, Err(seal::OpenError::Failed), "{}", vector.name),
    }
}
