//! The digest of typed data (EIP-712): of a domain, which keeps a signature for one contract on one chain, and of a struct.

use super::address::Address;
use super::keccak256;
use super::word::Word;

const DOMAIN_TYPE: &str =
    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)";

/// For which contract on which chain something is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// What the contract calls itself.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The chain.
    pub chain_id: u64,
    /// The contract.
    pub contract: Address,
}

impl Domain {
    /// What the contract calls its `DOMAIN_SEPARATOR`.
    pub fn separator(&self) -> [u8; 32] {
        let text = |text: &str| Word::from_bytes(keccak256(text.as_bytes()));
        hash_struct(
            DOMAIN_TYPE,
            &[
                text(&self.name),
                text(&self.version),
                Word::from(self.chain_id),
                self.contract.word(),
            ],
        )
    }

    /// What is signed of a struct.
    pub fn digest(&self, hash: &[u8; 32]) -> [u8; 32] {
        keccak256(&[b"\x19\x01".as_slice(), &self.separator(), hash].concat())
    }
}

/// The hash of a struct whose members are all one word.
pub(super) fn hash_struct(type_text: &str, members: &[Word]) -> [u8; 32] {
    let kind = keccak256(type_text.as_bytes());
    let words = members.iter().map(Word::as_bytes);
    let bytes: Vec<u8> = std::iter::once(&kind).chain(words).flatten().copied().collect();
    keccak256(&bytes)
}
