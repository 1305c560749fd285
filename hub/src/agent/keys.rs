//! The keys of the hub's own agent, derived from the hub's key (HKDF-SHA256, RFC 5869; `docs/protocol/hub-agent.md`):
//! nothing more has to be kept or backed up, and every process of the hub has the same ones.

use std::fmt;

use aip_protocol::identity::Keys;
use aip_protocol::multikey::{OpeningKey, SigningKey};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

const SALT: &[u8] = b"aip/1 hub agent";
const SIGNING: &[u8] = b"signing";
const SEALING: &[u8] = b"sealing";
const ROTATION: &[u8] = b"rotation";

/// What the agent signs, opens and rotates with.
#[derive(Clone)]
pub struct AgentKeys {
    pub(super) signing: SigningKey,
    pub(super) opening: OpeningKey,
    pub(super) rotation: SigningKey,
}

impl AgentKeys {
    /// The keys that belong to a hub's key.
    pub fn derive(hub_key: &SigningKey) -> Self {
        let seed = hub_key.seed();
        let hkdf = Hkdf::<Sha256>::new(Some(SALT), seed.as_slice());
        let derived = |purpose: &[u8]| {
            let mut bytes = Zeroizing::new([0; 32]);
            // Refused from 8,161 bytes on only.
            hkdf.expand(purpose, bytes.as_mut_slice()).unwrap_or_default();
            *bytes
        };
        Self {
            signing: SigningKey::from_seed(derived(SIGNING)),
            opening: OpeningKey::from_seed(derived(SEALING)),
            rotation: SigningKey::from_seed(derived(ROTATION)),
        }
    }

    /// The public halves, as an identity operation lists them.
    pub fn public(&self) -> Keys {
        Keys {
            signing: vec![self.signing.public().clone()],
            sealing: vec![self.opening.public().clone()],
            rotation: vec![self.rotation.public().clone()],
        }
    }
}

impl fmt::Debug for AgentKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentKeys")
            .field("signing", self.signing.public())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Computed by another implementation of RFC 5869, RFC 8032 and RFC 7748.
    const VECTORS: &str = include_str!("../../../tests/vectors/aip/hub_agent.json");

    #[test]
    fn keys_are_those_of_the_vectors() {
        let suite: Value = serde_json::from_str(VECTORS).unwrap();
        let vectors = suite["vectors"].as_array().unwrap();
        assert!(vectors.len() >= 2);
        for vector in vectors {
            let mut seed = [0; 32];
            hex::decode_to_slice(vector["input"]["hub_key_seed"].as_str().unwrap(), &mut seed).unwrap();
            let keys = AgentKeys::derive(&SigningKey::from_seed(seed));
            let expected = &vector["expected"];
            assert_eq!(keys.signing.public().as_str(), expected["signing"], "{vector}");
            assert_eq!(keys.opening.public().as_str(), expected["sealing"], "{vector}");
            assert_eq!(keys.rotation.public().as_str(), expected["rotation"], "{vector}");
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let key = SigningKey::from_seed([7; 32]);
        let keys = AgentKeys::derive(&key);
        let shown = format!("{keys:?}");
        assert!(
            !shown.contains(&hex::encode(keys.signing.seed().as_slice())),
            "{shown}"
        );
    }
}
