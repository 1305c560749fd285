//! The store that forgets everything when it is dropped: for tests, and for trying things out.

mod listings;
mod peers;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aip_protocol::name::Name;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use crate::agent::AgentSummary;
use crate::directory::{
    AgentChange, AgentRecord, AppendOutcome, Counts, CreateOutcome, Directory, NewAgent, NextOperation,
};
use crate::error::StoreError;
use crate::grants::{Grants, Invite, InviteGrant, InviteId, TokenGrant, TokenOutcome, TokenRecord};
use crate::limits::TOKENS_PER_AGENT_MAX;
use crate::secret::SecretHash;

/// Agents, tokens, invites, listings, providers and peers in memory.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    agents: BTreeMap<Name, Entry>,
    tokens: HashMap<SecretHash, TokenRecord>,
    spent: HashMap<SecretHash, Timestamp>,
    invites: BTreeMap<InviteId, (SecretHash, Invite)>,
    shelf: listings::Shelf,
    peers: peers::Peers,
}

#[derive(Debug)]
struct Entry {
    summary: AgentSummary,
    operations: Vec<String>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Uses an invite once, if it is good.
    fn redeem(&mut self, hash: &SecretHash, now: Timestamp) -> bool {
        match self.invites.get_mut(&InviteId::of(*hash)) {
            Some((stored, invite)) if stored.matches(hash) && invite.is_good(now) => {
                invite.uses_left -= 1;
                true
            }
            _ => false,
        }
    }

    /// Says which went.
    fn drop_oldest_tokens(&mut self, name: &Name) -> Vec<SecretHash> {
        let mut own: Vec<_> = self
            .tokens
            .iter()
            .filter(|(_, t)| t.name == *name)
            .map(|(hash, t)| (t.issued_at, *hash))
            .collect();
        own.sort_unstable_by(|a, b| b.cmp(a));
        let too_many = own.into_iter().skip(TOKENS_PER_AGENT_MAX as usize);
        too_many
            .map(|(_, hash)| hash)
            .inspect(|hash| drop(self.tokens.remove(hash)))
            .collect()
    }
}

#[async_trait]
impl Directory for MemoryStore {
    async fn create(&self, agent: NewAgent) -> Result<CreateOutcome, StoreError> {
        let mut state = self.state();
        if state.agents.contains_key(&agent.name) {
            return Ok(CreateOutcome::Exists);
        }
        if agent
            .invite
            .is_some_and(|invite| !state.redeem(&invite, agent.registered_at))
        {
            return Ok(CreateOutcome::InviteRefused);
        }
        let summary = AgentSummary {
            name: agent.name.clone(),
            seq: agent.operation.seq,
            head: agent.operation.hash,
            standing: crate::Standing::Active,
            quota: crate::QuotaOverride::default(),
            registered_at: agent.registered_at,
            deactivated_at: None,
            invite: agent.invite.map(InviteId::of),
        };
        state.agents.insert(
            agent.name,
            Entry {
                summary,
                operations: vec![agent.operation.json],
            },
        );
        Ok(CreateOutcome::Created)
    }

    async fn append(&self, next: NextOperation) -> Result<AppendOutcome, StoreError> {
        let mut state = self.state();
        let Some(entry) = state.agents.get_mut(&next.name) else {
            return Ok(AppendOutcome::Stale);
        };
        let is_on_head = next.operation.prev.as_ref() == Some(&entry.summary.head);
        if !is_on_head || entry.summary.deactivated_at.is_some() {
            return Ok(AppendOutcome::Stale);
        }
        entry.summary.seq = next.operation.seq;
        entry.summary.head = next.operation.hash;
        if next.operation.deactivates {
            entry.summary.deactivated_at = Some(next.admitted_at);
        }
        entry.operations.push(next.operation.json);
        Ok(AppendOutcome::Appended)
    }

    async fn get(&self, name: &Name) -> Result<Option<AgentRecord>, StoreError> {
        Ok(self.state().agents.get(name).map(|entry| AgentRecord {
            head: entry.summary.head.clone(),
            operations: entry.operations.clone(),
            standing: entry.summary.standing,
            quota: entry.summary.quota,
            registered_at: entry.summary.registered_at,
        }))
    }

