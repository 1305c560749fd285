//! The store in memory, with an end or a beginning that fails when it is told to.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aip_protocol::clock::ManualClock;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use uuid::Uuid;

use crate::money::Usd;
use crate::peers::MarketPeer;
use crate::store::{
    Account, AccountId, Accounts, ApiKey, Begin, Begun, Channel, ChannelId, Channels, Closed, Created,
    Credited, Earned, Earnings, Entry, Finish, Finished, Idempotency, Invocation, Invocations, KeyId,
    MemoryMarket, NewAccount, NewChannel, NewKey, Opened, PaidOut, Planned, StoreError, TakeOver, ToppedUp,
    Totals, Unsettled,
};
use crate::store::{MarketPeers, PeerChange, PeerChanged, PeerLine, PeerNote, PreviewRow};

/// Counts down: while it is above zero, the step fails.
#[derive(Debug, Default)]
pub(super) struct Faulty {
    store: MemoryMarket,
    /// Beginnings that are done, and whose answer is lost.
    pub(super) begin_lost: AtomicU32,
    /// How long a beginning takes, on this clock.
    pub(super) begin_takes: Mutex<Option<(Arc<ManualClock>, Duration)>>,
    /// Ends that are not done.
    pub(super) finish_fails: AtomicU32,
    /// Ends that are done, and whose answer is lost.
    pub(super) finish_lost: AtomicU32,
    /// The most rows that a step of a sweep was to work on.
    pub(super) sweep_rows: AtomicU32,
}

fn due(count: &AtomicU32) -> bool {
    count
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
        .is_ok()
}

fn locked() -> StoreError {
    StoreError::Unavailable("the database is locked".into())
}

#[async_trait]
impl Invocations for Faulty {
    async fn repeated(&self, idempotency: &Idempotency) -> Result<Option<Begun>, StoreError> {
        self.store.repeated(idempotency).await
    }

    async fn begin(&self, begin: Begin, now: Timestamp) -> Result<Begun, StoreError> {
        let begun = self.store.begin(begin, now).await;
        if let Some((clock, takes)) = &*self.begin_takes.lock().unwrap() {
            clock.advance(*takes);
        }
        if due(&self.begin_lost) {
            Err(locked())
        } else {
            begun
        }
    }

    async fn settle(&self, id: Uuid, planned: Planned, now: Timestamp) -> Result<Finished, StoreError> {
        self.store.settle(id, planned, now).await
    }

