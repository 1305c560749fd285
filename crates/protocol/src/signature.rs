//! Signatures over domain-separated canonical bytes (§2).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::error::{ErrorCode, Refusal};
use crate::json::{Json, Object, write_compact};
use crate::limits::SIGNATURE_CHARS_MAX;
use crate::multikey::{SigningKey, VerifyingKey};

const PREFIX: &str = "ed25519:z";

/// What kind of object is signed, so that no signature can be replayed as another kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Tag {
    /// An envelope (§4).
    Envelope,
    /// An identity operation (§3).
    Identity,
    /// The answer to a challenge (§6).
    Challenge,
    /// A hub's discovery document (§8).
    Hub,
    /// A listing (§9).
    Listing,
    /// A further kind of object, which brings its own tag, such as `aip/1 receipt`.
    Other(&'static str),
}

impl Tag {
    /// The ASCII text that the signing input starts with.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Envelope => "aip/1 envelope",
            Self::Identity => "aip/1 identity",
            Self::Challenge => "aip/1 challenge",
            Self::Hub => "aip/1 hub",
            Self::Listing => "aip/1 listing",
            Self::Other(tag) => tag,
        }
    }
}

/// An Ed25519 signature; on the wire `ed25519:` and the multibase base58btc form of its 64 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature([u8; 64]);

impl Signature {
    /// Reads the wire form; anything else is `signature_malformed`.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let malformed = || {
            Refusal::new(
                ErrorCode::SignatureMalformed,
                "a signature is 'ed25519:z…' with 64 bytes",
            )
        };
        let digits = text
            .strip_prefix(PREFIX)
            .filter(|_| text.len() <= SIGNATURE_CHARS_MAX);
        let mut bytes = [0; 64];
        match bs58::decode(digits.ok_or_else(malformed)?).onto(&mut bytes) {
            Ok(64) => Ok(Self(bytes)),
            _ => Err(malformed()),
        }
    }

    /// From the 64 bytes of RFC 8032.
    pub const fn from_bytes(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }

    /// The 64 bytes of RFC 8032.
    pub const fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", bs58::encode(self.0).into_string())
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Signature {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        Self::parse(text)
    }
}

impl Serialize for Signature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// ASCII tag, 0x0A, JCS bytes. The caller has taken `sig` (and whatever else is not covered) out.
pub fn signing_input(tag: Tag, object: &Json) -> Vec<u8> {
    let mut input = tagged(tag);
    input.extend_from_slice(&object.to_jcs());
    input
}

/// Signs an object that holds no `sig` yet.
pub fn sign(key: &SigningKey, tag: Tag, object: &Json) -> Signature {
    Signature(key.sign_bytes(&signing_input(tag, object)))
}

/// Verifies strictly (§2): `S < L`, neither key nor R of low order, R canonical.
pub fn verify(key: &VerifyingKey, tag: Tag, object: &Json, signature: &Signature) -> bool {
    key.verify_bytes(&signing_input(tag, object), &signature.0)
}

fn tagged(tag: Tag) -> Vec<u8> {
    let mut input = Vec::with_capacity(1024);
    input.extend_from_slice(tag.as_str().as_bytes());
    input.push(b'\n');
    input
}

/// What is signed and what is hashed of one object with a `sig`, from one serialization.
#[derive(Debug, Clone)]
pub(crate) struct SignedBytes {
    /// Tag, line feed, JCS bytes without `sig`.
    pub(crate) input: Vec<u8>,
    /// SHA-256 of the JCS bytes of the whole object, `sig` included.
    pub(crate) digest: [u8; 32],
}

impl SignedBytes {
    /// Of an object that has a `sig`.
    pub(crate) fn of(tag: Tag, object: &Object) -> Self {
        let mut input = tagged(tag);
        let start = input.len();
        let sig_at = write_without_sig(object, &mut input);
        let digest = digest_with_sig(&input, start, sig_at, object.get("sig"));
        Self { input, digest }
    }
}

/// Appends the canonical bytes without `sig`, and says where its member belongs.
fn write_without_sig(object: &Object, out: &mut Vec<u8>) -> usize {
    out.push(b'{');
    let first = out.len();
    let mut sig_at = first;
    for (name, value) in object.iter() {
        if name == "sig" {
            sig_at = out.len();
            continue;
        }
        if out.len() > first {
            out.push(b',');
        }
        write_compact(out, name);
        out.push(b':');
        write_compact(out, value);
    }
    out.push(b'}');
    sig_at
}

/// Hashes the whole object by putting `"sig":"…"` back where it was taken out.
fn digest_with_sig(input: &[u8], start: usize, sig_at: usize, sig: Option<&Json>) -> [u8; 32] {
    let head = input.get(start..sig_at).unwrap_or_default();
    let tail = input.get(sig_at..).unwrap_or_default();
    let mut hash = Sha256::new();
    hash.update(head);
    if head != b"{" {
        hash.update(b",");
    }
    hash.update(b"\"sig\":");
    hash.update(sig.map(Json::to_jcs).unwrap_or_default());
    if !matches!(tail.first(), Some(b',' | b'}')) {
        hash.update(b",");
    }
    hash.update(tail);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_is_that_of_the_whole_object_wherever_sig_sorts() {
        let signature = Signature::from_bytes([9; 64]);
        for others in [&[][..], &["a"], &["z"], &["a", "z"], &["a", "b", "y", "z"]] {
            let mut object: Object = others.iter().map(|name| (*name, *name)).collect();
            let unsigned = signing_input(Tag::Envelope, &Json::Object(object.clone()));
            object.insert("sig", signature.to_string());
            let bytes = SignedBytes::of(Tag::Envelope, &object);
            assert_eq!(bytes.input, unsigned);
            let whole: [u8; 32] = Sha256::digest(Json::Object(object).to_jcs()).into();
            assert_eq!(bytes.digest, whole, "{others:?}");
        }
    }
}
