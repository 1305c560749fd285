//! Who hands listings in for an agent: programs with a key, of which only the hash is kept.

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;

use crate::limits::PROVIDER_USE_SECS;
use crate::secret::SecretHash;

/// Hexadecimal characters of an id.
const ID_CHARS: usize = 16;

/// A provider to be stored.
#[derive(Debug, Clone)]
pub struct NewProvider {
    /// What it is called.
    pub name: String,
    /// Whose listings it hands in.
    pub agent: Did,
    /// Hash of its key; the id follows from it.
    pub hash: SecretHash,
}

/// A provider as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// The public name of its key: a prefix of the hash, which opens nothing.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// Whose listings it hands in.
    pub agent: Did,
    /// When it was made.
    pub created_at: Timestamp,
    /// When the operator ended it.
    pub revoked_at: Option<Timestamp>,
    /// When its key was used last, give or take [`PROVIDER_USE_SECS`].
    pub last_used_at: Option<Timestamp>,
}

impl Provider {
    /// The id of the provider whose key has this hash.
    pub fn id_of(hash: SecretHash) -> String {
        hash.to_hex().chars().take(ID_CHARS).collect()
    }

    /// Whether this has the form of an id.
    pub(crate) fn is_id(text: &str) -> bool {
        text.len() == ID_CHARS && text.bytes().all(|char| char.is_ascii_hexdigit())
    }

    /// A new one.
    pub(crate) fn made(new: &NewProvider, now: Timestamp) -> Self {
        Self {
            id: Self::id_of(new.hash),
            name: new.name.clone(),
            agent: new.agent.clone(),
            created_at: Timestamp::from_unix_millis(now.unix_millis()),
            revoked_at: None,
            last_used_at: None,
        }
    }

    /// Whether a use at `now` is to be noted.
    pub(crate) fn is_use_noted(&self, now: Timestamp) -> bool {
        let pause = i64::try_from(PROVIDER_USE_SECS)
            .unwrap_or(i64::MAX)
            .saturating_mul(1_000);
        self.last_used_at
            .is_none_or(|last| now.millis_since(last) >= pause)
    }
}
