//! What opens purses. Both are wiped when dropped, and shown by nothing but [`ApiKey::reveal`] and [`ChannelKey::reveal`].

use std::fmt;

use aip_protocol::error::{ErrorCode, Refusal};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::Result;
use crate::limits::PURSE_SECRET_BYTES_MAX;

/// The key of an account (`aimk_…`).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ApiKey(Zeroizing<String>);

/// A channel and the secret that spends it.
#[derive(Clone, PartialEq, Eq)]
pub struct ChannelKey {
    id: String,
    secret: Zeroizing<String>,
}

impl ApiKey {
    /// The key as the hub gave it.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for what cannot stand in a header.
    pub fn new(key: &str) -> Result<Self> {
        Ok(Self(word(key, "the key of an account")?))
    }

    /// The key itself, to be shown once or written down.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl ChannelKey {
    /// A channel's id and secret as the hub gave them.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for another form than ids have, and for what cannot stand in a header.
    pub fn new(id: &str, secret: &str) -> Result<Self> {
        let is_id = id.len() <= PURSE_SECRET_BYTES_MAX
            && id.starts_with(|c: char| c.is_ascii_alphanumeric())
            && id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        if !is_id {
            let detail = "the id of a channel is letters, digits, _ and -, such as ch_0123";
            return Err(Refusal::new(ErrorCode::ParameterInvalid, detail).into());
        }
        Ok(Self {
            id: id.to_owned(),
            secret: word(secret, "the secret of a channel")?,
        })
    }

    /// The channel's id, which is no secret.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The secret itself, to be shown once or written down.
    pub fn reveal(&self) -> &str {
        &self.secret
    }
}

/// One word of printable ASCII: it goes into a header as it is.
fn word(text: &str, what: &str) -> Result<Zeroizing<String>> {
    let text = text.trim();
    let is_word = (1..=PURSE_SECRET_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_word {
        let detail = format!("{what} is one word of letters, digits and signs");
        return Err(Refusal::new(ErrorCode::TokenInvalid, detail).into());
    }
    Ok(Zeroizing::new(text.to_owned()))
}

impl TryFrom<String> for ApiKey {
    type Error = crate::error::Error;

    fn try_from(key: String) -> Result<Self> {
        Self::new(&Zeroizing::new(key))
    }
}

impl From<ApiKey> for String {
    fn from(key: ApiKey) -> Self {
        key.0.to_string()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey")
    }
}

impl fmt::Debug for ChannelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_one_word_and_is_never_shown() {
        let (key, channel) = (
            ApiKey::new(" aimk_x\n").unwrap(),
            ChannelKey::new("ch_1", "s3cret").unwrap(),
        );
        assert_eq!(key.reveal(), "aimk_x");
        let shown = format!("{key:?} {channel:?}");
        assert!(!shown.contains("aimk_x") && !shown.contains("s3cret"), "{shown}");
        for id in ["", ".", "..", "../x", "a/b", "-a", "a b", "é"] {
            assert!(ChannelKey::new(id, "s").is_err(), "{id}");
        }
        for text in ["", " ", "a b", "a\r\nx: y", "é"] {
            let refused = ApiKey::new(text).unwrap_err().to_string();
            assert!(text.trim().is_empty() || !refused.contains(text), "{refused}");
            assert!(ChannelKey::new("ch_1", text).is_err());
        }
        assert!(ApiKey::new(&"x".repeat(PURSE_SECRET_BYTES_MAX + 1)).is_err());
    }
}
