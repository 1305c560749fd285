//! Reading the members of a signed object, with the refusals of §7.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::error::{ErrorCode, Refusal};
use crate::json::{Json, Object};
use crate::multikey::{SealingKey, VerifyingKey};
use crate::time::Timestamp;

/// `member_invalid`, naming the member and what it should be.
pub(crate) fn invalid(name: &str, should: &str) -> Refusal {
    Refusal::new(ErrorCode::MemberInvalid, format!("{name} {should}")).with("member", name)
}

/// All of these are there, else `member_missing`.
pub(crate) fn require(object: &Object, names: &[&str]) -> Result<(), Refusal> {
    match names.iter().find(|name| !object.contains(name)) {
        None => Ok(()),
        Some(name) => {
            Err(Refusal::new(ErrorCode::MemberMissing, format!("{name} is missing")).with("member", *name))
        }
    }
}

/// `aip` is `"1"`, when it is there at all.
pub(crate) fn check_version(object: &Object) -> Result<(), Refusal> {
    match object.get("aip") {
        None => Ok(()),
        Some(version) if version.as_str() == Some("1") => Ok(()),
        Some(_) => Err(Refusal::new(ErrorCode::VersionUnsupported, "aip must be \"1\"")),
    }
}

/// A string member that is known to be there.
pub(crate) fn text<'a>(object: &'a Object, name: &str) -> Result<&'a str, Refusal> {
    object
        .get(name)
        .and_then(Json::as_str)
        .ok_or_else(|| invalid(name, "must be a JSON string"))
}

/// A string member that may be absent, but not `null`.
pub(crate) fn optional_text<'a>(object: &'a Object, name: &str) -> Result<Option<&'a str>, Refusal> {
    if object.contains(name) {
        text(object, name).map(Some)
    } else {
        Ok(None)
    }
}

/// A time member that is known to be there.
pub(crate) fn time(object: &Object, name: &str) -> Result<Timestamp, Refusal> {
    let parsed = object.get(name).and_then(Json::as_str).map(Timestamp::parse);
    parsed
        .and_then(Result::ok)
        .ok_or_else(|| invalid(name, "is an RFC 3339 time in UTC with 'Z'"))
}

/// A time member that may be absent, but not `null`.
pub(crate) fn optional_time(object: &Object, name: &str) -> Result<Option<Timestamp>, Refusal> {
    if object.contains(name) {
        time(object, name).map(Some)
    } else {
        Ok(None)
    }
}

/// The part of a `kid` after `owner#` (§2).
pub(crate) fn kid_fragment<'a>(kid: &'a str, owner: &str, member: &str) -> Result<&'a str, Refusal> {
    let fragment = kid.strip_prefix(owner).and_then(|rest| rest.strip_prefix('#'));
    fragment.ok_or_else(|| invalid(member, "is the owner, '#', and one of its keys"))
}

/// The Ed25519 key that a `kid` of this owner names.
pub(crate) fn verifying_kid(kid: &str, owner: &str, member: &str) -> Result<VerifyingKey, Refusal> {
    VerifyingKey::parse(kid_fragment(kid, owner, member)?)
}

/// The X25519 key that a `kid` of this owner names.
pub(crate) fn sealing_kid(kid: &str, owner: &str, member: &str) -> Result<SealingKey, Refusal> {
    SealingKey::parse(kid_fragment(kid, owner, member)?)
}

/// Strict base64url: no padding, no other letters, no stray bits at the end.
pub(crate) fn base64url(encoded: &str, member: &str) -> Result<Vec<u8>, Refusal> {
    URL_SAFE_NO_PAD
        .decode(encoded)
        .map_err(|_malformed| invalid(member, "is base64url without padding"))
}

/// base64url without padding.
pub(crate) fn to_base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
