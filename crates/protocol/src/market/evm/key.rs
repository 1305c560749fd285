//! secp256k1: who signed a digest, and signing one.

use std::fmt;

use k256::ecdsa::{RecoveryId, Signature, SigningKey, VerifyingKey};

use super::address::Address;
use super::{hex_digits, keccak256, malformed};
use crate::error::{ErrorCode, Refusal};

/// What is added to the parity of a signature's point.
const PARITY_BASE: u8 = 27;

/// A signature of 65 bytes: `r`, `s`, and 27 or 28. Of the two values of `s` that would do, the low one (EIP-2), so that nobody
/// makes a second signature from it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EvmSignature {
    signature: Signature,
    parity: RecoveryId,
}

impl EvmSignature {
    /// Reads `0x` and 130 hex digits.
    ///
    /// # Errors
    /// `signature_invalid`: another form, `r` or `s` out of range, a high `s`, another last byte than 27 and 28.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let mut bytes = [0; 65];
        let digits = hex_digits(text).ok_or_else(bad_signature)?;
        hex::decode_to_slice(digits, &mut bytes).map_err(|_error| bad_signature())?;
        Self::from_bytes(&bytes)
    }

    /// Reads the bytes.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn from_bytes(bytes: &[u8; 65]) -> Result<Self, Refusal> {
        let [scalars @ .., last] = bytes;
        let signature = Signature::from_slice(scalars).map_err(|_error| bad_signature())?;
        let parity = last.checked_sub(PARITY_BASE).filter(|parity| *parity <= 1);
        let parity = parity.and_then(RecoveryId::from_byte).ok_or_else(bad_signature)?;
        if signature.normalize_s() == signature {
            Ok(Self { signature, parity })
        } else {
            Err(bad_signature())
        }
    }

    /// As on the wire.
    pub fn to_bytes(&self) -> [u8; 65] {
        let mut bytes = [0; 65];
        for (place, byte) in bytes.iter_mut().zip(self.signature.to_bytes()) {
            *place = byte;
        }
        let [.., last] = &mut bytes;
        *last = PARITY_BASE + self.parity.to_byte();
        bytes
    }

    /// Who signed this digest. Everything was signed by somebody: the question is always whether it is the expected one.
    ///
    /// # Errors
    /// `signature_invalid`: there is no such key.
    pub fn recover(&self, digest: &[u8; 32]) -> Result<Address, Refusal> {
        let key = VerifyingKey::recover_from_prehash(digest, &self.signature, self.parity);
        Ok(address(&key.map_err(|_error| bad_signature())?))
    }
}

/// `0x` and 130 hex digits.
impl fmt::Display for EvmSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", hex::encode(self.to_bytes()))
    }
}

impl fmt::Debug for EvmSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EvmSignature(…)")
    }
}

/// A key of a wallet; wiped when it is dropped, never printed. No part of a hub holds one: it is for wallets and for tests.
pub struct EvmKey(SigningKey);

impl EvmKey {
    /// From its 32 bytes.
    ///
    /// # Errors
    /// `key_invalid`: nothing, or beyond the order of the curve.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, Refusal> {
        let key = SigningKey::from_slice(bytes);
        key.map(Self)
            .map_err(|_error| Refusal::new(ErrorCode::KeyInvalid, "These are no key of secp256k1."))
    }

    /// Whose it is.
    pub fn address(&self) -> Address {
        address(self.0.verifying_key())
    }

    /// Signs a digest, the same way every time (RFC 6979).
    pub fn sign(&self, digest: &[u8; 32]) -> EvmSignature {
        let (signature, parity) = self.0.sign_prehash_recoverable(digest);
        EvmSignature { signature, parity }
    }
}

impl fmt::Debug for EvmKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EvmKey(…)")
    }
}

/// The last 20 bytes of the hash of the point.
fn address(key: &VerifyingKey) -> Address {
    let point = key.to_sec1_point(false);
    let [_tag, point @ ..] = point.as_bytes() else {
        return Address::ZERO;
    };
    let mut bytes = [0; 20];
    let hash = keccak256(point);
    for (place, byte) in bytes.iter_mut().rev().zip(hash.iter().rev()) {
        *place = *byte;
    }
    Address::from_bytes(bytes)
}

fn bad_signature() -> Refusal {
    Refusal {
        code: ErrorCode::SignatureInvalid,
        ..malformed("A signature is 0x and 130 hex digits: r, the low s, and 27 or 28.")
    }
}
