//! The market's money, behind the gate.

use std::sync::Arc;

use aip_market::money::Usd;
use aip_market::peers::MarketPeer;
use aip_market::store::{
    Account, AccountId, Accounts, ApiKey, Begin, Begun, Channel, ChannelId, Channels, Closed, Created,
    Credited, Earned, Earnings, Entry, Finish, Finished, Idempotency, Invocation, Invocations, KeyId,
    MarketStore, NewAccount, NewChannel, NewKey, Opened, PaidOut, Planned, StoreError, TakeOver, ToppedUp,
    Totals, Unsettled,
};
use aip_market::store::{MarketPeers, PeerChange, PeerChanged, PeerLine, PeerNote, PreviewRow};
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use uuid::Uuid;

use super::{Change, Pause, SENTENCE};

/// Accounts, channels, invocations and earnings that do not change while the hub stands still.
///
/// A call that is under way when a pause begins ends in an error of the store, keeps its hold, and is given up once its
/// deadline is over: it costs nothing, and whoever asked asks again.
#[derive(Debug)]
pub struct PausableMarket {
    market: Arc<dyn MarketStore>,
    pause: Arc<Pause>,
}

impl PausableMarket {
    /// Wraps a store.
    pub fn new(market: Arc<dyn MarketStore>, pause: Arc<Pause>) -> Self {
        Self { market, pause }
    }

    async fn begin_change(&self) -> Result<Change<'_>, StoreError> {
        let change = self.pause.begin().await;
        change.ok_or_else(|| StoreError::Unavailable(SENTENCE.into()))
    }
}

#[async_trait]
impl Accounts for PausableMarket {
    async fn create_account(&self, new: NewAccount, now: Timestamp) -> Result<Created, StoreError> {
        let _change = self.begin_change().await?;
        self.market.create_account(new, now).await
    }

    async fn account(&self, id: &AccountId) -> Result<Option<Account>, StoreError> {
        self.market.account(id).await
    }

    async fn account_of(&self, owner: &Did) -> Result<Option<Account>, StoreError> {
        self.market.account_of(owner).await
    }

    async fn accounts(&self, after: Option<&AccountId>, limit: u32) -> Result<Vec<Account>, StoreError> {
        self.market.accounts(after, limit).await
    }

    async fn key(&self, hash: &[u8; 32]) -> Result<Option<(ApiKey, Account)>, StoreError> {
        self.market.key(hash).await
    }

    async fn keys(&self, account: &AccountId) -> Result<Vec<ApiKey>, StoreError> {
        self.market.keys(account).await
    }

    async fn add_key(&self, account: &AccountId, key: NewKey, now: Timestamp) -> Result<Created, StoreError> {
        let _change = self.begin_change().await?;
        self.market.add_key(account, key, now).await
    }

    async fn revoke_key(&self, account: &AccountId, key: &KeyId) -> Result<bool, StoreError> {
        let _change = self.begin_change().await?;
        self.market.revoke_key(account, key).await
    }

    async fn set_budget(
        &self,
        account: &AccountId,
        key: Option<&KeyId>,
        budget: Option<Usd>,
    ) -> Result<bool, StoreError> {
        let _change = self.begin_change().await?;
        self.market.set_budget(account, key, budget).await
    }

    async fn suspend(&self, account: &AccountId, suspended: bool) -> Result<bool, StoreError> {
        let _change = self.begin_change().await?;
        self.market.suspend(account, suspended).await
    }

    async fn credit(
        &self,
        account: &AccountId,
        amount: Usd,
        reference: &str,
        now: Timestamp,
    ) -> Result<Credited, StoreError> {
        let _change = self.begin_change().await?;
        self.market.credit(account, amount, reference, now).await
    }

    async fn entries(&self, account: &AccountId, after: u64, limit: u32) -> Result<Vec<Entry>, StoreError> {
        self.market.entries(account, after, limit).await
    }
}

#[async_trait]
impl Channels for PausableMarket {
    async fn open_channel(&self, new: NewChannel, now: Timestamp) -> Result<Opened, StoreError> {
        let _change = self.begin_change().await?;
        self.market.open_channel(new, now).await
    }

    async fn channel(&self, id: &ChannelId) -> Result<Option<Channel>, StoreError> {
        self.market.channel(id).await
    }

    async fn channels(&self, after: Option<&ChannelId>, limit: u32) -> Result<Vec<Channel>, StoreError> {
        self.market.channels(after, limit).await
    }

    async fn top_up(
        &self,
        id: &ChannelId,
        amount: Usd,
        reference: &str,
        now: Timestamp,
    ) -> Result<ToppedUp, StoreError> {
        let _change = self.begin_change().await?;
        self.market.top_up(id, amount, reference, now).await
    }

    async fn close_channel(&self, id: &ChannelId, now: Timestamp) -> Result<Closed, StoreError> {
        let _change = self.begin_change().await?;
        self.market.close_channel(id, now).await
    }

    async fn expire_channels(&self, now: Timestamp, limit: u32) -> Result<Vec<Channel>, StoreError> {
        let _change = self.begin_change().await?;
        self.market.expire_channels(now, limit).await
    }
}

