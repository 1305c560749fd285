//! Accounts: money that an agent's owner put in, and the keys that spend it.

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use super::StoreError;
use crate::money::Usd;

/// `acct_` and 32 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(pub String);

/// `key_` and 16 hex digits: names a key, and opens nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub String);

/// An account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Which one.
    pub id: AccountId,
    /// What its owner or the operator calls it; at most 200 bytes.
    pub label: String,
    /// The agent of this hub that it belongs to, if any; an agent has one account at most.
    pub owner: Option<Did>,
    /// What can be spent; what is held is not in it.
    pub balance: Usd,
    /// What is set aside for calls that are under way.
    pub held: Usd,
    /// What all its keys together may ever spend; `None`: no ceiling. Nothing: nothing is spent, and what is free can be had.
    pub budget: Option<Usd>,
    /// What counts against the budget: what was spent and is held, and what went into channels and did not come back.
    pub spent: Usd,
    /// Whether the operator closed it: its keys are refused.
    pub suspended: bool,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A key that spends from an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Which one.
    pub id: KeyId,
    /// What it is called; at most 200 bytes.
    pub label: String,
    /// What it may ever spend; see [`Account::budget`].
    pub budget: Option<Usd>,
    /// See [`Account::spent`].
    pub spent: Usd,
    /// When it was made.
    pub created_at: Timestamp,
}

/// An account to make, with its first key.
#[derive(Debug, Clone)]
pub struct NewAccount {
    /// Drawn by the caller.
    pub id: AccountId,
    /// See [`Account::label`].
    pub label: String,
    /// See [`Account::owner`].
    pub owner: Option<Did>,
    /// See [`Account::budget`].
    pub budget: Option<Usd>,
    /// What the operator gives it to begin with.
    pub grant: Usd,
    /// Its first key.
    pub key: NewKey,
}

/// A key to make.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Drawn by the caller.
    pub id: KeyId,
    /// SHA-256 of the secret: it is never kept.
    pub hash: [u8; 32],
    /// See [`ApiKey::label`].
    pub label: String,
    /// See [`ApiKey::budget`].
    pub budget: Option<Usd>,
}

/// What came of making an account or a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// It is there: now, or since it was asked for before with the same ids and secret.
    Made,
    /// The owner has an account already: this one.
    OwnerHasOne(AccountId),
    /// There is no such account, or it has [`crate::limits::KEYS_PER_ACCOUNT_MAX`] keys; the id or the secret is somebody
    /// else's; or there would be more money than [`Usd::MAX`] in all.
    Refused,
}

/// What came of putting money in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credited {
    /// It is there; the balance now.
    Done(Usd),
    /// This reference was used before, for this amount and account: nothing was done.
    Again(Usd),
    /// This reference was used before for something else: nothing was done.
    OtherUse,
    /// There is no such account, or there would be more money than [`Usd::MAX`] in all.
    Refused,
}

/// A line of an account's ledger. Lines are never changed, and their sum is what the account holds. What is nothing has no
/// line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Counts the lines of the account, from 1 without a gap.
    pub number: u64,
    /// What happened.
    pub kind: EntryKind,
    /// How much.
    pub amount: Usd,
    /// What it was for: a reference of the operator, the id of an invocation (with hyphens) or of a channel.
    pub reference: String,
    /// The balance after it.
    pub balance: Usd,
    /// When.
    pub at: Timestamp,
}

/// What a line of an account's ledger says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// Money was put in.
    Credit,
    /// Money was set aside for a call.
    Hold,
    /// What was set aside was paid: the balance stays as it is.
    Capture,
    /// What was set aside came back.
    Release,
    /// Money went into a channel.
    Deposit,
    /// What was left of a channel came back.
    Refund,
}

/// Accounts and their keys.
#[async_trait]
pub trait Accounts {
    /// Makes an account with its first key; a grant is credited with the reference `grant:` and the account's id.
    async fn create_account(&self, new: NewAccount, now: Timestamp) -> Result<Created, StoreError>;

    /// One account.
    async fn account(&self, id: &AccountId) -> Result<Option<Account>, StoreError>;

    /// The account of an agent.
    async fn account_of(&self, owner: &Did) -> Result<Option<Account>, StoreError>;

    /// Accounts in the order of their ids, after `after`; at most `limit` and a page ([`crate::limits::PAGE_MAX`]).
    async fn accounts(&self, after: Option<&AccountId>, limit: u32) -> Result<Vec<Account>, StoreError>;

    /// The key with this hash, and its account. A key that was revoked is not found.
    async fn key(&self, hash: &[u8; 32]) -> Result<Option<(ApiKey, Account)>, StoreError>;

    /// The keys of an account, oldest first.
    async fn keys(&self, account: &AccountId) -> Result<Vec<ApiKey>, StoreError>;

    /// Makes one more key.
    async fn add_key(&self, account: &AccountId, key: NewKey, now: Timestamp) -> Result<Created, StoreError>;

    /// Revokes a key; what it holds is captured or released as if nothing had happened. `false`: there is none.
    async fn revoke_key(&self, account: &AccountId, key: &KeyId) -> Result<bool, StoreError>;

    /// Sets what may be spent in all, of a key or of the whole account. `false`: there is no such thing.
    async fn set_budget(
        &self,
        account: &AccountId,
        key: Option<&KeyId>,
        budget: Option<Usd>,
    ) -> Result<bool, StoreError>;

    /// Closes an account to its keys, or opens it. `false`: there is none.
    async fn suspend(&self, account: &AccountId, suspended: bool) -> Result<bool, StoreError>;

    /// Puts money in. A reference is used once in the whole store.
    async fn credit(
        &self,
        account: &AccountId,
        amount: Usd,
        reference: &str,
        now: Timestamp,
    ) -> Result<Credited, StoreError>;

    /// The lines of an account after number `after`, oldest first; at most `limit` and a page.
    async fn entries(&self, account: &AccountId, after: u64, limit: u32) -> Result<Vec<Entry>, StoreError>;
}
