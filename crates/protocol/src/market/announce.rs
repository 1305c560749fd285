//! Announcements: a hub says to another one that it is there. There is neither a time nor a nonce in what is signed, so an
//! announcement is an invitation to look, and nothing else.

use super::signature;
use super::value::{Members, Value};
use super::verdict::{Check, Reason};
use crate::error::Refusal;
use crate::multikey::{SigningKey, VerifyingKey};

/// What the signature covers.
const COVERED: [&str; 3] = ["hub_url", "well_known_url", "capabilities_count"];

/// An announcement to be signed.
#[derive(Debug, Clone, Copy)]
pub struct AnnounceDraft<'a> {
    /// Where the hub is.
    pub hub_url: &'a str,
    /// Where its discovery document is.
    pub well_known_url: &'a str,
    /// How much it sells.
    pub capabilities_count: u64,
    /// Its name. Not covered by the signature.
    pub hub_name: &'a str,
}

impl AnnounceDraft<'_> {
    /// The signed announcement, which names its key.
    ///
    /// # Errors
    /// `member_invalid` for a `|` in a URL.
    pub fn sign(&self, key: &SigningKey) -> Result<Value, Refusal> {
        let mut announcement = Members::from([
            ("hub_url".to_owned(), self.hub_url.into()),
            ("well_known_url".to_owned(), self.well_known_url.into()),
            ("capabilities_count".to_owned(), self.capabilities_count.into()),
            ("hub_name".to_owned(), self.hub_name.into()),
            (
                "signer_public_key".to_owned(),
                signature::key_text(key.public()).into(),
            ),
        ]);
        let text = canonical(&announcement).map_err(|reason| signature::unsignable(&reason))?;
        announcement.insert(signature::MEMBER.to_owned(), signature::sign(key, &text, 1));
        Ok(announcement.into())
    }
}

/// Whether one of the pinned keys has signed this announcement.
pub fn verify(announcement: &Value, pinned: &[VerifyingKey]) -> Check {
    signature::verify(announcement, pinned, |name| COVERED.contains(&name), canonical)
}

fn canonical(announcement: &Members) -> Result<Vec<u8>, Reason> {
    let text = format!(
        "hub_url:{}|well_known_url:{}|capabilities_count:{}",
        signature::text(announcement, "hub_url")?,
        signature::text(announcement, "well_known_url")?,
        signature::number(announcement, "capabilities_count")?,
    );
    Ok(text.into_bytes())
}
