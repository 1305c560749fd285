//! The seam for agents and their histories.
//!
//! A store keeps what it is given and guards two things only: a name is given once, and a history
//! grows by one operation at its head until one ends it. What may be in an operation is judged before, by
//! [`crate::Registry`], so that every store has the same small job.

use std::fmt::Debug;

use aip_protocol::identity::Operation;
use aip_protocol::name::Name;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use crate::agent::{AgentSummary, QuotaOverride, Standing};
use crate::error::StoreError;
use crate::secret::SecretHash;

/// Agents and their identity histories. Times are kept to the whole millisecond.
///
/// A change is durable when its method returns `Ok`, and is seen by every read that starts later.
/// Dropping a call's future does not undo or tear its change: it happens entirely or not at all.
#[async_trait]
pub trait Directory: Debug + Send + Sync {
    /// Takes a name. Of several at once exactly one wins. The invite, if the agent comes with one,
    /// is used up in the same transaction, and only if the name was free.
    async fn create(&self, agent: NewAgent) -> Result<CreateOutcome, StoreError>;

    /// Puts an operation on top of the one whose hash is its `prev`, if that one is the head and did
    /// not end the history.
    async fn append(&self, next: NextOperation) -> Result<AppendOutcome, StoreError>;

    /// Everything about an agent; `None` if the name was never taken.
    async fn get(&self, name: &Name) -> Result<Option<AgentRecord>, StoreError>;

    /// Up to `limit` operations from number `from_seq` on, oldest first, byte for byte as admitted.
    async fn history(&self, name: &Name, from_seq: u64, limit: u32) -> Result<Vec<String>, StoreError>;

    /// Up to `limit` agents in the order of their names' bytes, after `after`.
    async fn list(&self, after: Option<&Name>, limit: u32) -> Result<Vec<AgentSummary>, StoreError>;

    /// Sets what the operator decides; `false` if there is no such agent.
    async fn update(&self, name: &Name, change: AgentChange) -> Result<bool, StoreError>;

    /// How much there is, for metrics. Costs a walk over indexes; ask seldom.
    async fn counts(&self) -> Result<Counts, StoreError>;
}

/// An operation as stores keep it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOperation {
    /// Its number.
    pub seq: u64,
    /// Hash of the operation before it.
    pub prev: Option<String>,
    /// Its own hash: SHA-256 of `json`, as a multibase multihash.
    pub hash: String,
    /// The whole operation in canonical form (JCS), signature included.
    pub json: String,
    /// Whether it ends the history.
    pub deactivates: bool,
}

impl From<&Operation> for StoredOperation {
    fn from(operation: &Operation) -> Self {
        Self {
            seq: operation.seq,
            prev: operation.prev.clone(),
            hash: operation.hash().to_owned(),
            json: String::from_utf8_lossy(&operation.json.to_jcs()).into_owned(),
            deactivates: operation.deactivated,
        }
    }
}

/// An agent that wants a name.
#[derive(Debug, Clone)]
pub struct NewAgent {
    /// The name.
    pub name: Name,
    /// Operation 0.
    pub operation: StoredOperation,
    /// Now.
    pub registered_at: Timestamp,
    /// The invite to use up.
    pub invite: Option<SecretHash>,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateOutcome {
    /// The name is the agent's.
    Created,
    /// The name was taken before, perhaps by the same operation. Nothing changed.
    Exists,
    /// The invite is unknown, used up, revoked or past its end. Nothing changed.
    InviteRefused,
}

/// An operation for the head of a history.
#[derive(Debug, Clone)]
pub struct NextOperation {
    /// Whose history.
    pub name: Name,
    /// The operation; its `prev` names the head it was made for.
    pub operation: StoredOperation,
    /// Now.
    pub admitted_at: Timestamp,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOutcome {
    /// It is the new head.
    Appended,
    /// `prev` is not the head, the history has ended, or there is no such agent. Nothing changed.
    Stale,
}

/// An agent as stores keep it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRecord {
    /// Hash of the newest operation, kept apart from the operations: it tells whether they are whole.
    pub head: String,
    /// All operations, oldest first, as admitted.
    pub operations: Vec<String>,
    /// Whether it may take part.
    pub standing: Standing,
    /// What the operator set for its mailbox.
    pub quota: QuotaOverride,
    /// When its name was registered.
    pub registered_at: Timestamp,
}

impl AgentRecord {
    /// Bytes of its operations.
    pub(crate) fn history_bytes(&self) -> u64 {
        self.operations
            .iter()
            .map(|operation| operation.len() as u64)
            .sum()
    }
}

/// What an operator changes about an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentChange {
    /// Suspends it or lets it back in.
    Standing(Standing),
    /// Replaces its quotas; `None` members mean the hub's own.
    Quota(QuotaOverride),
}

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Names ever taken.
    pub agents: u64,
    /// Of these, suspended.
    pub suspended: u64,
    /// Of these, deactivated.
    pub deactivated: u64,
    /// Tokens that were not swept yet.
    pub tokens: u64,
    /// Invites ever made.
    pub invites: u64,
}
