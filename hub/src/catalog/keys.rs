//! Makes the keys of providers, and of agents for shops that have none. A key is told once; what is kept of a provider's is
//! its hash, and of an agent's its public half.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use aip_protocol::identity::Keys;
use aip_protocol::multikey::{OpeningKey, SigningKey};
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

    /// Six hexadecimal digits that nobody foresees, to tell two of one name apart.
    pub fn draw_digits(&self) -> String {
        let mut bytes = [0_u8; 3];
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .fill_bytes(&mut bytes);
        hex::encode(bytes)
    }

    /// Keys for an agent of somebody who has none. They go out with the answer and are kept nowhere.
    pub fn draw_agent(&self) -> DrawnKeys {
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        DrawnKeys {
            signing: SigningKey::generate(&mut *rng),
            sealing: OpeningKey::generate(&mut *rng),
            rotation: SigningKey::generate(&mut *rng),
        }
    }
}

/// The keys of an agent; wiped when dropped.
pub struct DrawnKeys {
    /// Signs envelopes, challenges and listings.
    pub signing: SigningKey,
    /// Opens bodies.
    pub sealing: OpeningKey,
    /// Signs identity operations.
    pub rotation: SigningKey,
}

impl DrawnKeys {
    /// The public halves, as an identity operation lists them.
    pub fn public(&self) -> Keys {
        Keys {
            signing: vec![self.signing.public().clone()],
            sealing: vec![self.sealing.public().clone()],
            rotation: vec![self.rotation.public().clone()],
        }
    }
}

impl fmt::Debug for DrawnKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DrawnKeys")
            .field("signing", self.signing.public())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ProviderKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderKeys")
    }
}
