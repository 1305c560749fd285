//! Money on chains with Ethereum's signatures: addresses, numbers, and who signed what. Pure: nothing here asks a chain.
//!
//! [`eip712`] is the digest of typed data; [`transfer`] is the order to pay that x402 shows (EIP-3009), [`debit`] the one that
//! AIMarket's escrow takes, and [`payer`] the text by which a wallet claims a deposit (EIP-191). [`key`] signs and recovers.

use sha3::{Digest as _, Keccak256};

use crate::error::{ErrorCode, Refusal};

pub mod address;
pub mod debit;
pub mod eip712;
pub mod key;
pub mod payer;
pub mod transfer;
pub mod word;

pub use address::Address;
pub use key::{EvmKey, EvmSignature};
pub use word::Word;

/// Keccak-256, as Ethereum hashes: SHA-3 before it was a standard.
pub fn keccak256(bytes: &[u8]) -> [u8; 32] {
    Keccak256::digest(bytes).into()
}

/// The digits after `0x` or `0X`.
fn hex_digits(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

/// What is not in its form.
fn malformed(detail: &'static str) -> Refusal {
    Refusal::new(ErrorCode::MemberInvalid, detail)
}

#[cfg(test)]
mod tests;
