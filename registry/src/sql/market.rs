//! The market's money in the database: the questions, and where the changes begin.
//!
//! What a change does is said by the market room ([`aip_market::store::steps`]), for every store alike; here it gets its rows
//! (`held.rs`). All changes of the market come one after the other, in all processes together, and share their commits.

mod hand;
mod held;
mod peers;
mod rows;
pub(super) mod statements;

use aip_market::money::Usd;
use aip_market::store::rows::EarnedRow;
use aip_market::store::steps::{
    Abandon, AddKey, BeginInvocation, CloseChannel, CreateAccount, Credit, ExpireChannels, FinishInvocation,
    ForgetAnswers, OpenChannel, PayOut, RevokeKey, SetBudget, Settle, Step, Suspend, TakeUnsettled, TopUp,
};
use aip_market::store::{
    Account, AccountId, Accounts, ApiKey, Begin, Begun, Channel, ChannelId, Channels, Closed, Created,
    Credited, Earned, Earnings, Entry, Finish, Finished, Idempotency, Invocation, Invocations, KeyId,
    NewAccount, NewChannel, NewKey, Opened, PaidOut, Planned, StoreError, TakeOver, ToppedUp, Totals,
    Unsettled,
};
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use sqlx::any::AnyRow;
use uuid::Uuid;

use super::SqlStore;
use super::rows::{Bind, can_be_there, to_i64};
use crate::error;
use held::Held;

type Answer<T> = Result<T, StoreError>;

impl From<error::StoreError> for StoreError {
    fn from(error: error::StoreError) -> Self {
        match error {
            error::StoreError::Corrupt(_) => Self::Corrupt(Box::new(error)),
            other => Self::Unavailable(Box::new(other)),
        }
    }
}

/// The most that a page has.
fn page_bind(limit: u32) -> Bind<'static> {
    Bind::Number(limit.min(aip_market::limits::PAGE_MAX).into())
}

impl SqlStore {
    async fn step<S: Step>(&self, step: S) -> Answer<S::Outcome> {
        let dialect = self.target.dialect;
        Ok(self.write(Held { dialect, step }).await?)
    }

