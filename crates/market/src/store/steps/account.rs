//! The steps of accounts and keys.

use aip_protocol::time::Timestamp;

use super::payer::line;
use super::{Step, plain, sum, whole};
use crate::limits::KEYS_PER_ACCOUNT_MAX;
use crate::money::Usd;
use crate::store::rows::{AccountRow, KeyRow, Purpose, Reference, Rows};
use crate::store::{Account, AccountId, ApiKey, Created, Credited, EntryKind, KeyId, NewAccount, NewKey};

/// See [`crate::store::Accounts::create_account`].
#[derive(Debug, Clone)]
pub struct CreateAccount {
    /// What is made.
    pub new: NewAccount,
    /// Now.
    pub now: Timestamp,
}

impl Step for CreateAccount {
    type Outcome = Created;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<Created, R::Error> {
        let new = &self.new;
        if rows.account(&new.id).await?.is_some() {
            let key = rows.key(&new.id, &new.key.id).await?;
            let is_same = key.is_some_and(|row| row.hash == new.key.hash);
            return Ok(if is_same { Created::Made } else { Created::Refused });
        }
        if let Some(owner) = &new.owner
            && let Some(other) = rows.account_of(owner).await?
        {
            return Ok(Created::OwnerHasOne(other));
        }
        let grant = Credit {
            account: new.id.clone(),
            amount: new.grant,
            reference: format!("grant:{}", new.id.0),
            now: self.now,
        };
        let issued = rows.issued().await?.with(new.grant, Usd::ZERO);
        let reference = grant.reference();
        let (Some(issued), None) = (issued, rows.reference(&reference.text).await?) else {
            return Ok(Created::Refused);
        };
        if rows.has_hash(&new.key.hash).await? {
            return Ok(Created::Refused);
        }
        let mut row = self.row();
        if new.grant > Usd::ZERO {
            rows.set_issued(issued).await?;
            rows.add_reference(&reference).await?;
            line(
                rows,
                &mut row,
                EntryKind::Credit,
                new.grant,
                &reference.text,
                reference.at,
            )
            .await?;
        }
        rows.put_account(&row).await?;
        rows.put_key(&key_row(&new.id, &new.key, self.now)).await?;
        Ok(Created::Made)
    }
}

impl CreateAccount {
    fn row(&self) -> AccountRow {
        let account = Account {
            id: self.new.id.clone(),
            label: plain(&self.new.label),
            owner: self.new.owner.clone(),
            balance: self.new.grant,
            held: Usd::ZERO,
            budget: self.new.budget,
            spent: Usd::ZERO,
            suspended: false,
            created_at: whole(self.now),
        };
        AccountRow { account, lines: 0 }
    }
}

fn key_row(account: &AccountId, new: &NewKey, now: Timestamp) -> KeyRow {
    KeyRow {
        account: account.clone(),
        hash: new.hash,
        key: ApiKey {
            id: new.id.clone(),
            label: plain(&new.label),
            budget: new.budget,
            spent: Usd::ZERO,
            created_at: whole(now),
        },
    }
}

/// See [`crate::store::Accounts::add_key`].
#[derive(Debug, Clone)]
pub struct AddKey {
    /// Whose.
    pub account: AccountId,
    /// What is made.
    pub key: NewKey,
    /// Now.
    pub now: Timestamp,
}

impl Step for AddKey {
    type Outcome = Created;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<Created, R::Error> {
        if let Some(there) = rows.key(&self.account, &self.key.id).await? {
            let is_same = there.hash == self.key.hash;
            return Ok(if is_same { Created::Made } else { Created::Refused });
        }
        let is_free = rows.account(&self.account).await?.is_some()
            && rows.key_count(&self.account).await? < u64::from(KEYS_PER_ACCOUNT_MAX)
            && !rows.has_hash(&self.key.hash).await?;
        if !is_free {
            return Ok(Created::Refused);
        }
        rows.put_key(&key_row(&self.account, &self.key, self.now)).await?;
        Ok(Created::Made)
    }
}

/// See [`crate::store::Accounts::revoke_key`].
#[derive(Debug, Clone)]
pub struct RevokeKey {
    /// Whose.
    pub account: AccountId,
    /// Which.
    pub key: KeyId,
}

impl Step for RevokeKey {
    type Outcome = bool;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<bool, R::Error> {
        rows.drop_key(&self.account, &self.key).await
    }
}

/// See [`crate::store::Accounts::set_budget`].
#[derive(Debug, Clone)]
pub struct SetBudget {
    /// Whose.
    pub account: AccountId,
    /// Of one key, or of all together.
    pub key: Option<KeyId>,
    /// What may be spent.
    pub budget: Option<Usd>,
}

impl Step for SetBudget {
    type Outcome = bool;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<bool, R::Error> {
        if let Some(key) = &self.key {
            let Some(mut row) = rows.key(&self.account, key).await? else {
                return Ok(false);
            };
            row.key.budget = self.budget;
            rows.put_key(&row).await?;
        } else {
            let Some(mut row) = rows.account(&self.account).await? else {
                return Ok(false);
            };
            row.account.budget = self.budget;
            rows.put_account(&row).await?;
        }
        Ok(true)
    }
}

/// See [`crate::store::Accounts::suspend`].
#[derive(Debug, Clone)]
pub struct Suspend {
    /// Which account.
    pub account: AccountId,
    /// Whether it is closed to its keys.
    pub suspended: bool,
}

impl Step for Suspend {
    type Outcome = bool;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<bool, R::Error> {
        let Some(mut row) = rows.account(&self.account).await? else {
            return Ok(false);
        };
        row.account.suspended = self.suspended;
        rows.put_account(&row).await?;
        Ok(true)
    }
}

/// See [`crate::store::Accounts::credit`].
#[derive(Debug, Clone)]
pub struct Credit {
    /// For whom.
    pub account: AccountId,
    /// How much.
    pub amount: Usd,
    /// Used once.
    pub reference: String,
    /// Now.
    pub now: Timestamp,
}

impl Step for Credit {
    type Outcome = Credited;

    async fn run<R: Rows>(&self, rows: &mut R) -> Result<Credited, R::Error> {
        let reference = self.reference();
        let found = rows.account(&self.account).await?;
        if let Some(used) = rows.reference(&reference.text).await? {
            return Ok(match found {
                Some(row) if reference.is_like(&used) => Credited::Again(row.account.balance),
                _ => Credited::OtherUse,
            });
        }
        let issued = rows.issued().await?.with(self.amount, Usd::ZERO);
        let (Some(mut row), Some(issued)) = (found, issued) else {
            return Ok(Credited::Refused);
        };
        row.account.balance = sum::<R>(row.account.balance, self.amount)?;
        rows.set_issued(issued).await?;
        rows.add_reference(&reference).await?;
        line(
            rows,
            &mut row,
            EntryKind::Credit,
            self.amount,
            &reference.text,
            reference.at,
        )
        .await?;
        rows.put_account(&row).await?;
        Ok(Credited::Done(row.account.balance))
    }
}

impl Credit {
    fn reference(&self) -> Reference {
        Reference {
            text: plain(&self.reference),
            purpose: Purpose::Credit,
            subject: self.account.0.clone(),
            amount: self.amount,
            at: whole(self.now),
        }
    }
}
