//! Documents that are signed as a whole: the discovery document and the price list.

use super::digest::{compact_members, pairs};
use super::signature;
use super::value::{Members, Value};
use super::verdict::Check;
use crate::multikey::{SigningKey, VerifyingKey};

/// Signs all members; a signature that the document has is replaced.
pub fn sign(mut document: Members, key: &SigningKey) -> Value {
    let block = signature::sign(key, &canonical(&document), 1);
    document.insert(signature::MEMBER.to_owned(), block);
    document.into()
}

/// Whether one of the pinned keys has signed this document. Nothing of it is uncovered.
pub fn verify(document: &Value, pinned: &[VerifyingKey]) -> Check {
    signature::verify(document, pinned, |_| true, |members| Ok(canonical(members)))
}

/// The compact text of everything but the signature.
fn canonical(document: &Members) -> Vec<u8> {
    compact_members(pairs(document).filter(|(name, _)| *name != signature::MEMBER))
}
