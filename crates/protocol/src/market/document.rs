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
    let mut check = signature::verify(document, pinned, |members| Ok(canonical(members)));
    if !check.verdict.is_true() {
        let names = document.as_object().into_iter().flat_map(Members::keys);
        check.uncovered = names.filter(|name| *name != signature::MEMBER).cloned().collect();
    }
    check
}

/// The compact text of everything but the signature.
fn canonical(document: &Members) -> Vec<u8> {
    compact_members(pairs(document).filter(|(name, _)| *name != signature::MEMBER))
}
