//! The written form of an agent's keys.

use aip_protocol::identity::{EndpointPolicy, Operation};
use aip_protocol::json::Json;
use aip_protocol::multikey::{OpeningKey, SigningKey};
use aip_protocol::name::Did;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use super::vault::Sealed;
use super::{AgentKeys, FreshKeys, Pending};

pub(super) const FORMAT: &str = "aip-keys/1";

/// A key file: who, where, and the secrets, either plain or sealed with a passphrase.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedFile {
    pub(super) format: String,
    pub(super) did: Did,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hub: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) secrets: Option<Secrets>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sealed: Option<Sealed>,
}

impl SavedFile {
    /// What the sealed secrets are bound to: they cannot be moved under another name or hub.
    pub(super) fn binding(&self) -> Vec<u8> {
        format!(
            "{}\n{}\n{}",
            self.format,
            self.did,
            self.hub.as_deref().unwrap_or_default()
        )
        .into_bytes()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Secrets {
    signing: Seed,
    sealing: Vec<Seed>,
    rotation: Seed,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pending: Option<SavedPending>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedPending {
    operation: Json,
    signing: Seed,
    sealing: Seed,
    rotation: Seed,
}

impl From<&AgentKeys> for Secrets {
    fn from(keys: &AgentKeys) -> Self {
        Self {
            signing: Seed(keys.signing.seed()),
            sealing: keys.sealing.iter().map(|key| Seed(key.seed())).collect(),
            rotation: Seed(keys.rotation.seed()),
            pending: keys.pending.as_ref().map(|pending| SavedPending {
                operation: pending.operation.json.clone(),
                signing: Seed(pending.fresh.signing.seed()),
                sealing: Seed(pending.fresh.opening.seed()),
                rotation: Seed(pending.fresh.rotation.seed()),
            }),
        }
    }
}

impl Secrets {
    /// The keys, or what is wrong with the file.
    pub(super) fn into_keys(self, did: Did, hub: Option<String>) -> Result<AgentKeys, String> {
        if self.sealing.is_empty() {
            return Err("there is no sealing key".to_owned());
        }
        Ok(AgentKeys {
            did,
            hub,
            signing: self.signing.signing(),
            sealing: self.sealing.iter().map(Seed::opening).collect(),
            rotation: self.rotation.signing(),
            pending: self.pending.map(SavedPending::into_pending).transpose()?,
        })
    }
}

impl SavedPending {
    fn into_pending(self) -> Result<Pending, String> {
        // The hub decided about the endpoint when it admitted the operation; here it is only carried.
        let policy = EndpointPolicy { allow_http: true };
        let operation =
            Operation::from_json(self.operation, policy).map_err(|refusal| refusal.to_string())?;
        let fresh = FreshKeys {
            signing: self.signing.signing(),
            opening: self.sealing.opening(),
            rotation: self.rotation.signing(),
        };
        Ok(Pending { operation, fresh })
    }
}

/// 32 secret bytes, in base64url.
struct Seed(Zeroizing<[u8; 32]>);

impl Seed {
    fn signing(&self) -> SigningKey {
        SigningKey::from_seed(*self.0)
    }

    fn opening(&self) -> OpeningKey {
        OpeningKey::from_seed(*self.0)
    }
}

impl Serialize for Seed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = Zeroizing::new(URL_SAFE_NO_PAD.encode(self.0.as_ref()));
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Seed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Zeroizing::new(String::deserialize(deserializer)?);
        let mut seed = Zeroizing::new([0; 32]);
        // One byte of room: the decoder asks for an estimate, which is 33 for 43 characters.
        let mut bytes = Zeroizing::new([0; 33]);
        match URL_SAFE_NO_PAD.decode_slice(text.as_bytes(), bytes.as_mut_slice()) {
            Ok(32) => seed
                .iter_mut()
                .zip(bytes.iter())
                .for_each(|(to, from)| *to = *from),
            _ => return Err(D::Error::custom("a secret is 32 bytes in base64url")),
        }
        Ok(Self(seed))
    }
}
