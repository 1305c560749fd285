//! Numbers and hashes of 32 bytes, as typed data holds everything.

use std::fmt;

use super::{hex_digits, malformed};
use crate::error::Refusal;

/// The digits of the largest number.
const DECIMAL_DIGITS_MAX: usize = 78;

/// A number from 0 to 2^256 - 1, or 32 bytes of something else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Word([u8; 32]);

impl Word {
    /// Of these bytes, the highest first.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes, the highest first.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads decimal digits, or `0x` and hex digits; leading zeros may be left out.
    ///
    /// # Errors
    /// `member_invalid`: anything else, and what is beyond 256 bits.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let number = match hex_digits(text) {
            Some(digits) => from_hex(digits),
            None => from_decimal(text),
        };
        number.ok_or_else(|| {
            malformed("A number of a chain is decimal digits, or 0x and hex digits, of at most 256 bits.")
        })
    }

    /// Reads `0x` and exactly 64 hex digits.
    ///
    /// # Errors
    /// `member_invalid`: anything else.
    pub fn parse_hash(text: &str) -> Result<Self, Refusal> {
        let digits = hex_digits(text).filter(|digits| digits.len() == 64);
        digits
            .and_then(from_hex)
            .ok_or_else(|| malformed("A hash is 0x and 64 hex digits."))
    }

    /// The number, where it fits.
    pub fn to_u128(&self) -> Option<u128> {
        let (high, low) = self.0.split_at(16);
        let is_small = high.iter().all(|byte| *byte == 0);
        let low = low.try_into().ok().filter(|_| is_small)?;
        Some(u128::from_be_bytes(low))
    }
}

impl From<u128> for Word {
    fn from(number: u128) -> Self {
        let mut word = [0; 32];
        for (place, byte) in word.iter_mut().rev().zip(number.to_be_bytes().iter().rev()) {
            *place = *byte;
        }
        Self(word)
    }
}

impl From<u64> for Word {
    fn from(number: u64) -> Self {
        Self::from(u128::from(number))
    }
}

/// As a hash is written: `0x` and 64 digits.
impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", hex::encode(self.0))
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn from_hex(digits: &str) -> Option<Word> {
    if digits.is_empty() || digits.len() > 64 {
        return None;
    }
    let mut word = [0; 32];
    hex::decode_to_slice(format!("{digits:0>64}"), &mut word).ok()?;
    Some(Word(word))
}

fn from_decimal(digits: &str) -> Option<Word> {
    if digits.is_empty() || digits.len() > DECIMAL_DIGITS_MAX {
        return None;
    }
    let mut word = [0_u8; 32];
    for digit in digits.chars() {
        let mut carry = u16::try_from(digit.to_digit(10)?).ok()?;
        for place in word.iter_mut().rev() {
            let [high, low] = (u16::from(*place) * 10 + carry).to_be_bytes();
            (*place, carry) = (low, u16::from(high));
        }
        if carry > 0 {
            return None;
        }
    }
    Some(Word(word))
}
