//! Keys: Ed25519 to sign, X25519 to seal, written as Multikey (§2).
//!
//! A Multikey is `z` and the base58btc form of a two-byte multicodec prefix and the 32 key bytes.
//! Public keys are checked when they are read, so a key in hand is a good key: canonical, on the
//! curve, not of low order. Secrets are wiped when dropped and never printed.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use ed25519_dalek::Signer as _;
use rand_core::CryptoRng;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::{Zeroize as _, Zeroizing};

use crate::error::{ErrorCode, Refusal};
use crate::limits::MULTIKEY_CHARS_MAX;

/// Multicodec `ed25519-pub`, 0xed, as a varint.
const ED25519_PREFIX: [u8; 2] = [0xed, 0x01];
/// Multicodec `x25519-pub`, 0xec, as a varint.
const X25519_PREFIX: [u8; 2] = [0xec, 0x01];

/// The u-coordinates of low order on Curve25519 and its twist, with the non-canonical spellings
/// of 0 and 1; the top bit of an encoding is not part of the coordinate (RFC 7748 §5).
const X25519_LOW_ORDER: [[u8; 32]; 7] = [
    [0; 32],
    [
        1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ],
    [
        0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda,
        0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00,
    ],
    [
        0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef, 0x5b, 0x04,
        0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f, 0x11, 0x57,
    ],
    near_prime(0xec),
    near_prime(0xed),
    near_prime(0xee),
];

/// 2^255 - 19 with another lowest byte.
const fn near_prime(lowest: u8) -> [u8; 32] {
    let mut bytes = [0xff; 32];
    bytes[0] = lowest;
    bytes[31] = 0x7f;
    bytes
}

/// An Ed25519 public key, with its decoded point and its text. Cheap to clone.
#[derive(Clone)]
pub struct VerifyingKey {
    point: ed25519_dalek::VerifyingKey,
    text: Arc<str>,
}

/// An X25519 public key, with its text. Cheap to clone.
#[derive(Clone)]
pub struct SealingKey {
    bytes: [u8; 32],
    text: Arc<str>,
}

impl VerifyingKey {
    /// Reads a `z6Mk…` Multikey; anything else is `key_invalid`.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let bytes = decode(text, ED25519_PREFIX).ok_or_else(not_ed25519)?;
        Ok(Self {
            point: point(&bytes)?,
            text: text.into(),
        })
    }

    /// Whether the text is an Ed25519 Multikey by prefix and length; the point is not decoded.
    pub(crate) fn check_text(text: &str) -> Result<(), Refusal> {
        decode(text, ED25519_PREFIX).map(drop).ok_or_else(not_ed25519)
    }

    /// From the 32 bytes of RFC 8032.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, Refusal> {
        Ok(Self {
            point: point(bytes)?,
            text: encode(ED25519_PREFIX, bytes),
        })
    }

    /// The 32 bytes of RFC 8032.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.point.as_bytes()
    }

    /// The Multikey.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Strict verification of raw bytes: `S < L`, neither key nor R of low order, R canonical.
    ///
    /// For byte strings that bring their own domain separation, such as RFC 9421; AIP objects go
    /// through [`crate::signature::verify`].
    pub fn verify_bytes(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.point
            .verify_strict(message, &ed25519_dalek::Signature::from_bytes(signature))
            .is_ok()
    }
}

impl SealingKey {
    /// Reads a `z6LS…` Multikey; anything else is `key_invalid`.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let bytes = decode(text, X25519_PREFIX).ok_or_else(|| invalid("not an X25519 Multikey (z6LS…)"))?;
        refuse_low_order(&bytes)?;
        Ok(Self {
            bytes,
            text: text.into(),
        })
    }

    /// From the 32 bytes of RFC 7748.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, Refusal> {
        refuse_low_order(bytes)?;
        Ok(Self {
            bytes: *bytes,
            text: encode(X25519_PREFIX, bytes),
        })
    }

    /// The 32 bytes of RFC 7748.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// The Multikey.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

fn invalid(detail: &'static str) -> Refusal {
    Refusal::new(ErrorCode::KeyInvalid, detail)
}

fn not_ed25519() -> Refusal {
    invalid("not an Ed25519 Multikey (z6Mk…)")
}

fn decode(text: &str, prefix: [u8; 2]) -> Option<[u8; 32]> {
    let digits = text
        .strip_prefix('z')
        .filter(|_| text.len() <= MULTIKEY_CHARS_MAX)?;
    let mut bytes = [0; 34];
    let length = bs58::decode(digits).onto(&mut bytes).ok()?;
    bytes
        .strip_prefix(&prefix)
        .filter(|_| length == 34)?
        .try_into()
        .ok()
}

fn encode(prefix: [u8; 2], key: &[u8; 32]) -> Arc<str> {
    let mut bytes = [0; 34];
    bytes
        .iter_mut()
        .zip(prefix.iter().chain(key))
        .for_each(|(slot, byte)| *slot = *byte);
    format!("z{}", bs58::encode(bytes).into_string()).into()
}

fn point(bytes: &[u8; 32]) -> Result<ed25519_dalek::VerifyingKey, Refusal> {
    let Ok(key) = ed25519_dalek::VerifyingKey::from_bytes(bytes) else {
        return Err(invalid("the bytes are no point of Ed25519"));
    };
    if key.is_weak() || !is_canonical(bytes) {
        return Err(invalid("an Ed25519 key of low order, or not canonical"));
    }
    Ok(key)
}

