//! The envelope: the signed, sealed unit that agents exchange (§4).

use sha2::{Digest as _, Sha256};
use uuid::{Uuid, Variant};

use crate::error::{ErrorCode, Refusal};
use crate::identity::multihash;
use crate::json::{Json, Object};
use crate::limits::{CORRELATION_BYTES_MAX, TYPE_BYTES_MAX};
use crate::members::{
    base64url, check_version, invalid, kid_fragment, optional_text, optional_time, require, sealing_kid,
    text, time, verifying_kid,
};
use crate::multikey::{OpeningKey, VerifyingKey};
use crate::name::Did;
use crate::seal::{self, OpenError, Plaintext, SUITE, TAG_BYTES};
use crate::signature::{Signature, SignedBytes, Tag};
use crate::time::Timestamp;

mod draft;
mod freshness;

pub use draft::{EnvelopeDraft, new_id};
pub use freshness::{check_expiry, check_window};

const MEMBERS: [&str; 9] = [
    "aip",
    "id",
    "from",
    "to",
    "type",
    "created_at",
    "encrypted_body",
    "kid",
    "sig",
];
const UNSEALED: [&str; 2] = ["encrypted_body", "sig"];

/// An envelope of good form. Time, sender and signature are judged with it, not by it.
///
/// Its canonical bytes are made once, when it is read; [`Envelope::digest`] and
/// [`Envelope::verify`] use them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Envelope {
    /// UUID v4, unique per sender and recipient.
    pub id: Uuid,
    /// The sender.
    pub from: Did,
    /// The recipient.
    pub to: Did,
    /// The member `type`, readable by hubs.
    pub kind: String,
    /// When the sender made it.
    pub created_at: Timestamp,
    /// After this moment it is no longer delivered.
    pub expires_at: Option<Timestamp>,
    /// Correlation of a conversation.
    pub thread: Option<String>,
    /// What this answers.
    pub reply_to: Option<String>,
    /// The sender's signing key: DID, `#`, Multikey.
    pub kid: String,
    /// Over the envelope without `sig`.
    pub sig: Signature,
    /// The recipient's sealing key: DID, `#`, Multikey.
    pub body_kid: String,
    /// The whole envelope, members unknown here included.
    pub json: Json,
    bytes: SignedBytes,
}

impl Envelope {
    /// Reads strict JSON and checks members and forms; the size on the wire is the caller's to
    /// check before ([`crate::limits::ENVELOPE_BYTES_MAX`]).
    ///
    /// The refusals are `json_invalid`, `version_unsupported`, `member_missing`, `member_invalid`
    /// and those of its DIDs, keys and signature text.
    pub fn parse(wire: &[u8]) -> Result<Self, Refusal> {
        Self::of_checked(Json::parse(wire)?)
    }

    /// The same for a value that was parsed already, as an item of a batch.
    pub fn from_json(json: Json) -> Result<Self, Refusal> {
        json.check()?;
        Self::of_checked(json)
    }

    fn of_checked(json: Json) -> Result<Self, Refusal> {
        let Json::Object(object) = &json else {
            return Err(Refusal::new(ErrorCode::MemberInvalid, "an envelope is an object"));
        };
        check_version(object)?;
        require(object, &MEMBERS)?;
        let id = id(text(object, "id")?)?;
        let from = Did::parse(text(object, "from")?)?;
        let to = Did::parse(text(object, "to")?)?;
        let kind = kind(text(object, "type")?)?;
        let created_at = time(object, "created_at")?;
        let expires_at = optional_time(object, "expires_at")?;
        if expires_at.is_some_and(|expires_at| expires_at <= created_at) {
            return Err(invalid("expires_at", "is later than created_at"));
        }
        let thread = correlation(object, "thread")?;
        let reply_to = correlation(object, "reply_to")?;
        let body_kid = body_kid(object, &to)?;
        let kid = text(object, "kid")?.to_owned();
        // Decoding the point costs more than all the rest; a key that is no point is in no history.
        VerifyingKey::check_text(kid_fragment(&kid, from.as_str(), "kid")?)?;
        let sig = Signature::parse(object.get("sig").and_then(Json::as_str).unwrap_or_default())?;
        let bytes = SignedBytes::of(Tag::Envelope, object);
        Ok(Self {
            id,
            from,
            to,
            kind,
            created_at,
            expires_at,
            thread,
            reply_to,
            kid,
            sig,
            body_kid,
            json,
            bytes,
        })
    }

    /// SHA-256 of the canonical bytes: equal digests are equal envelopes (§5).
    pub fn digest(&self) -> [u8; 32] {
        self.bytes.digest
    }

    /// The same as a multibase multihash (`z…`, as `prev` of §3 has it): what a receipt names.
    pub fn multihash(&self) -> String {
        multihash(&self.bytes.digest)
    }

    /// The key of the dedup record (§5): the first 16 bytes of SHA-256 over `aip/1 dedup`, sender,
    /// recipient and id, each after its length as 4 bytes, big-endian.
    pub fn dedup_key(&self) -> [u8; 16] {
        dedup_key(&self.from, &self.to, self.id)
    }

