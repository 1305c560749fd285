//! The seam for what opens doors: tokens, spent challenges, invites. Secrets are stored as hashes only.

use std::fmt;

use aip_protocol::name::Name;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use crate::error::StoreError;
use crate::secret::SecretHash;

/// Tokens and invites. Times are kept to the whole millisecond; a change is durable when its method
/// returns `Ok`.
#[async_trait]
pub trait Grants: fmt::Debug + Send + Sync {
    /// Spends a challenge and stores the token that was given for it, both or neither. Beyond
    /// [`crate::limits::TOKENS_PER_AGENT_MAX`] the agent's oldest tokens go.
    async fn issue_token(&self, grant: TokenGrant) -> Result<TokenOutcome, StoreError>;

    /// The token with this hash, whether or not it is past its end.
    async fn find_token(&self, hash: &SecretHash) -> Result<Option<TokenRecord>, StoreError>;

    /// Stores an invite. Its id must be new.
    async fn create_invite(&self, invite: InviteGrant) -> Result<(), StoreError>;

    /// Up to `limit` invites in the order of their ids, after `after`; revoked and used ones too.
    async fn list_invites(&self, after: Option<&InviteId>, limit: u32) -> Result<Vec<Invite>, StoreError>;

    /// Ends an invite; `false` if it is unknown or was revoked before.
    async fn revoke_invite(&self, id: &InviteId, now: Timestamp) -> Result<bool, StoreError>;

    /// Removes up to `limit` tokens and up to `limit` spent challenges whose time is over, and says
    /// how many went.
    async fn sweep(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError>;
}

/// A token to be issued for an answered challenge.
#[derive(Debug, Clone)]
pub struct TokenGrant {
    /// The challenge, which must not have been spent.
    pub challenge: SecretHash,
    /// How long it must be remembered as spent.
    pub challenge_kept_until: Timestamp,
    /// The new token.
    pub token: SecretHash,
    /// What is known about it.
    pub record: TokenRecord,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenOutcome {
    /// The token is good.
    Issued {
        /// The agent's tokens that went for it.
        displaced: Vec<SecretHash>,
    },
    /// The challenge was used before. Nothing changed.
    ChallengeSpent,
}

/// What is known about a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Whose it is.
    pub name: Name,
    /// The key that asked for it: the token ends when the key does.
    pub kid: String,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// The public name of an invite: a prefix of its hash, which opens nothing.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InviteId(String);

impl InviteId {
    /// Hexadecimal characters of an id.
    const CHARS: usize = 16;

    /// The id of the invite with this hash.
    pub fn of(hash: SecretHash) -> Self {
        Self(hash.to_hex().chars().take(Self::CHARS).collect())
    }

    /// Reads an id as an operator types it.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = text.len() == Self::CHARS && text.bytes().all(|b| b.is_ascii_hexdigit());
        fits.then(|| Self(text.to_ascii_lowercase()))
    }

    /// The id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InviteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for InviteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InviteId({})", self.0)
    }
}

/// An invite to be stored.
#[derive(Debug, Clone)]
pub struct InviteGrant {
    /// Hash of its code; the id follows from it.
    pub hash: SecretHash,
    /// What the operator wrote about it.
    pub note: String,
    /// How often it can be used.
    pub uses: u32,
    /// Now.
    pub created_at: Timestamp,
    /// When it ends, if it does.
    pub expires_at: Option<Timestamp>,
}

/// An invite as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invite {
    /// Its public name.
    pub id: InviteId,
    /// What the operator wrote about it.
    pub note: String,
    /// How often it could be used.
    pub uses_max: u32,
    /// How often it still can.
    pub uses_left: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends, if it does.
    pub expires_at: Option<Timestamp>,
    /// When the operator ended it.
    pub revoked_at: Option<Timestamp>,
}

impl Invite {
    /// Whether it lets one more agent in.
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.uses_left > 0 && self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}
