//! The keys of one agent: one to sign messages, some to open them, one to sign changes to the identity (spec §2).
//!
//! Secrets are wiped when dropped and never printed: `Debug` shows public halves only.

mod file;
mod saved;
#[cfg(test)]
mod tests;
mod vault;

use aip_protocol::identity::Operation;
use aip_protocol::multikey::{OpeningKey, SigningKey};
use aip_protocol::name::Did;

use crate::entropy::Entropy;
use crate::limits::SEALING_KEYS_KEPT_MAX;

use crate::error::KeyFileError;
pub use file::KeyFile;
pub use vault::KdfCost;

/// Who the agent is and the secrets that prove it.
#[derive(Debug, Clone)]
pub struct AgentKeys {
    did: Did,
    hub: Option<String>,
    pub(crate) signing: SigningKey,
    /// Newest first. The first is published; the others open messages that were sealed before a rotation.
    pub(crate) sealing: Vec<OpeningKey>,
    pub(crate) rotation: SigningKey,
    pub(crate) pending: Option<Pending>,
}

/// A change of the identity that was signed, and perhaps sent, and is not confirmed yet. It is written down before it is
/// sent, so that no crash can leave an agent without the keys that its hub already knows.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    pub(crate) operation: Operation,
    pub(crate) fresh: FreshKeys,
}

/// The keys that hold once a change is confirmed.
#[derive(Debug, Clone)]
pub(crate) struct FreshKeys {
    pub(crate) signing: SigningKey,
    pub(crate) opening: OpeningKey,
    pub(crate) rotation: SigningKey,
}

impl AgentKeys {
    /// Fresh keys for this DID.
    pub fn generate(did: Did, entropy: &Entropy) -> Self {
        Self {
            did,
            hub: None,
            signing: new_signing(entropy),
            sealing: vec![new_opening(entropy)],
            rotation: new_signing(entropy),
            pending: None,
        }
    }

    /// Keys that exist already, such as those of a test vector. `sealing` is newest first; without any, a client
    /// could not publish one, so there is at least one.
    pub fn from_parts(
        did: Did,
        signing: SigningKey,
        sealing: (OpeningKey, Vec<OpeningKey>),
        rotation: SigningKey,
    ) -> Self {
        let (newest, mut older) = sealing;
        older.insert(0, newest);
        Self {
            did,
            hub: None,
            signing,
            sealing: older,
            rotation,
            pending: None,
        }
    }

    /// Remembers which hub the agent lives at.
    #[must_use]
    pub fn at_hub(mut self, url: impl Into<String>) -> Self {
        self.hub = Some(url.into());
        self
    }

    /// Whose keys these are.
    pub fn did(&self) -> &Did {
        &self.did
    }

    /// The URL of the agent's hub, if it is known.
    pub fn hub(&self) -> Option<&str> {
        self.hub.as_deref()
    }

    /// The `kid` that messages are signed under.
    pub fn kid(&self) -> String {
        format!("{}#{}", self.did, self.signing.public())
    }

    /// The keys that can open a message, newest first, those of a change under way included.
    pub fn opening(&self) -> impl Iterator<Item = &OpeningKey> {
        let pending = self.pending.as_ref().map(|pending| &pending.fresh.opening);
        pending.into_iter().chain(&self.sealing)
    }

    /// Whether a change of the identity was begun and is not confirmed yet.
    pub fn has_unfinished_change(&self) -> bool {
        self.pending.is_some()
    }

    /// The key that this `kid` of an encrypted body names.
    pub(crate) fn opener(&self, body_kid: &str) -> Option<&OpeningKey> {
        let name = body_kid.strip_prefix(self.did.as_str())?.strip_prefix('#')?;
        self.opening().find(|key| key.public().as_str() == name)
    }

    /// The keys as they are, for a change that keeps some of them.
    pub(crate) fn current(&self) -> Option<FreshKeys> {
        Some(FreshKeys {
            signing: self.signing.clone(),
            opening: self.sealing.first()?.clone(),
            rotation: self.rotation.clone(),
        })
    }

    /// The change under way is confirmed: its keys are the keys. Old opening keys stay, for messages in flight.
    pub(crate) fn settle(&mut self) {
        let Some(Pending { fresh, .. }) = self.pending.take() else {
            return;
        };
        if self
            .sealing
            .iter()
            .all(|key| key.public() != fresh.opening.public())
        {
            self.sealing.insert(0, fresh.opening);
            self.sealing.truncate(SEALING_KEYS_KEPT_MAX);
        }
        self.signing = fresh.signing;
        self.rotation = fresh.rotation;
    }

    /// The change under way is refused: it never happened.
    pub(crate) fn abandon(&mut self) {
        self.pending = None;
    }
}

/// A fresh Ed25519 key.
pub(crate) fn new_signing(entropy: &Entropy) -> SigningKey {
    entropy.with(|mut rng| SigningKey::generate(&mut rng))
}

/// A fresh X25519 key.
pub(crate) fn new_opening(entropy: &Entropy) -> OpeningKey {
    entropy.with(|mut rng| OpeningKey::generate(&mut rng))
}
