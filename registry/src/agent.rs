//! An agent of this hub: its identity, its standing, and what the operator set for it.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use aip_protocol::error::Refusal;
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
    /// What readers made from it.
    pub kept: Kept,
    /// Bytes of its operations, for the cache's size.
    pub(crate) history_bytes: u64,
}

/// Something small that a reader made from an agent, such as a rendered answer: kept as long as the
/// agent is in memory, and never longer than it stays as it is, since a copy starts without.
#[derive(Debug, Default)]
pub struct Kept(Mutex<Option<Arc<dyn Any + Send + Sync>>>);

impl Kept {
    /// What was put last, if it is a `T`.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        kept?.downcast().ok()
    }

    /// Keeps this instead of what was put before.
    pub fn put<T: Any + Send + Sync>(&self, made: Arc<T>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
    }
}

impl Clone for Kept {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Agent {
    /// Replays a stored history, which must be the very one that was admitted: its hashes chain it to
    /// the head that is kept beside it. A row that was changed or lost is noticed and not believed.
    ///
    /// The signatures were verified on the way in. To verify them at every load would not hold off
    /// somebody who can write to the database either: a whole history of his own would pass.
    /// [`Agent::check_record`] does it for an operator who asks.
    pub(crate) fn from_record(name: &Name, record: &AgentRecord) -> Result<Self, StoreError> {
        let damaged = |why: &dyn std::fmt::Display| {
            StoreError::Corrupt(format!("the history of {name} does not replay: {why}"))
        };
        let identity = operations(record)
            .and_then(|operations| Identity::replay_admitted(operations, &record.head))
            .map_err(|refusal| damaged(&refusal))?;
        if identity.did().name() != name.as_str() {
            return Err(damaged(&"it belongs to another name"));
        }
        Ok(Self {
            identity,
            standing: record.standing,
            quota: record.quota,
            registered_at: record.registered_at,
            kept: Kept::default(),
            history_bytes: record.history_bytes(),
        })
    }

    /// The same, with every signature verified.
    pub(crate) fn check_record(name: &Name, record: &AgentRecord) -> Result<(), StoreError> {
        Self::from_record(name, record)?;
        operations(record)
            .and_then(Identity::replay)
            .map(drop)
            .map_err(|why| StoreError::Corrupt(format!("the history of {name} does not verify: {why}")))
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

fn operations(record: &AgentRecord) -> Result<Vec<Operation>, Refusal> {
    // Endpoints were judged when they were admitted; a stricter configuration does not undo them.
    let policy = EndpointPolicy { allow_http: true };
    record
        .operations
        .iter()
        .map(|text| Operation::parse(text.as_bytes(), policy))
        .collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_not_copied() {
        let kept = Kept::default();
        assert_eq!(kept.get::<u8>(), None);
        kept.put(Arc::new(1_u8));
        kept.put(Arc::new(2_u8));
        assert_eq!(kept.get::<u8>().as_deref(), Some(&2));
        assert_eq!(kept.get::<u16>(), None, "of another type");
        assert_eq!(kept.clone().get::<u8>(), None);
    }
}
