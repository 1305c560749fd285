//! The store that forgets everything when it is dropped: for tests, and for trying things out.

mod peers;
mod reads;
mod state;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{Mutex, MutexGuard};
use uuid::Uuid;

use super::steps::{
    Abandon, AddKey, BeginInvocation, CloseChannel, CreateAccount, Credit, ExpireChannels, FinishInvocation,
    ForgetAnswers, OpenChannel, PayOut, RevokeKey, SetBudget, Settle, Step, Suspend, TakeUnsettled, TopUp,
};
use super::steps::{ChangePeer, ForgetPeer, ForgetSilentPeers, TakeDuePeers};
use super::{
    Account, AccountId, Accounts, ApiKey, Begin, Begun, Channel, ChannelId, Channels, Closed, Created,
    Credited, Earned, Earnings, Entry, Finish, Finished, Idempotency, Invocation, Invocations, KeyId,
    NewAccount, NewChannel, NewKey, Opened, PaidOut, Planned, StoreError, TakeOver, ToppedUp, Totals,
    Unsettled,
};
use super::{MarketPeers, PeerChange, PeerChanged, PeerLine, PeerNote, PreviewRow};
use crate::money::Usd;
use crate::peers::MarketPeer;
use state::State;

/// Accounts, channels, invocations, earnings and peers in memory.
#[derive(Debug, Default)]
pub struct MemoryMarket(Mutex<State>);

impl MemoryMarket {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    async fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().await
    }

    /// A step alone: it never waits once it has begun, so that nobody can go away in its middle.
    async fn run<S: Step>(&self, step: S) -> Result<S::Outcome, StoreError> {
        step.run(&mut *self.state().await).await
    }
}

#[async_trait]
impl Accounts for MemoryMarket {
    async fn create_account(&self, new: NewAccount, now: Timestamp) -> Result<Created, StoreError> {
        self.run(CreateAccount { new, now }).await
    }

    async fn account(&self, id: &AccountId) -> Result<Option<Account>, StoreError> {
        Ok(self.state().await.find_account(id))
    }

    async fn account_of(&self, owner: &Did) -> Result<Option<Account>, StoreError> {
        Ok(self.state().await.find_account_of(owner))
    }

    async fn accounts(&self, after: Option<&AccountId>, limit: u32) -> Result<Vec<Account>, StoreError> {
        Ok(self.state().await.accounts(after, limit))
    }

    async fn key(&self, hash: &[u8; 32]) -> Result<Option<(ApiKey, Account)>, StoreError> {
        Ok(self.state().await.key_by(hash))
    }

    async fn keys(&self, account: &AccountId) -> Result<Vec<ApiKey>, StoreError> {
        Ok(self.state().await.keys(account))
    }

    async fn add_key(&self, account: &AccountId, key: NewKey, now: Timestamp) -> Result<Created, StoreError> {
        let account = account.clone();
        self.run(AddKey { account, key, now }).await
    }

    async fn revoke_key(&self, account: &AccountId, key: &KeyId) -> Result<bool, StoreError> {
        let (account, key) = (account.clone(), key.clone());
        self.run(RevokeKey { account, key }).await
    }

    async fn set_budget(
        &self,
        account: &AccountId,
        key: Option<&KeyId>,
        budget: Option<Usd>,
    ) -> Result<bool, StoreError> {
        let (account, key) = (account.clone(), key.cloned());
        self.run(SetBudget { account, key, budget }).await
    }

    async fn suspend(&self, account: &AccountId, suspended: bool) -> Result<bool, StoreError> {
        let account = account.clone();
        self.run(Suspend { account, suspended }).await
    }

    async fn credit(
        &self,
        account: &AccountId,
        amount: Usd,
        reference: &str,
        now: Timestamp,
    ) -> Result<Credited, StoreError> {
        let (account, reference) = (account.clone(), reference.to_owned());
        self.run(Credit {
            account,
            amount,
            reference,
            now,
        })
        .await
    }

    async fn entries(&self, account: &AccountId, after: u64, limit: u32) -> Result<Vec<Entry>, StoreError> {
        Ok(self.state().await.entries(account, after, limit))
    }
}

#[async_trait]
impl Channels for MemoryMarket {
    async fn open_channel(&self, new: NewChannel, now: Timestamp) -> Result<Opened, StoreError> {
        self.run(OpenChannel { new, now }).await
    }

    async fn channel(&self, id: &ChannelId) -> Result<Option<Channel>, StoreError> {
        Ok(self.state().await.find_channel(id))
    }

