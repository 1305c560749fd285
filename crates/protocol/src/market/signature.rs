//! AIMarket's signature object: Ed25519 over a text, keys and signatures in base64, and the version of the text.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::value::{Members, Value};
use super::verdict::{Check, Reason, Verdict};
use crate::error::{ErrorCode, Refusal};
use crate::limits::{BASE64_CHARS_MAX, PINNED_KEYS_MAX};
use crate::multikey::{SigningKey, VerifyingKey};

/// The member that holds the signature object.
pub(super) const MEMBER: &str = "signature";

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const EITHER: [GeneralPurpose; 2] = [
    GeneralPurpose::new(&alphabet::STANDARD, LENIENT),
    GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT),
];

/// A key as AIMarket publishes it: standard base64 of the 32 bytes, padded.
pub fn key_text(key: &VerifyingKey) -> String {
    STANDARD.encode(key.as_bytes())
}

/// Reads a key in either alphabet of base64, padded or not. Two spellings of one key give the same key.
///
/// # Errors
/// `key_invalid`: other letters, white space, another length, stray bits at the end, a point that is not on the curve, not
/// canonical or of small order.
pub fn parse_key(text: &str) -> Result<VerifyingKey, Refusal> {
    let bytes: [u8; 32] = decode(text)
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| Refusal::new(ErrorCode::KeyInvalid, "a key is the base64 of 32 bytes"))?;
    VerifyingKey::from_bytes(&bytes)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let text = Some(text).filter(|text| text.len() <= BASE64_CHARS_MAX)?;
    EITHER.iter().find_map(|alphabet| alphabet.decode(text).ok())
}

/// The signature object over this text. A version is named when it is not the first.
pub(super) fn sign(key: &SigningKey, text: &[u8], version: u64) -> Value {
    let mut block = Members::from([
        ("algorithm".to_owned(), Value::from("ed25519")),
        ("public_key".to_owned(), Value::from(key_text(key.public()))),
        (
            "value".to_owned(),
            Value::from(STANDARD.encode(key.sign_bytes(text))),
        ),
    ]);
    if version > 1 {
        block.insert("version".to_owned(), Value::from(version));
    }
    Value::Object(block)
}

/// A signature object that was read.
#[derive(Debug)]
pub(super) struct Block {
    value: [u8; 64],
    /// At least 1.
    pub(super) version: u64,
    /// The key that it names itself. Nobody has to believe it.
    own_key: Option<VerifyingKey>,
    has_post_quantum: bool,
}

impl Block {
    /// Of a signed object whose signature may be of this version at most.
    pub(super) fn of(object: &Members, version_max: u64) -> Result<Self, Verdict> {
        let block = match object.get(MEMBER) {
            None | Some(Value::Null) => return Err(Verdict::False(Reason::SignatureMissing)),
            Some(Value::Object(block)) => block,
            Some(other) => return Err(Verdict::False(Reason::SignatureShape(kind(other)))),
        };
        match block.get("algorithm") {
            None => {}
            Some(name) if name.as_str() == Some("ed25519") => {}
            Some(_) => return Err(Verdict::NotChecked(Reason::AlgorithmUnsupported)),
        }
        let version = version(block)?;
        if version > version_max {
            return Err(Verdict::NotChecked(Reason::VersionUnsupported(version)));
        }
        let shape = Reason::SignatureShape("an object without a text \"value\"");
        let value = block
            .get("value")
            .and_then(Value::as_str)
            .ok_or(Verdict::False(shape))?;
        let value = decode(value).and_then(|bytes| bytes.try_into().ok());
        Ok(Self {
            value: value.ok_or(Verdict::False(Reason::SignatureMalformed))?,
            version,
            own_key: block
                .get("public_key")
                .and_then(Value::as_str)
                .and_then(|key| parse_key(key).ok()),
            has_post_quantum: block.contains_key("pq_value"),
        })
    }

    /// Whether one of the pinned keys has signed one of these texts.
    pub(super) fn check(&self, pinned: &[VerifyingKey], texts: &[Vec<u8>]) -> Check {
        let has_signed = |key: &&VerifyingKey| texts.iter().any(|text| key.verify_bytes(text, &self.value));
        let key = pinned.iter().take(PINNED_KEYS_MAX).find(has_signed).cloned();
        let verdict = match &key {
            Some(_) => Verdict::True,
            None if pinned.is_empty() => Verdict::NotChecked(Reason::NoKey),
            None if self.own_key.as_ref().is_some_and(|key| has_signed(&key)) => {
                Verdict::False(Reason::KeyNotPinned)
            }
            None => Verdict::False(Reason::SignatureInvalid),
        };
        Check {
            verdict,
            key,
            version: Some(self.version),
            uncovered: Vec::new(),
            has_post_quantum: self.has_post_quantum,
        }
    }
}

/// 1 when it is not named.
fn version(block: &Members) -> Result<u64, Verdict> {
    let Some(version) = block.get("version") else {
        return Ok(1);
    };
    let version = version.as_number().and_then(super::Number::as_u64);
    version
        .filter(|version| *version > 0)
        .ok_or(Verdict::False(Reason::VersionUnreadable))
}

/// Verifies an object of which one text is signed, of the first version; `covers` says which members that is made of.
pub(super) fn verify(
    object: &Value,
    pinned: &[VerifyingKey],
    covers: impl Fn(&str) -> bool,
    text: impl FnOnce(&Members) -> Result<Vec<u8>, Reason>,
) -> Check {
    let Some(members) = object.as_object().filter(|members| !members.is_empty()) else {
        return Check::unproven(Verdict::NotChecked(Reason::NothingToCheck));
    };
    let check = match (Block::of(members, 1), text(members)) {
        (Err(verdict), _) => Check::unproven(verdict),
        (Ok(_), Err(reason)) => Check::unproven(Verdict::False(reason)),
        (Ok(block), Ok(text)) => block.check(pinned, &[text]),
    };
    with_uncovered(check, members, covers)
}

/// Names the members that the signature does not cover: all of them, when nobody has signed it.
pub(super) fn with_uncovered(mut check: Check, object: &Members, covers: impl Fn(&str) -> bool) -> Check {
    let is_signed = check.verdict.is_true();
    let is_uncovered = |name: &&String| *name != MEMBER && !(is_signed && covers(name));
    check.uncovered = object.keys().filter(is_uncovered).cloned().collect();
    check
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::Str(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A member of a signed text that is a string, `""` when it is not there. It may not hold a `|`: the text has them between
/// its fields, and one inside a field would let other fields be read out of the same bytes.
pub(super) fn text<'a>(object: &'a Members, name: &'static str) -> Result<&'a str, Reason> {
    match object.get(name) {
        None => Ok(""),
        Some(Value::Str(text)) if !text.contains('|') => Ok(text),
        Some(_) => Err(Reason::MemberInvalid(name)),
    }
}

/// A member of a signed text that is a number, the integer 0 when it is not there.
pub(super) fn number(object: &Members, name: &'static str) -> Result<super::Number, Reason> {
    match object.get(name) {
        None => Ok(super::Number::ZERO),
        Some(Value::Number(number)) => Ok(*number),
        Some(_) => Err(Reason::MemberInvalid(name)),
    }
}

/// What cannot be signed is refused to its author.
pub(super) fn unsignable(reason: &Reason) -> Refusal {
    let refusal = Refusal::new(ErrorCode::MemberInvalid, reason.to_string());
    match reason {
        Reason::MemberInvalid(name) => refusal.with("member", *name),
        _ => refusal,
    }
}