    /// What to say when the sender's history holds no good key for `kid`: `key_unknown`, or
    /// `key_invalid` when it names no key at all.
    pub fn unknown_key(&self) -> Refusal {
        let unknown = || {
            let detail = "kid names no key of the sender that was valid at created_at";
            Refusal::new(ErrorCode::KeyUnknown, detail)
        };
        verifying_kid(&self.kid, self.from.as_str(), "kid").map_or_else(|bad| bad, |_key| unknown())
    }

    /// Verifies the signature strictly with a key that the caller found good for `kid`.
    pub fn verify(&self, key: &VerifyingKey) -> bool {
        key.verify_bytes(&self.bytes.input, self.sig.as_bytes())
    }

    /// What the body is bound to: the canonical bytes without `encrypted_body` and `sig`.
    pub fn aad(&self) -> Vec<u8> {
        self.json.as_object().map_or_else(Vec::new, header_bytes)
    }

    /// The canonical bytes, good to be sent. A hub passes on what it received instead.
    pub fn to_wire(&self) -> Vec<u8> {
        self.json.to_jcs()
    }

    /// Opens the body with the recipient's key; the signature is verified separately.
    pub fn open(&self, key: &OpeningKey) -> Result<Plaintext, OpenError> {
        Plaintext::from_bytes(&self.open_bytes(key)?)
    }

    /// Opens the body and leaves it as bytes.
    pub fn open_bytes(&self, key: &OpeningKey) -> Result<Vec<u8>, OpenError> {
        if self.body_kid != format!("{}#{}", self.to, key.public()) {
            return Err(OpenError::OtherKey);
        }
        let body = self.json.get("encrypted_body").and_then(Json::as_object);
        let bytes = |name| {
            let encoded = body
                .and_then(|body| body.get(name))
                .and_then(Json::as_str)
                .unwrap_or_default();
            base64url(encoded, name).map_err(|_checked_before| OpenError::Failed)
        };
        seal::open(key, &bytes("enc")?, &bytes("ct")?, &self.aad())
    }
}

/// [`Envelope::dedup_key`] of an envelope that is not there any more.
pub fn dedup_key(from: &Did, to: &Did, id: Uuid) -> [u8; 16] {
    let id = id.hyphenated().to_string();
    let mut hash = Sha256::new();
    for part in ["aip/1 dedup", from.as_str(), to.as_str(), &id] {
        // Every part is far below 4 GiB.
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        hash.update(length.to_be_bytes());
        hash.update(part);
    }
    let mut key = [0; 16];
    key.iter_mut()
        .zip(hash.finalize())
        .for_each(|(slot, byte)| *slot = byte);
    key
}

/// The canonical bytes of the header, the AAD of the sealed body (§4).
pub fn header_bytes(envelope: &Object) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    envelope.write_jcs_without(&UNSEALED, &mut bytes);
    bytes
}

/// A version 4 UUID in its one lower-case, hyphenated spelling.
fn id(text: &str) -> Result<Uuid, Refusal> {
    let id = Uuid::try_parse(text).ok().filter(|id| {
        let is_v4 = id.get_version_num() == 4 && id.get_variant() == Variant::RFC4122;
        is_v4 && id.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == text
    });
    id.ok_or_else(|| invalid("id", "is a version 4 UUID in lower case"))
}

fn kind(text: &str) -> Result<String, Refusal> {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        part.bytes().next().is_some_and(is_alphanumeric)
            && part
                .bytes()
                .all(|byte| is_alphanumeric(byte) || matches!(byte, b'_' | b'-'))
    };
    if text.len() <= TYPE_BYTES_MAX && text.contains('.') && text.split('.').all(is_part) {
        return Ok(text.to_owned());
    }
    Err(invalid(
        "type",
        "is two or more dot-separated parts of a-z, 0-9, '_' and '-', at most 128 bytes",
    ))
}

fn correlation(object: &Object, name: &str) -> Result<Option<String>, Refusal> {
    match optional_text(object, name)? {
        Some(text) if !(1..=CORRELATION_BYTES_MAX).contains(&text.len()) => {
            Err(invalid(name, "is 1 to 128 bytes"))
        }
        text => Ok(text.map(str::to_owned)),
    }
}

/// Checks `encrypted_body` and returns its `kid`.
fn body_kid(object: &Object, to: &Did) -> Result<String, Refusal> {
    const NAME: &str = "encrypted_body";
    let body = object
        .get(NAME)
        .and_then(Json::as_object)
        .ok_or_else(|| invalid(NAME, "is an object"))?;
    let member = |name| {
        body.get(name)
            .and_then(Json::as_str)
            .ok_or_else(|| invalid(NAME, "holds alg, kid, enc, ct"))
    };
    let (alg, kid, enc, ct) = (member("alg")?, member("kid")?, member("enc")?, member("ct")?);
    if alg != SUITE {
        return Err(invalid("encrypted_body.alg", "is HPKE-0020-0001-0003"));
    }
    sealing_kid(kid, to.as_str(), "encrypted_body.kid")?;
    if base64url(enc, "encrypted_body.enc")?.len() != 32 {
        return Err(invalid("encrypted_body.enc", "has 32 bytes"));
    }
    if base64url(ct, "encrypted_body.ct")?.len() < TAG_BYTES {
        return Err(invalid("encrypted_body.ct", "has at least 16 bytes"));
    }
    Ok(kid.to_owned())
}

#[cfg(test)]
mod tests;
