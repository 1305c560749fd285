//! Random secrets that agents carry (tokens, invites, challenges) and the hashes that are kept of them.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand_core::CryptoRng;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// SHA-256 of a secret's text: all that is stored of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecretHash([u8; 32]);

impl SecretHash {
    /// The hash of a secret as the agent sends it.
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// Lower-case hexadecimal, as stored.
    pub fn to_hex(self) -> String {
        hex::encode(self.0)
    }

    /// Reads what [`Self::to_hex`] wrote.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// Equality that takes the same time wherever the bytes differ.
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

/// The injected source of randomness, shared by all requests.
pub(crate) struct Chance(Mutex<Box<dyn CryptoRng + Send>>);

impl Chance {
    pub(crate) fn new(rng: Box<dyn CryptoRng + Send>) -> Self {
        Self(Mutex::new(rng))
    }

    pub(crate) fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .fill_bytes(&mut bytes);
        bytes
    }

    /// A secret of `N` random bytes in base64url without padding.
    pub(crate) fn secret<const N: usize>(&self) -> String {
        encode(&self.bytes::<N>())
    }
}

impl fmt::Debug for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chance")
    }
}

/// Base64url without padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Strict base64url without padding: exactly one text for some bytes.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_sha256_and_survives_storage() {
        // FIPS 180-4, "abc".
        let hash = SecretHash::of("abc");
        assert_eq!(
            hash.to_hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(SecretHash::from_hex(&hash.to_hex()), Some(hash));
        assert!(hash.matches(&SecretHash::of("abc")) && !hash.matches(&SecretHash::of("abd")));
        assert_eq!(SecretHash::from_hex("ba78"), None);
        assert_eq!(format!("{hash:?}"), "SecretHash(…)");
    }

    #[test]
    fn base64url_has_one_text_for_some_bytes() {
        assert_eq!(encode(&[0xff, 0xfe]), "__4");
        assert_eq!(decode("__4"), Some(vec![0xff, 0xfe]));
        assert_eq!(decode("__5"), None, "stray bits");
        assert_eq!(decode("__4="), None, "padding");
        assert_eq!(decode("//4"), None, "another alphabet");
    }
}