    async fn channels(&self, after: Option<&ChannelId>, limit: u32) -> Result<Vec<Channel>, StoreError> {
        Ok(self.state().await.channels(after, limit))
    }

    async fn top_up(
        &self,
        id: &ChannelId,
        amount: Usd,
        reference: &str,
        now: Timestamp,
    ) -> Result<ToppedUp, StoreError> {
        let (channel, reference) = (id.clone(), reference.to_owned());
        self.run(TopUp {
            channel,
            amount,
            reference,
            now,
        })
        .await
    }

    async fn close_channel(&self, id: &ChannelId, now: Timestamp) -> Result<Closed, StoreError> {
        let channel = id.clone();
        self.run(CloseChannel { channel, now }).await
    }

    async fn expire_channels(&self, now: Timestamp, limit: u32) -> Result<Vec<Channel>, StoreError> {
        self.run(ExpireChannels { now, limit }).await
    }
}

#[async_trait]
impl Invocations for MemoryMarket {
    async fn repeated(&self, idempotency: &Idempotency) -> Result<Option<Begun>, StoreError> {
        Ok(self.state().await.repeated(idempotency))
    }

    async fn begin(&self, begin: Begin, now: Timestamp) -> Result<Begun, StoreError> {
        self.run(BeginInvocation { begin, now }).await
    }

    async fn settle(&self, id: Uuid, planned: Planned, _now: Timestamp) -> Result<Finished, StoreError> {
        self.run(Settle { id, planned }).await
    }

    async fn unsettled(
        &self,
        take: TakeOver,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<Unsettled>, StoreError> {
        self.run(TakeUnsettled { take, limit, now }).await
    }

    async fn finish(&self, id: Uuid, finish: Finish, now: Timestamp) -> Result<Finished, StoreError> {
        self.run(FinishInvocation { id, finish, now }).await
    }

    async fn abandon(
        &self,
        holder: Option<Uuid>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<Uuid>, StoreError> {
        self.run(Abandon { holder, limit, now }).await
    }

    async fn invocation(&self, id: Uuid) -> Result<Option<Invocation>, StoreError> {
        Ok(self.state().await.find_invocation(id))
    }

    async fn receipt(&self, nonce: &str) -> Result<Option<Bytes>, StoreError> {
        Ok(self.state().await.receipt(nonce))
    }

    async fn forget_answers(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.run(ForgetAnswers { before, limit }).await
    }
}

#[async_trait]
impl Earnings for MemoryMarket {
    async fn earned(&self, agent: &Did) -> Result<Earned, StoreError> {
        Ok(self.state().await.find_earned(agent))
    }

    async fn all_earned(&self, after: Option<&Did>, limit: u32) -> Result<Vec<Earned>, StoreError> {
        Ok(self.state().await.all_earned(after, limit))
    }

    async fn pay_out(
        &self,
        agent: &Did,
        amount: Usd,
        reference: &str,
        now: Timestamp,
    ) -> Result<PaidOut, StoreError> {
        let (agent, reference) = (agent.clone(), reference.to_owned());
        self.run(PayOut {
            agent,
            amount,
            reference,
            now,
        })
        .await
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        Ok(self.state().await.totals())
    }
}

#[async_trait]
impl MarketPeers for MemoryMarket {
    async fn market_peer(&self, url: &str) -> Result<Option<MarketPeer>, StoreError> {
        Ok(self.state().await.peers.one(url))
    }

    async fn market_peers(&self, after: Option<&str>, limit: u32) -> Result<Vec<MarketPeer>, StoreError> {
        Ok(self.state().await.peers.page(after, limit))
    }

    async fn peer_preview(&self, url: &str) -> Result<Vec<PreviewRow>, StoreError> {
        Ok(self.state().await.peers.preview(url))
    }

    async fn change_peer(
        &self,
        url: &str,
        change: PeerChange,
        note: Option<PeerNote>,
        now: Timestamp,
    ) -> Result<PeerChanged, StoreError> {
        let url = url.to_owned();
        self.run(ChangePeer {
            url,
            change,
            note,
            now,
        })
        .await
    }

    async fn due_peers(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<MarketPeer>, StoreError> {
        self.run(TakeDuePeers { now, until, limit }).await
    }

    async fn forget_peer(
        &self,
        url: &str,
        note: Option<PeerNote>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let url = url.to_owned();
        self.run(ForgetPeer { url, note, now }).await
    }

    async fn forget_silent_peers(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.run(ForgetSilentPeers { before, limit }).await
    }

    async fn peer_lines(&self, before: Option<u64>, limit: u32) -> Result<Vec<PeerLine>, StoreError> {
        Ok(self.state().await.peers.lines(before, limit))
    }
}
