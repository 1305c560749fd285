//! Sealing a body for one recipient key: HPKE base mode (§4, RFC 9180).
//!
//! DHKEM(X25519, HKDF-SHA256) `0x0020`, HKDF-SHA256 `0x0001`, `ChaCha20Poly1305` `0x0003`. The hub
//! never holds a key that opens what agents write to each other; only the two clients use this module, and the hub's own
//! agent for what it says itself and what is said to it.

use std::fmt;

use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable as _, HpkeError, Kem, OpModeR, OpModeS, Serializable as _};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};

use crate::json::write_compact;
use crate::multikey::{OpeningKey, SealingKey};

/// The suite as `encrypted_body.alg` names it.
pub const SUITE: &str = "HPKE-0020-0001-0003";
/// The shortest ciphertext there is: the tag alone, in bytes.
pub const TAG_BYTES: usize = 16;
const INFO: &[u8] = b"aip/1 body";

type PublicKey = <X25519HkdfSha256 as Kem>::PublicKey;
type PrivateKey = <X25519HkdfSha256 as Kem>::PrivateKey;
type EncappedKey = <X25519HkdfSha256 as Kem>::EncappedKey;

/// A sealed body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The ephemeral X25519 key.
    pub enc: [u8; 32],
    /// Ciphertext and tag.
    pub ct: Vec<u8>,
}

/// Why a body stays closed. For the recipient's client; no hub ever answers with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The envelope was sealed for another key.
    #[error("the body is sealed for another key")]
    OtherKey,
    /// Key, ciphertext or header do not belong together.
    #[error("the body does not open with this key and header")]
    Failed,
    /// It opened, but holds no `{"content_type", "body"}`.
    #[error("the plaintext is not a body of AIP/1")]
    NotABody,
}

/// What is inside a sealed body. `Debug` tells its type only.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Plaintext {
    /// The media type of `body`.
    pub content_type: String,
    /// The body; JSON of any kind, floats included.
    pub body: serde_json::Value,
    /// Whether the sender asks for an `aip.receipt` (`docs/protocol/federation.md`). Written only where it is true; a
    /// reader that does not know the member ignores it, and any other value than `true` asks for nothing.
    #[serde(
        default,
        deserialize_with = "is_true",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub ask_receipt: bool,
}

/// A wish in a form that nobody knows does not make the message unreadable.
fn is_true<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    serde_json::Value::deserialize(deserializer).map(|value| value == serde_json::Value::Bool(true))
}

impl Plaintext {
    /// A body of type `application/json`.
    pub fn json(body: impl Into<serde_json::Value>) -> Self {
        Self {
            content_type: "application/json".to_owned(),
            body: body.into(),
            ask_receipt: false,
        }
    }

    /// The UTF-8 JSON that gets sealed.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_compact(&mut bytes, self);
        bytes
    }

    /// Reads an opened body.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, OpenError> {
        serde_json::from_slice(bytes).map_err(|_json| OpenError::NotABody)
    }
}

impl fmt::Debug for Plaintext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plaintext")
            .field("content_type", &self.content_type)
            .finish_non_exhaustive()
    }
}

/// Seals `plaintext` so that only the holder of the secret half opens it, and only with `aad`.
///
/// `rng` gives the keying material of the ephemeral key (RFC 9180 §7.1.3): equal bytes give an
/// equal result, which only test vectors want.
pub fn seal(recipient: &SealingKey, aad: &[u8], plaintext: &[u8], rng: &mut impl CryptoRng) -> Sealed {
    seal_with_info(recipient, INFO, aad, plaintext, rng)
}

#[expect(
    clippy::expect_used,
    reason = "a SealingKey is 32 bytes and no low-order point; memory ends before the AEAD"
)]
fn seal_with_info(
    recipient: &SealingKey,
    info: &[u8],
    aad: &[u8],
    plaintext: &[u8],
    rng: &mut impl CryptoRng,
) -> Sealed {
    let recipient = PublicKey::from_bytes(recipient.as_bytes()).expect("32 bytes");
    let (enc, ct) = hpke::single_shot_seal_with_rng::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
        &OpModeS::Base,
        &recipient,
        info,
        plaintext,
        aad,
        rng,
    )
    .expect("a checked key seals");
    Sealed {
        enc: enc.to_bytes().into(),
        ct,
    }
}

/// Opens a sealed body; every way to fail is [`OpenError::Failed`].
pub fn open(key: &OpeningKey, enc: &[u8], ct: &[u8], aad: &[u8]) -> Result<Vec<u8>, OpenError> {
    open_with_info(key, INFO, enc, ct, aad).map_err(|_hpke| OpenError::Failed)
}

fn open_with_info(
    key: &OpeningKey,
    info: &[u8],
    enc: &[u8],
    ct: &[u8],
    aad: &[u8],
) -> Result<Vec<u8>, HpkeError> {
    let secret = PrivateKey::from_bytes(key.seed().as_ref())?;
    let enc = EncappedKey::from_bytes(enc)?;
    hpke::single_shot_open::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
        &OpModeR::Base,
        &secret,
        &enc,
        info,
        ct,
        aad,
    )
}

#[cfg(test)]
mod tests;