    async fn read_all<T>(
        &self,
        statement: &'static str,
        values: &[Bind<'_>],
        read: impl Fn(&AnyRow) -> Result<T, error::StoreError>,
    ) -> Answer<Vec<T>> {
        if !can_be_there(values) {
            return Ok(Vec::new());
        }
        let found = self.readers.rows(statement, values).await?;
        let all = found.iter().map(read).collect::<Result<_, _>>();
        Ok(all?)
    }

    async fn read_one<T>(
        &self,
        statement: &'static str,
        values: &[Bind<'_>],
        read: impl Fn(&AnyRow) -> Result<T, error::StoreError>,
    ) -> Answer<Option<T>> {
        Ok(self.read_all(statement, values, read).await?.into_iter().next())
    }
}

#[async_trait]
impl Accounts for SqlStore {
    async fn create_account(&self, new: NewAccount, now: Timestamp) -> Answer<Created> {
        self.step(CreateAccount { new, now }).await
    }

    async fn account(&self, id: &AccountId) -> Answer<Option<Account>> {
        let values = [Bind::Text(&id.0)];
        let found = self
            .read_one(&statements::GET_ACCOUNT, &values, rows::account)
            .await?;
        Ok(found.map(|row| row.account))
    }

    async fn account_of(&self, owner: &Did) -> Answer<Option<Account>> {
        let values = [Bind::Text(owner.as_str())];
        let found = self
            .read_one(&statements::GET_ACCOUNT_OF, &values, rows::account)
            .await?;
        Ok(found.map(|row| row.account))
    }

    async fn accounts(&self, after: Option<&AccountId>, limit: u32) -> Answer<Vec<Account>> {
        // No id is empty, so that the empty text comes before all.
        let after = after.map_or("", |id| id.0.as_str());
        let values = [Bind::Text(after), page_bind(limit)];
        let read = |row: &AnyRow| rows::account(row).map(|row| row.account);
        self.read_all(&statements::LIST_ACCOUNTS, &values, read).await
    }

    async fn key(&self, hash: &[u8; 32]) -> Answer<Option<(ApiKey, Account)>> {
        let hash = hex::encode(hash);
        let read = |row: &AnyRow| Ok((rows::key(row)?.key, rows::account(row)?.account));
        self.read_one(&statements::FIND_KEY, &[Bind::Text(&hash)], read)
            .await
    }

    async fn keys(&self, account: &AccountId) -> Answer<Vec<ApiKey>> {
        let values = [Bind::Text(&account.0)];
        let read = |row: &AnyRow| rows::key(row).map(|row| row.key);
        self.read_all(&statements::LIST_KEYS, &values, read).await
    }

    async fn add_key(&self, account: &AccountId, key: NewKey, now: Timestamp) -> Answer<Created> {
        let account = account.clone();
        self.step(AddKey { account, key, now }).await
    }

    async fn revoke_key(&self, account: &AccountId, key: &KeyId) -> Answer<bool> {
        let (account, key) = (account.clone(), key.clone());
        self.step(RevokeKey { account, key }).await
    }

    async fn set_budget(
        &self,
        account: &AccountId,
        key: Option<&KeyId>,
        budget: Option<Usd>,
    ) -> Answer<bool> {
        let (account, key) = (account.clone(), key.cloned());
        self.step(SetBudget { account, key, budget }).await
    }

    async fn suspend(&self, account: &AccountId, suspended: bool) -> Answer<bool> {
        let account = account.clone();
        self.step(Suspend { account, suspended }).await
    }

    async fn credit(
        &self,
        account: &AccountId,
        amount: Usd,
        reference: &str,
        now: Timestamp,
    ) -> Answer<Credited> {
        let (account, reference) = (account.clone(), reference.to_owned());
        self.step(Credit {
            account,
            amount,
            reference,
            now,
        })
        .await
    }

    async fn entries(&self, account: &AccountId, after: u64, limit: u32) -> Answer<Vec<Entry>> {
        let values = [
            Bind::Text(&account.0),
            Bind::Number(to_i64(after)),
            page_bind(limit),
        ];
        self.read_all(&statements::LIST_LINES, &values, rows::line).await
    }
}

#[async_trait]
impl Channels for SqlStore {
    async fn open_channel(&self, new: NewChannel, now: Timestamp) -> Answer<Opened> {
        self.step(OpenChannel { new, now }).await
    }

    async fn channel(&self, id: &ChannelId) -> Answer<Option<Channel>> {
        let values = [Bind::Text(&id.0)];
        self.read_one(&statements::GET_CHANNEL, &values, rows::channel)
            .await
    }

    async fn channels(&self, after: Option<&ChannelId>, limit: u32) -> Answer<Vec<Channel>> {
        let after = after.map_or("", |id| id.0.as_str());
        let values = [Bind::Text(after), page_bind(limit)];
        self.read_all(&statements::LIST_CHANNELS, &values, rows::channel)
            .await
    }

    async fn top_up(&self, id: &ChannelId, amount: Usd, reference: &str, now: Timestamp) -> Answer<ToppedUp> {
        let (channel, reference) = (id.clone(), reference.to_owned());
        self.step(TopUp {
            channel,
            amount,
            reference,
            now,
        })
        .await
    }

    async fn close_channel(&self, id: &ChannelId, now: Timestamp) -> Answer<Closed> {
        let channel = id.clone();
        self.step(CloseChannel { channel, now }).await
    }

    async fn expire_channels(&self, now: Timestamp, limit: u32) -> Answer<Vec<Channel>> {
        self.step(ExpireChannels { now, limit }).await
    }
}

#[async_trait]
impl Invocations for SqlStore {
    async fn repeated(&self, idempotency: &Idempotency) -> Answer<Option<Begun>> {
        let key = hex::encode(idempotency.key);
        let read = |row: &AnyRow| Ok((rows::repeat(row)?, rows::invocation(row)?));
        let found = self
            .read_one(&statements::FIND_REPEAT, &[Bind::Text(&key)], read)
            .await?;
        Ok(found.map(|(repeat, there)| repeat.say(&idempotency.body, there)))
    }

    async fn begin(&self, begin: Begin, now: Timestamp) -> Answer<Begun> {
        self.step(BeginInvocation { begin, now }).await
    }

    async fn settle(&self, id: Uuid, planned: Planned, _now: Timestamp) -> Answer<Finished> {
        self.step(Settle { id, planned }).await
    }

    async fn unsettled(&self, take: TakeOver, limit: u32, now: Timestamp) -> Answer<Vec<Unsettled>> {
        self.step(TakeUnsettled { take, limit, now }).await
    }

    async fn finish(&self, id: Uuid, finish: Finish, now: Timestamp) -> Answer<Finished> {
        self.step(FinishInvocation { id, finish, now }).await
    }

    async fn abandon(&self, holder: Option<Uuid>, limit: u32, now: Timestamp) -> Answer<Vec<Uuid>> {
        self.step(Abandon { holder, limit, now }).await
    }

    async fn invocation(&self, id: Uuid) -> Answer<Option<Invocation>> {
        let id = id.to_string();
        let read = |row: &AnyRow| Ok(rows::invocation(row)?.with(rows::answer(row)?));
        self.read_one(&statements::FIND_INVOCATION, &[Bind::Text(&id)], read)
            .await
    }

    async fn receipt(&self, nonce: &str) -> Answer<Option<Bytes>> {
        self.read_one(statements::GET_RECEIPT, &[Bind::Text(nonce)], rows::receipt)
            .await
    }

    async fn forget_answers(&self, before: Timestamp, limit: u32) -> Answer<u64> {
        self.step(ForgetAnswers { before, limit }).await
    }
}

#[async_trait]
impl Earnings for SqlStore {
    async fn earned(&self, agent: &Did) -> Answer<Earned> {
        let values = [Bind::Text(agent.as_str())];
        let found = self
            .read_one(&statements::GET_EARNED, &values, rows::earned)
            .await?;
        Ok(found.unwrap_or_else(|| EarnedRow::nothing(agent)).earned)
    }

    async fn all_earned(&self, after: Option<&Did>, limit: u32) -> Answer<Vec<Earned>> {
        let after = after.map_or("", Did::as_str);
        let values = [Bind::Text(after), page_bind(limit)];
        let read = |row: &AnyRow| rows::earned(row).map(|row| row.earned);
        self.read_all(&statements::LIST_EARNED, &values, read).await
    }

    async fn pay_out(&self, agent: &Did, amount: Usd, reference: &str, now: Timestamp) -> Answer<PaidOut> {
        let (agent, reference) = (agent.clone(), reference.to_owned());
        self.step(PayOut {
            agent,
            amount,
            reference,
            now,
        })
        .await
    }

    async fn totals(&self) -> Answer<Totals> {
        let found = self.read_one(&statements::TOTALS, &[], rows::totals).await?;
        let missing = || error::StoreError::Corrupt("market_money has no row".to_owned());
        Ok(found.ok_or_else(missing)?)
    }
}