    async fn history(&self, name: &Name, from_seq: u64, limit: u32) -> Result<Vec<String>, StoreError> {
        let from = usize::try_from(from_seq).unwrap_or(usize::MAX);
        let state = self.state();
        let operations = state
            .agents
            .get(name)
            .map(|entry| entry.operations.as_slice())
            .unwrap_or_default();
        Ok(operations
            .iter()
            .skip(from)
            .take(limit as usize)
            .cloned()
            .collect())
    }

    async fn list(&self, after: Option<&Name>, limit: u32) -> Result<Vec<AgentSummary>, StoreError> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let state = self.state();
        let range = state.agents.range::<Name, _>((start, Bound::Unbounded));
        Ok(range
            .take(limit as usize)
            .map(|(_, entry)| entry.summary.clone())
            .collect())
    }

    async fn update(&self, name: &Name, change: AgentChange) -> Result<bool, StoreError> {
        let mut state = self.state();
        let Some(entry) = state.agents.get_mut(name) else {
            return Ok(false);
        };
        match change {
            AgentChange::Standing(standing) => entry.summary.standing = standing,
            AgentChange::Quota(quota) => entry.summary.quota = quota,
        }
        Ok(true)
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let state = self.state();
        let agents = || state.agents.values().map(|entry| &entry.summary);
        Ok(Counts {
            agents: state.agents.len() as u64,
            suspended: agents()
                .filter(|a| a.standing == crate::Standing::Suspended)
                .count() as u64,
            deactivated: agents().filter(|a| a.deactivated_at.is_some()).count() as u64,
            tokens: state.tokens.len() as u64,
            invites: state.invites.len() as u64,
        })
    }
}

#[async_trait]
impl Grants for MemoryStore {
    async fn issue_token(&self, grant: TokenGrant) -> Result<TokenOutcome, StoreError> {
        let mut state = self.state();
        if state.spent.contains_key(&grant.challenge) {
            return Ok(TokenOutcome::ChallengeSpent);
        }
        state.spent.insert(grant.challenge, grant.challenge_kept_until);
        let name = grant.record.name.clone();
        state.tokens.insert(grant.token, grant.record);
        let displaced = state.drop_oldest_tokens(&name);
        Ok(TokenOutcome::Issued { displaced })
    }

    async fn find_token(&self, hash: &SecretHash) -> Result<Option<TokenRecord>, StoreError> {
        Ok(self.state().tokens.get(hash).cloned())
    }

    async fn create_invite(&self, invite: InviteGrant) -> Result<(), StoreError> {
        let id = InviteId::of(invite.hash);
        let stored = Invite {
            id: id.clone(),
            note: invite.note,
            uses_max: invite.uses,
            uses_left: invite.uses,
            created_at: invite.created_at,
            expires_at: invite.expires_at,
            revoked_at: None,
        };
        self.state().invites.insert(id, (invite.hash, stored));
        Ok(())
    }

    async fn list_invites(&self, after: Option<&InviteId>, limit: u32) -> Result<Vec<Invite>, StoreError> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let state = self.state();
        let range = state.invites.range::<InviteId, _>((start, Bound::Unbounded));
        Ok(range
            .take(limit as usize)
            .map(|(_, (_, invite))| invite.clone())
            .collect())
    }

    async fn revoke_invite(&self, id: &InviteId, now: Timestamp) -> Result<bool, StoreError> {
        match self.state().invites.get_mut(id) {
            Some((_, invite)) if invite.revoked_at.is_none() => {
                invite.revoked_at = Some(now);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    async fn sweep(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut state = self.state();
        let tokens = state
            .tokens
            .extract_if(|_, token| token.expires_at <= now)
            .take(limit as usize)
            .count();
        let spent = state
            .spent
            .extract_if(|_, until| *until <= now)
            .take(limit as usize)
            .count();
        Ok((tokens + spent) as u64)
    }
}
