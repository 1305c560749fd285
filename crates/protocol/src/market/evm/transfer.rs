//! The order to pay that x402 shows: `TransferWithAuthorization` of a token (EIP-3009). Whoever has it can have it carried out,
//! once, and can change nothing of it.

use super::address::Address;
use super::eip712::{Domain, hash_struct};
use super::key::EvmSignature;
use super::word::Word;
use crate::error::Refusal;

const TYPE: &str = "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,\
                    uint256 validBefore,bytes32 nonce)";

/// Who pays whom how much, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Who pays.
    pub from: Address,
    /// Who is paid.
    pub to: Address,
    /// How much, in the token's smallest units.
    pub value: Word,
    /// Not before the second after this one, in seconds since 1970.
    pub valid_after: Word,
    /// Before this second.
    pub valid_before: Word,
    /// Good once for each payer.
    pub nonce: Word,
}

impl Transfer {
    /// What is signed; the domain is that of the token.
    pub fn digest(&self, token: &Domain) -> [u8; 32] {
        token.digest(&hash_struct(
            TYPE,
            &[
                self.from.word(),
                self.to.word(),
                self.value,
                self.valid_after,
                self.valid_before,
                self.nonce,
            ],
        ))
    }

    /// Whether the payer signed it.
    pub fn is_signed(&self, token: &Domain, signature: &EvmSignature) -> bool {
        let signer: Result<Address, Refusal> = signature.recover(&self.digest(token));
        signer.is_ok_and(|signer| signer == self.from && signer != Address::ZERO)
    }

    /// Whether it can be carried out in this second.
    pub fn is_valid_at(&self, unix_secs: u64) -> bool {
        let now = Word::from(unix_secs);
        self.valid_after < now && now < self.valid_before
    }
}
