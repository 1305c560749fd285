//! An agent of this hub: its identity, its standing, and what the operator set for it.

use aip_protocol::identity::{EndpointPolicy, Identity, Operation};
use aip_protocol::multikey::VerifyingKey;
use aip_protocol::name::Name;
use aip_protocol::time::Timestamp;

use crate::directory::AgentRecord;
use crate::error::StoreError;
use crate::grants::InviteId;

/// Whether the operator lets an agent take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// It may send, receive and sign in.
    #[default]
    Active,
    /// It may not; its name, history and waiting mail stay.
    Suspended,
}

/// Mailbox quotas of one agent, where the operator set other ones than the hub's (spec §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuotaOverride {
    /// Unacked messages in its mailbox.
    pub mailbox_messages: Option<u64>,
    /// Their bytes.
    pub mailbox_bytes: Option<u64>,
    /// Messages of one sender in it.
    pub sender_messages: Option<u64>,
}

/// An agent as its store and its history describe it.
#[derive(Debug, Clone)]
pub struct Agent {
    /// The checked history.
    pub identity: Identity,
    /// Whether it may take part.
    pub standing: Standing,
    /// What the operator set for its mailbox.
    pub quota: QuotaOverride,
    /// When its name was registered.
    pub registered_at: Timestamp,
    /// Bytes of its operations, for the cache's size.
    pub(crate) history_bytes: u64,
}

impl Agent {
    /// Replays a stored history. Every operation is checked again, signature included: a database
    /// that was tampered with, or that lost a row, is noticed here and not believed.
    pub(crate) fn from_record(name: &Name, record: &AgentRecord) -> Result<Self, StoreError> {
        let damaged = |why: &dyn std::fmt::Display| {
            StoreError::Corrupt(format!("the history of {name} does not replay: {why}"))
        };
        // Endpoints were judged when they were admitted; a stricter configuration does not undo them.
        let policy = EndpointPolicy { allow_http: true };
        let mut operations = Vec::with_capacity(record.operations.len());
        for text in &record.operations {
            operations.push(Operation::parse(text.as_bytes(), policy).map_err(|r| damaged(&r))?);
        }
        let identity = Identity::replay(operations).map_err(|r| damaged(&r))?;
        if identity.did().name() != name.as_str() {
            return Err(damaged(&"it belongs to another name"));
        }
        Ok(Self {
            identity,
            standing: record.standing,
            quota: record.quota,
            registered_at: record.registered_at,
            history_bytes: record.history_bytes(),
        })
    }

    /// The signing key that `kid` names, if it proves today that the agent is here: one that the
    /// newest operation lists (also if that operation is dated a little ahead of our clock), or one
    /// within the grace after it was dropped. A revoked key proves nothing.
    pub fn signing_key_now(&self, kid: &str, now: Timestamp) -> Option<&VerifyingKey> {
        self.identity
            .current_signing(kid)
            .or_else(|| self.identity.signing_key(kid, now))
    }

    /// Whether it may sign in, send and receive.
    pub fn takes_part(&self) -> bool {
        self.standing == Standing::Active && !self.identity.is_deactivated()
    }
}

/// One line of an operator's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSummary {
    /// Its name.
    pub name: Name,
    /// Number of its newest operation.
    pub seq: u64,
    /// Multihash of that operation.
    pub head: String,
    /// Whether it may take part.
    pub standing: Standing,
    /// What the operator set for its mailbox.
    pub quota: QuotaOverride,
    /// When its name was registered.
    pub registered_at: Timestamp,
    /// When it ended its history, if it did.
    pub deactivated_at: Option<Timestamp>,
    /// The invite that let it in, if one did.
    pub invite: Option<InviteId>,
}
