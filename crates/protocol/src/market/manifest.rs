//! The manifest: what a market sells, signed over five fields, of which two are digests of all tools and all hubs.

use super::digest::{sha256_hex, spaced};
use super::signature;
use super::time_text;
use super::value::{Members, Value};
use super::verdict::{Check, Reason};
use crate::error::Refusal;
use crate::multikey::{SigningKey, VerifyingKey};
use crate::time::Timestamp;

/// A manifest to be signed.
#[derive(Debug, Clone)]
pub struct ManifestDraft {
    /// When it was made.
    pub generated_at: Timestamp,
    /// Where this market is.
    pub base_url: String,
    /// Everything that is sold, one object each.
    pub tools: Vec<Value>,
    /// What is known of each hub, by its URL; this one is `local`.
    pub by_hub: Members,
    /// Further members, such as `total_capabilities`. Not covered by the signature.
    pub further: Members,
}

impl ManifestDraft {
    /// The signed manifest, with `capabilities_count` = the number of tools and `protocol_version` = `v2`.
    ///
    /// # Errors
    /// None for a draft: only text of the caller's could not be signed, and there is none.
    pub fn sign(self, key: &SigningKey) -> Result<Value, Refusal> {
        let count = u64::try_from(self.tools.len()).unwrap_or(u64::MAX);
        let mut manifest = self.further;
        manifest.extend([
            ("protocol_version".to_owned(), Value::from("v2")),
            ("generated_at".to_owned(), time_text(self.generated_at).into()),
            ("base_url".to_owned(), self.base_url.into()),
            ("capabilities_count".to_owned(), count.into()),
            ("tools".to_owned(), Value::Array(self.tools)),
            ("by_hub".to_owned(), Value::Object(self.by_hub)),
        ]);
        sign(manifest, key)
    }
}

/// Signs any manifest; a signature that it has is replaced.
///
/// # Errors
/// `member_invalid` when a signed member is of another type than it should, or has a `|`.
pub fn sign(mut manifest: Members, key: &SigningKey) -> Result<Value, Refusal> {
    let text = canonical(&manifest).map_err(|reason| signature::unsignable(&reason))?;
    manifest.insert(signature::MEMBER.to_owned(), signature::sign(key, &text, 1));
    Ok(manifest.into())
}

/// Whether one of the pinned keys of the market has signed this manifest. `base_url` and the counts other than
/// `capabilities_count` are never covered, and are in [`Check::uncovered`].
pub fn verify(manifest: &Value, pinned: &[VerifyingKey]) -> Check {
    signature::verify(manifest, pinned, |name| COVERED.contains(&name), canonical)
}

/// What the signature covers.
const COVERED: [&str; 5] = [
    "capabilities_count",
    "generated_at",
    "protocol_version",
    "tools",
    "by_hub",
];

/// The text that is signed. What is not there has a default, also the count, which the reference hub leaves out.
fn canonical(manifest: &Members) -> Result<Vec<u8>, Reason> {
    let version = if manifest.contains_key("protocol_version") {
        signature::text(manifest, "protocol_version")?
    } else {
        "v1"
    };
    let text = format!(
        "capabilities_count:{}|generated_at:{}|protocol_version:{version}|tools_hash:{}|by_hub_hash:{}",
        signature::number(manifest, "capabilities_count")?,
        signature::text(manifest, "generated_at")?,
        hash(manifest, "tools", &Value::Array(Vec::new())),
        hash(manifest, "by_hub", &Value::Object(Members::new())),
    );
    Ok(text.into_bytes())
}

fn hash(manifest: &Members, name: &str, default: &Value) -> String {
    sha256_hex(&spaced(manifest.get(name).unwrap_or(default)))
}
