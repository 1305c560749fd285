//! Payment channels: money set aside with a secret that spends it, until it is closed or its time is over.

use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use super::{AccountId, KeyId, StoreError};
use crate::money::Usd;

/// `ch_` and 32 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub String);

/// Where a channel's money comes from, and where what is left of it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Funding {
    /// From this account, by this key, whose budgets count it. Once there, it is spent with the channel's secret alone,
    /// whatever becomes of the key or the account.
    Account {
        /// The account.
        account: AccountId,
        /// The key.
        key: KeyId,
    },
    /// From nowhere: money for trying out, on a hub whose operator allows that. What is left of it is nothing.
    Demo,
}

/// A channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Which one.
    pub id: ChannelId,
    /// SHA-256 of its secret: it is never kept.
    pub secret_hash: [u8; 32],
    /// Where its money comes from.
    pub funding: Funding,
    /// What was put in, with every top-up.
    pub deposit: Usd,
    /// What was paid from it.
    pub used: Usd,
    /// What is set aside for calls that are under way.
    pub held: Usd,
    /// What went back when it ended.
    pub refunded: Usd,
    /// Whether it can be paid from.
    pub status: ChannelStatus,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// After this moment it is not paid from.
    pub expires_at: Timestamp,
}

impl Channel {
    /// What can be spent; nothing once it has ended.
    pub fn balance(&self) -> Usd {
        let gone = [self.used, self.held, self.refunded].into_iter().sum();
        self.deposit.saturating_sub(gone)
    }

    /// Whether it can be paid from at `now`.
    pub fn is_payable(&self, now: Timestamp) -> bool {
        self.status == ChannelStatus::Open && now <= self.expires_at
    }
}

/// Where a channel is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelStatus {
    /// It can be paid from, until `expires_at`.
    Open,
    /// Its holder closed it.
    Closed,
    /// Its time was over.
    Expired,
}

/// A channel to open.
#[derive(Debug, Clone)]
pub struct NewChannel {
    /// Drawn by the caller.
    pub id: ChannelId,
    /// See [`Channel::secret_hash`].
    pub secret_hash: [u8; 32],
    /// See [`Channel::funding`].
    pub funding: Funding,
    /// More than nothing.
    pub deposit: Usd,
    /// See [`Channel::expires_at`].
    pub expires_at: Timestamp,
}

/// What came of opening a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// It is open.
    Done(Channel),
    /// The account has less: so much.
    Insufficient(Usd),
    /// A budget of the account or the key has less left: so much.
    OverBudget(Usd),
    /// There is no such account or key, or it is suspended.
    NoAccount,
    /// There is another channel with this id: one with another secret.
    OtherUse,
    /// [`crate::limits::OPEN_CHANNELS_MAX`] are open, or [`crate::limits::OPEN_CHANNELS_OF_ACCOUNT_MAX`] of the account; or as
    /// much demo money was made as there can be.
    TooMany,
}

/// What came of topping up a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToppedUp {
    /// So it is now.
    Done(Channel),
    /// The same reference was used for this before: so it is now.
    Again(Channel),
    /// The reference was used for something else.
    OtherUse,
    /// The account has less: so much.
    Insufficient(Usd),
    /// A budget has less left: so much.
    OverBudget(Usd),
    /// There is no such channel, or it cannot be paid from any more; its key was revoked, or its account is suspended; or
    /// there would be more money than [`Usd::MAX`] in all.
    Refused,
}

/// What came of closing a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// It has ended, now or earlier: so it is.
    Done(Channel),
    /// Calls are under way for so much.
    Pending(Usd),
    /// There is none.
    Missing,
}

/// Payment channels.
#[async_trait]
pub trait Channels {
    /// Opens a channel. Money of an account leaves its balance and counts against its budgets. Asked again with the same id
    /// and secret, it answers with the channel as it is now, whatever else is asked.
    async fn open_channel(&self, new: NewChannel, now: Timestamp) -> Result<Opened, StoreError>;

    /// One channel.
    async fn channel(&self, id: &ChannelId) -> Result<Option<Channel>, StoreError>;

    /// Channels in the order of their ids, after `after`; at most `limit` and a page.
    async fn channels(&self, after: Option<&ChannelId>, limit: u32) -> Result<Vec<Channel>, StoreError>;

    /// Puts more into an open channel, from where its first money came from. A reference is used once in the whole store.
    async fn top_up(
        &self,
        id: &ChannelId,
        amount: Usd,
        reference: &str,
        now: Timestamp,
    ) -> Result<ToppedUp, StoreError>;

    /// Ends a channel with nothing held: what is left goes back where it came from, and to its budgets.
    async fn close_channel(&self, id: &ChannelId, now: Timestamp) -> Result<Closed, StoreError>;

    /// Ends open channels whose time is over and for which nothing is held, as closing does; at most `limit` and a page.
    async fn expire_channels(&self, now: Timestamp, limit: u32) -> Result<Vec<Channel>, StoreError>;
}