    async fn unsettled(
        &self,
        take: TakeOver,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<Unsettled>, StoreError> {
        self.store.unsettled(take, limit, now).await
    }

    async fn finish(&self, id: Uuid, finish: Finish, now: Timestamp) -> Result<Finished, StoreError> {
        if due(&self.finish_fails) {
            return Err(locked());
        }
        let finished = self.store.finish(id, finish, now).await;
        if due(&self.finish_lost) {
            Err(locked())
        } else {
            finished
        }
    }

    async fn abandon(
        &self,
        holder: Option<Uuid>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<Uuid>, StoreError> {
        self.sweep_rows.fetch_max(limit, Ordering::SeqCst);
        self.store.abandon(holder, limit, now).await
    }

    async fn invocation(&self, id: Uuid) -> Result<Option<Invocation>, StoreError> {
        self.store.invocation(id).await
    }

    async fn receipt(&self, nonce: &str) -> Result<Option<Bytes>, StoreError> {
        self.store.receipt(nonce).await
    }

    async fn forget_answers(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.store.forget_answers(before, limit).await
    }
}

#[async_trait]
impl Accounts for Faulty {
    async fn create_account(&self, new: NewAccount, now: Timestamp) -> Result<Created, StoreError> {
        self.store.create_account(new, now).await
    }

    async fn account(&self, id: &AccountId) -> Result<Option<Account>, StoreError> {
        self.store.account(id).await
    }

    async fn account_of(&self, owner: &Did) -> Result<Option<Account>, StoreError> {
        self.store.account_of(owner).await
    }

    async fn accounts(&self, after: Option<&AccountId>, limit: u32) -> Result<Vec<Account>, StoreError> {
        self.store.accounts(after, limit).await
    }

    async fn key(&self, hash: &[u8; 32]) -> Result<Option<(ApiKey, Account)>, StoreError> {
        self.store.key(hash).await
    }

    async fn keys(&self, account: &AccountId) -> Result<Vec<ApiKey>, StoreError> {
        self.store.keys(account).await
    }

    async fn add_key(&self, account: &AccountId, key: NewKey, now: Timestamp) -> Result<Created, StoreError> {
        self.store.add_key(account, key, now).await
    }

    async fn revoke_key(&self, account: &AccountId, key: &KeyId) -> Result<bool, StoreError> {
        self.store.revoke_key(account, key).await
    }

    async fn set_budget(
        &self,
        account: &AccountId,
        key: Option<&KeyId>,
        budget: Option<Usd>,
    ) -> Result<bool, StoreError> {
        self.store.set_budget(account, key, budget).await
    }

    async fn suspend(&self, account: &AccountId, suspended: bool) -> Result<bool, StoreError> {
        self.store.suspend(account, suspended).await
    }

    async fn credit(
        &self,
        account: &AccountId,
        amount: Usd,
        reference: &str,
        now: Timestamp,
    ) -> Result<Credited, StoreError> {
        self.store.credit(account, amount, reference, now).await
    }

    async fn entries(&self, account: &AccountId, after: u64, limit: u32) -> Result<Vec<Entry>, StoreError> {
        self.store.entries(account, after, limit).await
    }
}

#[async_trait]
impl Channels for Faulty {
    async fn open_channel(&self, new: NewChannel, now: Timestamp) -> Result<Opened, StoreError> {
        self.store.open_channel(new, now).await
    }

    async fn channel(&self, id: &ChannelId) -> Result<Option<Channel>, StoreError> {
        self.store.channel(id).await
    }

    async fn channels(&self, after: Option<&ChannelId>, limit: u32) -> Result<Vec<Channel>, StoreError> {
        self.store.channels(after, limit).await
    }

    async fn top_up(
        &self,
        id: &ChannelId,
        amount: Usd,
        reference: &str,
        now: Timestamp,
    ) -> Result<ToppedUp, StoreError> {
        self.store.top_up(id, amount, reference, now).await
    }

    async fn close_channel(&self, id: &ChannelId, now: Timestamp) -> Result<Closed, StoreError> {
        self.store.close_channel(id, now).await
    }

    async fn expire_channels(&self, now: Timestamp, limit: u32) -> Result<Vec<Channel>, StoreError> {
        self.sweep_rows.fetch_max(limit, Ordering::SeqCst);
        self.store.expire_channels(now, limit).await
    }
}

#[async_trait]
impl Earnings for Faulty {
    async fn earned(&self, agent: &Did) -> Result<Earned, StoreError> {
        self.store.earned(agent).await
    }

    async fn all_earned(&self, after: Option<&Did>, limit: u32) -> Result<Vec<Earned>, StoreError> {
        self.store.all_earned(after, limit).await
    }

    async fn pay_out(
        &self,
        agent: &Did,
        amount: Usd,
        reference: &str,
        now: Timestamp,
    ) -> Result<PaidOut, StoreError> {
        self.store.pay_out(agent, amount, reference, now).await
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        self.store.totals().await
    }
}

#[async_trait]
impl MarketPeers for Faulty {
    async fn market_peer(&self, url: &str) -> Result<Option<MarketPeer>, StoreError> {
        self.store.market_peer(url).await
    }

    async fn market_peers(&self, after: Option<&str>, limit: u32) -> Result<Vec<MarketPeer>, StoreError> {
        self.store.market_peers(after, limit).await
    }

    async fn peer_preview(&self, url: &str) -> Result<Vec<PreviewRow>, StoreError> {
        self.store.peer_preview(url).await
    }

    async fn change_peer(
        &self,
        url: &str,
        change: PeerChange,
        note: Option<PeerNote>,
        now: Timestamp,
    ) -> Result<PeerChanged, StoreError> {
        self.store.change_peer(url, change, note, now).await
    }

    async fn due_peers(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<MarketPeer>, StoreError> {
        self.store.due_peers(now, until, limit).await
    }

    async fn forget_peer(
        &self,
        url: &str,
        note: Option<PeerNote>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.store.forget_peer(url, note, now).await
    }

    async fn forget_silent_peers(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.store.forget_silent_peers(before, limit).await
    }

    async fn peer_lines(&self, before: Option<u64>, limit: u32) -> Result<Vec<PeerLine>, StoreError> {
        self.store.peer_lines(before, limit).await
    }
}
