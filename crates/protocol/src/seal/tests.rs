//! RFC 9180's own vectors for this suite, and what the API promises on top.

use std::convert::Infallible;

use rand_core::{TryCryptoRng, TryRng};
use serde_json::Value;

use super::*;

/// Hands out given bytes: the keying material of the ephemeral key.
struct Scripted(Vec<u8>);

impl TryRng for Scripted {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)
            .map(|()| u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)
            .map(|()| u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        out.copy_from_slice(&self.0.drain(..out.len()).collect::<Vec<_>>());
        Ok(())
    }
}

impl TryCryptoRng for Scripted {}

fn rfc9180_vector() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/vectors/hpke-rfc9180/x25519_hkdf_sha256.json"
    );
    let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let vectors = file.as_array().unwrap().iter();
    let ours: Vec<&Value> = vectors
        .filter(|vector| vector["mode"] == 0 && vector["aead_id"] == 3)
        .collect();
    assert_eq!(ours.len(), 1);
    ours[0].clone()
}

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap()).unwrap()
}

#[test]
fn seals_and_opens_as_rfc_9180_says() {
    let vector = rfc9180_vector();
    let key = OpeningKey::from_seed(bytes(&vector["skRm"]).try_into().unwrap());
    assert_eq!(key.public().as_bytes().as_slice(), bytes(&vector["pkRm"]));
    // Our bodies are single-shot: the first encryption of the sequence.
    let first = &vector["encryptions"][0];
    let (info, aad, plaintext) = (bytes(&vector["info"]), bytes(&first["aad"]), bytes(&first["pt"]));
    let mut rng = Scripted(bytes(&vector["ikmE"]));
    let sealed = seal_with_info(key.public(), &info, &aad, &plaintext, &mut rng);
    assert_eq!(sealed.enc.as_slice(), bytes(&vector["enc"]));
    assert_eq!(sealed.ct, bytes(&first["ct"]));
    assert_eq!(
        open_with_info(&key, &info, &sealed.enc, &sealed.ct, &aad).unwrap(),
        plaintext
    );
    assert_eq!(
        open(&key, &sealed.enc, &sealed.ct, &aad),
        Err(OpenError::Failed),
        "another info"
    );
}

#[test]
fn plaintexts_read_back_and_others_are_named() {
    let plaintext = Plaintext::json(serde_json::json!({"price": 1.5}));
    assert_eq!(Plaintext::from_bytes(&plaintext.to_bytes()).unwrap(), plaintext);
    for other in [&b"{}"[..], b"[]", b"\xff", br#"{"content_type": 1, "body": 2}"#] {
        assert_eq!(Plaintext::from_bytes(other), Err(OpenError::NotABody));
    }
    assert!(!format!("{plaintext:?}").contains("1.5"));
}

#[test]
fn a_wish_for_a_receipt_is_a_member_that_others_may_ignore() {
    let mut plaintext = Plaintext::json("x");
    assert_eq!(
        plaintext.to_bytes(),
        br#"{"content_type":"application/json","body":"x"}"#
    );
    plaintext.ask_receipt = true;
    let bytes = plaintext.to_bytes();
    assert_eq!(
        bytes,
        br#"{"content_type":"application/json","body":"x","ask_receipt":true}"#
    );
    assert_eq!(Plaintext::from_bytes(&bytes).unwrap(), plaintext);
    let odd = br#"{"content_type":"application/json","body":"x","ask_receipt":["read"]}"#;
    assert!(
        !Plaintext::from_bytes(odd).unwrap().ask_receipt,
        "a wish in an unknown form is none"
    );
}