/// Whether y is below p = 2^255 - 19. Decompression takes it modulo p, so that some points would
/// have a second spelling; those with x = 0 and a set sign bit are of low order anyway.
fn is_canonical(bytes: &[u8; 32]) -> bool {
    let [lowest, middle @ .., highest] = bytes;
    highest & 0x7f != 0x7f || middle.iter().any(|byte| *byte != 0xff) || *lowest < 0xed
}

fn refuse_low_order(bytes: &[u8; 32]) -> Result<(), Refusal> {
    let mut coordinate = *bytes;
    if let Some(top) = coordinate.last_mut() {
        *top &= 0x7f;
    }
    if X25519_LOW_ORDER.contains(&coordinate) {
        Err(invalid("an X25519 key of low order"))
    } else {
        Ok(())
    }
}

/// What the two public kinds share: text in, text out, identity by bytes.
macro_rules! public_key {
    ($kind:ident) => {
        impl PartialEq for $kind {
            fn eq(&self, other: &Self) -> bool {
                self.as_bytes() == other.as_bytes()
            }
        }

        impl Eq for $kind {}

        impl Hash for $kind {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.as_bytes().hash(state);
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.text)
            }
        }

        impl fmt::Debug for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($kind), self.text)
            }
        }

        impl FromStr for $kind {
            type Err = Refusal;

            fn from_str(text: &str) -> Result<Self, Refusal> {
                Self::parse(text)
            }
        }

        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.text)
            }
        }

        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

public_key!(VerifyingKey);
public_key!(SealingKey);

/// An Ed25519 secret key. Wiped when dropped, redacted in `Debug`.
#[derive(Clone)]
pub struct SigningKey {
    secret: ed25519_dalek::SigningKey,
    public: VerifyingKey,
}

impl SigningKey {
    /// A fresh key.
    pub fn generate(rng: &mut impl CryptoRng) -> Self {
        let mut seed = Zeroizing::new([0; 32]);
        rng.fill_bytes(seed.as_mut());
        Self::from_seed(*seed)
    }

    /// From the 32-byte seed that RFC 8032 calls the private key.
    pub fn from_seed(mut seed: [u8; 32]) -> Self {
        let secret = ed25519_dalek::SigningKey::from_bytes(&seed);
        seed.zeroize();
        // A public key that comes from a clamped scalar is canonical and of large order.
        let point = secret.verifying_key();
        let text = encode(ED25519_PREFIX, point.as_bytes());
        Self {
            secret,
            public: VerifyingKey { point, text },
        }
    }

    /// The seed, to be stored; wiped when dropped.
    pub fn seed(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.secret.to_bytes())
    }

    /// The public half.
    pub fn public(&self) -> &VerifyingKey {
        &self.public
    }

    /// Signs raw bytes; see [`VerifyingKey::verify_bytes`] for when that is right.
    pub fn sign_bytes(&self, message: &[u8]) -> [u8; 64] {
        self.secret.sign(message).to_bytes()
    }
}

/// An X25519 secret key. Wiped when dropped, redacted in `Debug`.
#[derive(Clone)]
pub struct OpeningKey {
    secret: Zeroizing<[u8; 32]>,
    public: SealingKey,
}

impl OpeningKey {
    /// A fresh key.
    pub fn generate(rng: &mut impl CryptoRng) -> Self {
        let mut seed = Zeroizing::new([0; 32]);
        rng.fill_bytes(seed.as_mut());
        Self::from_seed(*seed)
    }

    /// From the 32 secret bytes of RFC 7748; they are clamped on use.
    pub fn from_seed(mut seed: [u8; 32]) -> Self {
        let secret = Zeroizing::new(seed);
        let bytes = x25519_dalek::PublicKey::from(&x25519_dalek::StaticSecret::from(seed)).to_bytes();
        seed.zeroize();
        Self {
            secret,
            public: SealingKey {
                bytes,
                text: encode(X25519_PREFIX, &bytes),
            },
        }
    }

    /// The secret bytes, to be stored; wiped when dropped.
    pub fn seed(&self) -> Zeroizing<[u8; 32]> {
        self.secret.clone()
    }

    /// The public half.
    pub fn public(&self) -> &SealingKey {
        &self.public
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({}, secret)", self.public)
    }
}

impl fmt::Debug for OpeningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpeningKey({}, secret)", self.public)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_x25519_point_gives_an_all_zero_secret() {
        let secret = x25519_dalek::StaticSecret::from([7; 32]);
        for mut point in X25519_LOW_ORDER {
            for top_bit in [0, 0x80] {
                point[31] = point[31] & 0x7f | top_bit;
                let shared = secret.diffie_hellman(&x25519_dalek::PublicKey::from(point));
                assert!(!shared.was_contributory(), "{point:02x?}");
                assert_eq!(
                    SealingKey::from_bytes(&point).unwrap_err().code,
                    ErrorCode::KeyInvalid
                );
            }
        }
    }

    #[test]
    fn a_non_canonical_or_undecodable_point_is_no_key() {
        // y = p + 3 spells y = 3 a second time.
        for bytes in [near_prime(0xf0), [2; 32]] {
            assert_eq!(
                VerifyingKey::from_bytes(&bytes).unwrap_err().code,
                ErrorCode::KeyInvalid
            );
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let signing = SigningKey::from_seed([0xab; 32]);
        let opening = OpeningKey::from_seed([0xab; 32]);
        for shown in [format!("{signing:?}"), format!("{opening:?}")] {
            assert!(
                shown.ends_with(", secret)") && !shown.contains("abab") && !shown.contains("171"),
                "{shown}"
            );
        }
        assert_eq!(*signing.seed(), [0xab; 32]);
        assert_eq!(*opening.seed(), [0xab; 32]);
    }
}