#[async_trait]
impl Invocations for PausableMarket {
    async fn repeated(&self, idempotency: &Idempotency) -> Result<Option<Begun>, StoreError> {
        self.market.repeated(idempotency).await
    }

    async fn begin(&self, begin: Begin, now: Timestamp) -> Result<Begun, StoreError> {
        let _change = self.begin_change().await?;
        self.market.begin(begin, now).await
    }

    async fn settle(&self, id: Uuid, planned: Planned, now: Timestamp) -> Result<Finished, StoreError> {
        let _change = self.begin_change().await?;
        self.market.settle(id, planned, now).await
    }

    async fn unsettled(
        &self,
        take: TakeOver,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<Unsettled>, StoreError> {
        let _change = self.begin_change().await?;
        self.market.unsettled(take, limit, now).await
    }

    async fn finish(&self, id: Uuid, finish: Finish, now: Timestamp) -> Result<Finished, StoreError> {
        let _change = self.begin_change().await?;
        self.market.finish(id, finish, now).await
    }

    async fn abandon(
        &self,
        holder: Option<Uuid>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<Uuid>, StoreError> {
        let _change = self.begin_change().await?;
        self.market.abandon(holder, limit, now).await
    }

    async fn invocation(&self, id: Uuid) -> Result<Option<Invocation>, StoreError> {
        self.market.invocation(id).await
    }

    async fn receipt(&self, nonce: &str) -> Result<Option<Bytes>, StoreError> {
        self.market.receipt(nonce).await
    }

    async fn forget_answers(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let _change = self.begin_change().await?;
        self.market.forget_answers(before, limit).await
    }
}

#[async_trait]
impl Earnings for PausableMarket {
    async fn earned(&self, agent: &Did) -> Result<Earned, StoreError> {
        self.market.earned(agent).await
    }

    async fn all_earned(&self, after: Option<&Did>, limit: u32) -> Result<Vec<Earned>, StoreError> {
        self.market.all_earned(after, limit).await
    }

    async fn pay_out(
        &self,
        agent: &Did,
        amount: Usd,
        reference: &str,
        now: Timestamp,
    ) -> Result<PaidOut, StoreError> {
        let _change = self.begin_change().await?;
        self.market.pay_out(agent, amount, reference, now).await
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        self.market.totals().await
    }
}

#[async_trait]
impl MarketPeers for PausableMarket {
    async fn market_peer(&self, url: &str) -> Result<Option<MarketPeer>, StoreError> {
        self.market.market_peer(url).await
    }

    async fn market_peers(&self, after: Option<&str>, limit: u32) -> Result<Vec<MarketPeer>, StoreError> {
        self.market.market_peers(after, limit).await
    }

    async fn peer_preview(&self, url: &str) -> Result<Vec<PreviewRow>, StoreError> {
        self.market.peer_preview(url).await
    }

    async fn change_peer(
        &self,
        url: &str,
        change: PeerChange,
        note: Option<PeerNote>,
        now: Timestamp,
    ) -> Result<PeerChanged, StoreError> {
        let _change = self.begin_change().await?;
        self.market.change_peer(url, change, note, now).await
    }

    async fn due_peers(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<MarketPeer>, StoreError> {
        let _change = self.begin_change().await?;
        self.market.due_peers(now, until, limit).await
    }

    async fn forget_peer(
        &self,
        url: &str,
        note: Option<PeerNote>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let _change = self.begin_change().await?;
        self.market.forget_peer(url, note, now).await
    }

    async fn forget_silent_peers(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let _change = self.begin_change().await?;
        self.market.forget_silent_peers(before, limit).await
    }

    async fn peer_lines(&self, before: Option<u64>, limit: u32) -> Result<Vec<PeerLine>, StoreError> {
        self.market.peer_lines(before, limit).await
    }
}

#[cfg(test)]
mod tests {
    use aip_market::store::MemoryMarket;
    use aip_protocol::clock::ManualClock;

    use super::*;

    #[tokio::test]
    async fn no_money_moves_while_the_hub_stands_still() {
        let now = Timestamp::from_unix_millis(1_000);
        let pause = Arc::new(Pause::new(Arc::new(ManualClock::new(now))));
        let market = PausableMarket::new(Arc::new(MemoryMarket::new()), pause.clone());
        let (account, agent) = (
            AccountId("acct_1".to_owned()),
            Did::parse("did:aip:hub.example:seller").unwrap(),
        );
        assert!(market.suspend(&account, true).await.is_ok());
        pause.hold(None, None).await;
        assert!(market.suspend(&account, true).await.is_err());
        assert!(market.credit(&account, Usd::ZERO, "bill", now).await.is_err());
        assert!(market.expire_channels(now, 1).await.is_err());
        assert!(market.abandon(None, 1, now).await.is_err());
        assert!(market.due_peers(now, now, 1).await.is_err());
        assert!(market.pay_out(&agent, Usd::ZERO, "wire", now).await.is_err());
        assert_eq!(market.account(&account).await.unwrap(), None);
        assert!(market.totals().await.unwrap().balance());
    }
}
