//! Secrets that open purses: account keys and channel secrets. They are shown once, and only their hashes are kept.

use std::fmt;

use aip_protocol::multikey::SigningKey;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use rand_core::CryptoRng;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::limits::SECRET_CHARS_MAX;

/// What account keys begin with.
pub const API_KEY_PREFIX: &str = "aimk_";
/// What secrets of channels begin with.
pub const CHANNEL_SECRET_PREFIX: &str = "chs_";
/// What secrets of jobs begin with.
pub const JOB_SECRET_PREFIX: &str = "aimj_";
/// Domain separation of the secrets of jobs.
const JOB_TAG: &[u8] = b"aip/1 market job";
/// Domain separation of channels that are opened with an idempotency key.
const CHANNEL_TAG: &[u8] = b"aip/1 market channel";
/// Random bytes in a secret.
const BYTES: usize = 32;

/// A secret as its holder shows it. Wiped when dropped, never printed.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// A fresh secret of 256 bits.
    pub fn draw(prefix: &str, rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let mut bytes = Zeroizing::new([0; BYTES]);
        rng.fill_bytes(bytes.as_mut());
        let mut text = Zeroizing::new(String::with_capacity(64));
        text.push_str(prefix);
        URL_SAFE_NO_PAD.encode_string(*bytes, &mut text);
        Self(text)
    }

    /// What opens a job: HMAC-SHA256 under the hub's key, so that it need not be kept.
    pub(crate) fn of_job(hub_key: &SigningKey, id: Uuid) -> Self {
        let seed = hub_key.seed();
        let mut text = Zeroizing::new(String::with_capacity(64));
        text.push_str(JOB_SECRET_PREFIX);
        // A key of any length is one.
        if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(seed.as_slice()) {
            mac.update(JOB_TAG);
            mac.update(id.as_bytes());
            URL_SAFE_NO_PAD.encode_string(mac.finalize().into_bytes(), &mut text);
        }
        Self(text)
    }

    /// The id and the secret of the channel that is opened with an idempotency key: from the hub's key, so that whoever asks
    /// again is answered the same, and the secret need not be kept. The id follows from who pays and the key alone.
    pub(crate) fn of_channel(hub_key: &SigningKey, payer: &str, key: &str, micros: u64) -> (String, Self) {
        let seed = hub_key.seed();
        let micros = micros.to_string();
        let mac = |parts: &[&str]| {
            let mut mac = Hmac::<Sha256>::new_from_slice(seed.as_slice()).ok()?;
            mac.update(CHANNEL_TAG);
            for part in parts {
                mac.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
                mac.update(part.as_bytes());
            }
            Some(Zeroizing::new(<[u8; BYTES]>::from(mac.finalize().into_bytes())))
        };
        // A key of any length is one.
        let id = mac(&["id", payer, key]).unwrap_or_default();
        let secret = mac(&["secret", payer, key, &micros]).unwrap_or_default();
        let id = id.first_chunk().copied().map_or(0, u128::from_be_bytes);
        let id = format!("{id:032x}");
        let mut text = Zeroizing::new(String::with_capacity(64));
        text.push_str(CHANNEL_SECRET_PREFIX);
        URL_SAFE_NO_PAD.encode_string(*secret, &mut text);
        (id, Self(text))
    }

    /// What a caller shows; `None` where it cannot be a secret of this kind, so that it need not be looked up.
    pub fn shown(prefix: &str, text: &str) -> Option<Self> {
        let rest = text.strip_prefix(prefix)?;
        let is_one = !rest.is_empty()
            && text.len() <= SECRET_CHARS_MAX
            && rest
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        is_one.then(|| Self(Zeroizing::new(text.to_owned())))
    }

    /// The text, for its holder, once.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What is kept of it: SHA-256. It has 256 bits of its own, so that no slower hash is needed.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
