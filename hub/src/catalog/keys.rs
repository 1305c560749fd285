//! Makes the keys of providers. A key is told once; what is kept of it is its hash.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use rand_core::CryptoRng;

/// What a key begins with, so that it is recognised where it should not be.
const PREFIX: &str = "aip_provider_";

/// The source of keys.
pub struct ProviderKeys(Mutex<Box<dyn CryptoRng + Send>>);

impl ProviderKeys {
    /// Keys drawn from `rng`.
    pub fn new(rng: Box<dyn CryptoRng + Send>) -> Self {
        Self(Mutex::new(rng))
    }

    /// A new key: 256 random bits in hexadecimal behind a prefix.
    pub fn make(&self) -> String {
        let mut bytes = [0_u8; 32];
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .fill_bytes(&mut bytes);
        format!("{PREFIX}{}", hex::encode(bytes))
    }
}

impl fmt::Debug for ProviderKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderKeys")
    }
}
