//! The registry's stores behind the gate: everything that changes an agent, a token, an invite, a listing or a provider.

use std::sync::Arc;

use aip_protocol::name::{Did, Name};
use aip_protocol::time::Timestamp;
use aip_registry::agent::AgentSummary;
use aip_registry::directory::{
    AgentChange, AgentRecord, AppendOutcome, Counts, CreateOutcome, NewAgent, NextOperation,
};
use aip_registry::grants::{Invite, InviteGrant, InviteId, TokenGrant, TokenOutcome, TokenRecord};
use aip_registry::listings::{
    ListingCounts, Listings, NewListing, NewProvider, Provider, Put, Reviewed, StoredListing, Verdict,
};
use aip_registry::secret::SecretHash;
use aip_registry::{Directory, Grants, StoreError};
use async_trait::async_trait;

use super::{Change, Pause, SENTENCE};

/// Agents, tokens, invites, listings and providers that do not change while the hub stands still.
#[derive(Debug)]
pub struct PausableNames<S> {
    names: Arc<S>,
    pause: Arc<Pause>,
}

impl<S> PausableNames<S> {
    /// Wraps a store.
    pub fn new(names: Arc<S>, pause: Arc<Pause>) -> Self {
        Self { names, pause }
    }

    async fn begin(&self) -> Result<Change<'_>, StoreError> {
        let cause = || Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(SENTENCE));
        self.pause
            .begin()
            .await
            .ok_or_else(|| StoreError::Unavailable(cause()))
    }
}

#[async_trait]
impl<S: Directory> Directory for PausableNames<S> {
    async fn create(&self, agent: NewAgent) -> Result<CreateOutcome, StoreError> {
        let _change = self.begin().await?;
        self.names.create(agent).await
    }

    async fn append(&self, next: NextOperation) -> Result<AppendOutcome, StoreError> {
        let _change = self.begin().await?;
        self.names.append(next).await
    }

    async fn get(&self, name: &Name) -> Result<Option<AgentRecord>, StoreError> {
        self.names.get(name).await
    }

    async fn history(&self, name: &Name, from_seq: u64, limit: u32) -> Result<Vec<String>, StoreError> {
        self.names.history(name, from_seq, limit).await
    }

    async fn list(&self, after: Option<&Name>, limit: u32) -> Result<Vec<AgentSummary>, StoreError> {
        self.names.list(after, limit).await
    }

    async fn update(&self, name: &Name, change: AgentChange) -> Result<bool, StoreError> {
        let _change = self.begin().await?;
        self.names.update(name, change).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.names.counts().await
    }
}

#[async_trait]
impl<S: Grants> Grants for PausableNames<S> {
    async fn issue_token(&self, grant: TokenGrant) -> Result<TokenOutcome, StoreError> {
        let _change = self.begin().await?;
        self.names.issue_token(grant).await
    }

    async fn find_token(&self, hash: &SecretHash) -> Result<Option<TokenRecord>, StoreError> {
        self.names.find_token(hash).await
    }

    async fn create_invite(&self, invite: InviteGrant) -> Result<(), StoreError> {
        let _change = self.begin().await?;
        self.names.create_invite(invite).await
    }

    async fn list_invites(&self, after: Option<&InviteId>, limit: u32) -> Result<Vec<Invite>, StoreError> {
        self.names.list_invites(after, limit).await
    }

    async fn revoke_invite(&self, id: &InviteId, now: Timestamp) -> Result<bool, StoreError> {
        let _change = self.begin().await?;
        self.names.revoke_invite(id, now).await
    }

    /// What is past its end waits: nothing was swept.
    async fn sweep(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        match self.pause.begin().await {
            Some(_change) => self.names.sweep(now, limit).await,
            None => Ok(0),
        }
    }
}

#[async_trait]
impl<S: Listings> Listings for PausableNames<S> {
    async fn put(&self, new: &NewListing, max_per_agent: u32, now: Timestamp) -> Result<Put, StoreError> {
        let _change = self.begin().await?;
        self.names.put(new, max_per_agent, now).await
    }

    async fn put_many(
        &self,
        new: &[NewListing],
        max_per_agent: u32,
        now: Timestamp,
    ) -> Result<Vec<Put>, StoreError> {
        let _change = self.begin().await?;
        self.names.put_many(new, max_per_agent, now).await
    }

    async fn get(&self, id: &str) -> Result<Option<StoredListing>, StoreError> {
        Listings::get(&*self.names, id).await
    }

    async fn get_many(&self, ids: &[String]) -> Result<Vec<StoredListing>, StoreError> {
        self.names.get_many(ids).await
    }

    async fn of_agent(
        &self,
        agent: &Did,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StoredListing>, StoreError> {
        self.names.of_agent(agent, after, limit).await
    }

    async fn changes(&self, after: u64, limit: u32) -> Result<Vec<StoredListing>, StoreError> {
        self.names.changes(after, limit).await
    }

    async fn latest_change(&self) -> Result<u64, StoreError> {
        self.names.latest_change().await
    }

    async fn complete_from(&self) -> Result<u64, StoreError> {
        self.names.complete_from().await
    }

    /// What was deleted long ago waits: nothing was forgotten.
    async fn forget_deleted(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        match self.pause.begin().await {
            Some(_change) => self.names.forget_deleted(before, limit).await,
            None => Ok(0),
        }
    }

    async fn remove_of(&self, agent: &Did, now: Timestamp) -> Result<u64, StoreError> {
        let _change = self.begin().await?;
        self.names.remove_of(agent, now).await
    }

    async fn touch_of(&self, agent: &Did) -> Result<u64, StoreError> {
        let _change = self.begin().await?;
        self.names.touch_of(agent).await
    }

    async fn suspects(&self, after: Option<&str>, limit: u32) -> Result<Vec<StoredListing>, StoreError> {
        self.names.suspects(after, limit).await
    }

    async fn review(
        &self,
        id: &str,
        version: Option<u64>,
        verdict: Option<Verdict>,
    ) -> Result<Reviewed, StoreError> {
        let _change = self.begin().await?;
        self.names.review(id, version, verdict).await
    }

    async fn count_listings(&self) -> Result<ListingCounts, StoreError> {
        self.names.count_listings().await
    }

    async fn add_provider(&self, new: &NewProvider, now: Timestamp) -> Result<Provider, StoreError> {
        let _change = self.begin().await?;
        self.names.add_provider(new, now).await
    }

    async fn list_providers(&self, after: Option<&str>, limit: u32) -> Result<Vec<Provider>, StoreError> {
        self.names.list_providers(after, limit).await
    }

    async fn revoke_provider(&self, id: &str, now: Timestamp) -> Result<bool, StoreError> {
        let _change = self.begin().await?;
        self.names.revoke_provider(id, now).await
    }

    async fn provider_by_secret_hash(
        &self,
        hash: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<Provider>, StoreError> {
        // That the key was used is written down.
        let _change = self.begin().await?;
        self.names.provider_by_secret_hash(hash, now).await
    }
}
