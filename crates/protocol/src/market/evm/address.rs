//! Addresses of Ethereum and its like.

use std::fmt;

use super::word::Word;
use super::{hex_digits, keccak256, malformed};
use crate::error::Refusal;

/// An account or a contract: 20 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address([u8; 20]);

impl Address {
    /// The address that nobody has.
    pub const ZERO: Self = Self([0; 20]);

    /// Of these bytes.
    pub const fn from_bytes(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    /// Reads `0x` and 40 hex digits. Where letters of both cases are in it, their case is a checksum (EIP-55) and must be
    /// right: such an address was mistyped otherwise.
    ///
    /// # Errors
    /// `member_invalid`: anything else.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let refusal = || malformed("An address is 0x and 40 hex digits.");
        let digits = hex_digits(text).ok_or_else(refusal)?;
        let mut bytes = [0; 20];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_error| refusal())?;
        let address = Self(bytes);
        let has_upper = digits.bytes().any(|byte| byte.is_ascii_uppercase());
        let has_lower = digits.bytes().any(|byte| byte.is_ascii_lowercase());
        if has_upper && has_lower && hex_digits(&address.to_string()) != Some(digits) {
            return Err(malformed(
                "The letters of the address are not in the case that its checksum asks for (EIP-55).",
            ));
        }
        Ok(address)
    }

    /// `0x` and lower case: one spelling for what is compared as text.
    pub fn lower(&self) -> String {
        format!("0x{}", hex::encode(self.0))
    }

    /// As typed data holds it.
    pub(super) fn word(self) -> Word {
        let mut word = [0; 32];
        for (place, byte) in word.iter_mut().rev().zip(self.0.iter().rev()) {
            *place = *byte;
        }
        Word::from_bytes(word)
    }
}

/// With the case that is its checksum (EIP-55).
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = hex::encode(self.0);
        let hash = hex::encode(keccak256(digits.as_bytes()));
        f.write_str("0x")?;
        for (digit, rank) in digits.chars().zip(hash.chars()) {
            let is_upper = matches!(rank, '8'..='9' | 'a'..='f');
            let digit = if is_upper {
                digit.to_ascii_uppercase()
            } else {
                digit
            };
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
