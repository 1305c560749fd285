//! The text that a wallet signs to claim a deposit on a chain as its own (AIMarket, "payer proof"; EIP-191 `personal_sign`).

use super::address::Address;
use super::key::EvmSignature;
use super::{hex_digits, keccak256};
use crate::error::Refusal;

/// The largest amount that has a text, in cents: whole numbers of a double end there.
const CENTS_MAX: f64 = 9_007_199_254_740_992.0;

/// A deposit that is claimed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PayerProof<'a> {
    /// The chain, such as `base`.
    pub chain: &'a str,
    /// The transaction: hex in any case, with `0x` or without, or base58, whose case matters.
    pub transaction: &'a str,
    /// Who paid.
    pub payer: &'a str,
    /// How much, in dollars.
    pub amount_usd: f64,
}

impl PayerProof<'_> {
    /// The text; two spellings of one deposit have the same one. An amount that is none (`NaN`, infinite, beyond any cents) is
    /// written as -1 cents, which nobody pays.
    pub fn text(&self) -> String {
        format!(
            "AIMarket-Payer-Proof/v1\npurpose:channel-open\nchain:{}\ntx:{}\npayer:{}\namount_cents:{}",
            self.chain.trim().to_lowercase(),
            transaction(self.transaction.trim()),
            payer(self.payer.trim()),
            cents(self.amount_usd),
        )
    }

    /// Whose wallet signed it.
    ///
    /// # Errors
    /// `signature_invalid`.
    pub fn signer(&self, signature: &EvmSignature) -> Result<Address, Refusal> {
        signature.recover(&personal_digest(&self.text()))
    }
}

/// What a wallet signs of a text (EIP-191, version `E`).
pub fn personal_digest(text: &str) -> [u8; 32] {
    keccak256(format!("\x19Ethereum Signed Message:\n{}{text}", text.len()).as_bytes())
}

fn transaction(text: &str) -> String {
    let body = hex_digits(text).unwrap_or(text);
    if is_hex(body) {
        format!("0x{}", body.to_ascii_lowercase())
    } else {
        text.to_owned()
    }
}

fn payer(text: &str) -> String {
    match hex_digits(text) {
        Some(body) if body.len() == 40 && is_hex(body) => format!("0x{}", body.to_ascii_lowercase()),
        _ => text.to_owned(),
    }
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Halves go to the even neighbour, as in Python.
#[expect(
    clippy::cast_possible_truncation,
    reason = "it is whole, and a double holds it exactly"
)]
fn cents(amount_usd: f64) -> i64 {
    let cents = (amount_usd * 100.0).round_ties_even();
    if cents.abs() < CENTS_MAX { cents as i64 } else { -1 }
}
