//! Secrets behind a passphrase: Argon2id (RFC 9106) makes a key, ChaCha20-Poly1305 (RFC 8439) uses it once.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::entropy::Entropy;

/// What one guess at a passphrase costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KdfCost {
    /// Memory, in KiB.
    pub memory_kib: u32,
    /// Passes over it.
    pub passes: u32,
    /// Lanes.
    pub lanes: u32,
}

impl KdfCost {
    /// The most that a file may ask for: a file from elsewhere must not exhaust the machine.
    const MOST: Self = Self {
        memory_kib: 1024 * 1024,
        passes: 16,
        lanes: 16,
    };

    fn is_bearable(self) -> bool {
        let most = Self::MOST;
        self.memory_kib <= most.memory_kib && self.passes <= most.passes && self.lanes <= most.lanes
    }
}

impl Default for KdfCost {
    /// The second recommendation of RFC 9106 §4: 64 MiB, 3 passes, 4 lanes.
    fn default() -> Self {
        Self {
            memory_kib: 64 * 1024,
            passes: 3,
            lanes: 4,
        }
    }
}

/// Sealed secrets, with everything but the passphrase that is needed to open them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sealed {
    kdf: String,
    cost: KdfCost,
    salt: String,
    cipher: String,
    nonce: String,
    ciphertext: String,
}

const KDF: &str = "argon2id";
const CIPHER: &str = "chacha20poly1305";
const SALT_BYTES: usize = 16;
const NONCE_BYTES: usize = 12;

/// Seals `plain`, bound to `binding`. The salt is fresh every time, so the key is, and so a nonce is never used twice.
pub(super) fn seal(
    passphrase: &str,
    cost: KdfCost,
    binding: &[u8],
    plain: &[u8],
    entropy: &Entropy,
) -> Option<Sealed> {
    let (salt, nonce) = (entropy.bytes::<SALT_BYTES>(), entropy.bytes::<NONCE_BYTES>());
    let cipher = cipher(passphrase, cost, &salt)?;
    let payload = Payload {
        msg: plain,
        aad: binding,
    };
    let ciphertext = cipher.encrypt(&Nonce::from(nonce), payload).ok()?;
    Some(Sealed {
        kdf: KDF.to_owned(),
        cost,
        salt: URL_SAFE_NO_PAD.encode(salt),
        cipher: CIPHER.to_owned(),
        nonce: URL_SAFE_NO_PAD.encode(nonce),
        ciphertext: URL_SAFE_NO_PAD.encode(ciphertext),
    })
}

/// The plain secrets, or `None`: a wrong passphrase and a changed file look the same.
pub(super) fn open(passphrase: &str, binding: &[u8], sealed: &Sealed) -> Option<Zeroizing<Vec<u8>>> {
    if sealed.kdf != KDF || sealed.cipher != CIPHER || !sealed.cost.is_bearable() {
        return None;
    }
    let salt = URL_SAFE_NO_PAD
        .decode(&sealed.salt)
        .ok()
        .filter(|salt| salt.len() >= 8)?;
    let nonce: [u8; NONCE_BYTES] = URL_SAFE_NO_PAD.decode(&sealed.nonce).ok()?.try_into().ok()?;
    let ciphertext = URL_SAFE_NO_PAD.decode(&sealed.ciphertext).ok()?;
    let payload = Payload {
        msg: &ciphertext,
        aad: binding,
    };
    let plain = cipher(passphrase, sealed.cost, &salt)?
        .decrypt(&Nonce::from(nonce), payload)
        .ok()?;
    Some(Zeroizing::new(plain))
}

fn cipher(passphrase: &str, cost: KdfCost, salt: &[u8]) -> Option<ChaCha20Poly1305> {
    let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(32)).ok()?;
    let mut key = Zeroizing::new([0; 32]);
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon
        .hash_password_into(passphrase.as_bytes(), salt, key.as_mut_slice())
        .ok()?;
    Some(ChaCha20Poly1305::new(&Key::from(*key)))
}
