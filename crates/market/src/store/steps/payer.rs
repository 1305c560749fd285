//! An account and the key that spends from it: what they may spend, and the lines of the ledger that say what they did.

use aip_protocol::time::Timestamp;

use super::{rest, sum};
use crate::money::Usd;
use crate::store::rows::{AccountRow, KeyRow, Rows};
use crate::store::{AccountId, Entry, EntryKind, KeyId, Unpayable};

/// Who pays.
pub(super) struct Payer {
    pub(super) row: AccountRow,
    /// `None` once it was revoked: what it spent is counted by the account alone.
    key: Option<KeyRow>,
}

impl Payer {
    /// Who may pay now: `None` without such an account or key, and if the account is suspended.
    pub(super) async fn find<R: Rows>(
        rows: &mut R,
        account: &AccountId,
        key: &KeyId,
    ) -> Result<Option<Self>, R::Error> {
        let row = rows.account(account).await?;
        let key = rows.key(account, key).await?;
        Ok(match (row, key) {
            (Some(row), Some(key)) if !row.account.suspended => Some(Self { row, key: Some(key) }),
            _ => None,
        })
    }

    /// Who paid once, whatever has become of it.
    pub(super) async fn recall<R: Rows>(
        rows: &mut R,
        account: &AccountId,
        key: &KeyId,
    ) -> Result<Self, R::Error> {
        let found = rows.account(account).await?;
        let row = found.ok_or_else(|| R::corrupt("money is of an account that is not there"))?;
        let key = rows.key(account, key).await?;
        Ok(Self { row, key })
    }

    /// Takes an amount off the balance, and off what the budgets leave; or says why not, and takes nothing.
    pub(super) fn take(&mut self, amount: Usd) -> Result<(), Unpayable> {
        let account = &mut self.row.account;
        let of_key = self.key.as_mut().map(|row| &mut row.key);
        let budgets = [
            (account.budget, account.spent),
            of_key
                .as_ref()
                .map_or((None, Usd::ZERO), |key| (key.budget, key.spent)),
        ];
        let lefts = budgets
            .iter()
            .filter_map(|(budget, spent)| Some((*budget)?.saturating_sub(*spent)));
        let left = lefts.min().unwrap_or(Usd::MAX);
        if amount > left {
            return Err(Unpayable::OverBudget(left));
        }
        let balance = account.balance.checked_sub(amount);
        let balance = balance.ok_or(Unpayable::Insufficient(account.balance))?;
        let spent = account.spent.checked_add(amount);
        account.spent = spent.ok_or(Unpayable::Insufficient(account.balance))?;
        account.balance = balance;
        if let Some(key) = of_key {
            // What a key spent is at most what its account did.
            key.spent = key.spent.checked_add(amount).unwrap_or(Usd::MAX);
        }
        Ok(())
    }

    /// Puts an amount back that was taken, also where the budgets count it.
    pub(super) fn put_back<R: Rows>(&mut self, amount: Usd) -> Result<(), R::Error> {
        let account = &mut self.row.account;
        account.balance = sum::<R>(account.balance, amount)?;
        account.spent = rest::<R>(account.spent, amount)?;
        if let Some(KeyRow { key, .. }) = &mut self.key {
            // A key that was revoked and made anew has spent nothing of it.
            key.spent = key.spent.saturating_sub(amount);
        }
        Ok(())
    }

    /// Writes a line, unless it would say nothing. The balance in it is the one that there is now.
    pub(super) async fn line<R: Rows>(
        &mut self,
        rows: &mut R,
        kind: EntryKind,
        amount: Usd,
        reference: &str,
        now: Timestamp,
    ) -> Result<(), R::Error> {
        line(rows, &mut self.row, kind, amount, reference, now).await
    }

    /// Writes account and key.
    pub(super) async fn save<R: Rows>(self, rows: &mut R) -> Result<(), R::Error> {
        if let Some(key) = &self.key {
            rows.put_key(key).await?;
        }
        rows.put_account(&self.row).await
    }
}

/// Writes a line of an account's ledger, unless it would say nothing; the row itself is not written.
pub(super) async fn line<R: Rows>(
    rows: &mut R,
    row: &mut AccountRow,
    kind: EntryKind,
    amount: Usd,
    reference: &str,
    now: Timestamp,
) -> Result<(), R::Error> {
    if amount == Usd::ZERO {
        return Ok(());
    }
    row.lines += 1;
    let line = Entry {
        number: row.lines,
        kind,
        amount,
        reference: reference.to_owned(),
        balance: row.account.balance,
        at: now,
    };
    rows.add_line(&row.account.id, &line).await
}
