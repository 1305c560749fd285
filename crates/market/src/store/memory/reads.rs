//! The questions that change nothing, in memory.

use std::ops::Bound;

use aip_protocol::name::Did;
use bytes::Bytes;
use uuid::Uuid;

use super::state::State;
use crate::limits::PAGE_MAX;
use crate::money::Usd;
use crate::store::rows::{EarnedRow, KeyRow};
use crate::store::{
    Account, AccountId, ApiKey, Begun, Channel, ChannelId, ChannelStatus, Earned, Entry, Funding,
    Idempotency, Invocation, KeyId, Totals,
};

/// Where a page begins.
fn start<T>(after: Option<T>) -> (Bound<T>, Bound<T>) {
    (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)
}

fn page(limit: u32) -> usize {
    limit.min(PAGE_MAX) as usize
}

impl State {
    pub(super) fn find_account(&self, id: &AccountId) -> Option<Account> {
        self.accounts.get(id).map(|row| row.account.clone())
    }

    pub(super) fn find_account_of(&self, owner: &Did) -> Option<Account> {
        self.find_account(self.owners.get(owner)?)
    }

    pub(super) fn accounts(&self, after: Option<&AccountId>, limit: u32) -> Vec<Account> {
        let later = self.accounts.range::<AccountId, _>(start(after));
        let page = later.take(page(limit));
        page.map(|(_, row)| row.account.clone()).collect()
    }

    pub(super) fn key_by(&self, hash: &[u8; 32]) -> Option<(ApiKey, Account)> {
        let place = self.hashes.get(hash)?;
        let key = self.keys.get(place)?.key.clone();
        Some((key, self.find_account(&place.0)?))
    }

    pub(super) fn keys(&self, account: &AccountId) -> Vec<ApiKey> {
        let first = (account.clone(), KeyId(String::new()));
        let later = self.keys.range(first..);
        let of_account = later.take_while(|((of, _), _)| of == account);
        let mut keys: Vec<_> = of_account.map(|(_, KeyRow { key, .. })| key.clone()).collect();
        keys.sort_by(|one, next| (one.created_at, &one.id).cmp(&(next.created_at, &next.id)));
        keys
    }

    pub(super) fn entries(&self, account: &AccountId, after: u64, limit: u32) -> Vec<Entry> {
        let lines = self.lines.get(account).map(Vec::as_slice).unwrap_or_default();
        let later = lines.iter().skip(usize::try_from(after).unwrap_or(usize::MAX));
        later.take(page(limit)).cloned().collect()
    }

    pub(super) fn find_channel(&self, id: &ChannelId) -> Option<Channel> {
        self.channels.get(id).cloned()
    }

    pub(super) fn channels(&self, after: Option<&ChannelId>, limit: u32) -> Vec<Channel> {
        let later = self.channels.range::<ChannelId, _>(start(after));
        later.take(page(limit)).map(|(_, row)| row.clone()).collect()
    }

    pub(super) fn find_invocation(&self, id: Uuid) -> Option<Invocation> {
        let row = self.invocations.get(&id)?.clone();
        let repeat = self.asked.get(&id).and_then(|key| self.repeats.get(key));
        Some(row.with(repeat.and_then(|repeat| repeat.answer.clone())))
    }

    pub(super) fn repeated(&self, idempotency: &Idempotency) -> Option<Begun> {
        let repeat = self.repeats.get(&idempotency.key)?.clone();
        let there = self.invocations.get(&repeat.invocation)?.clone();
        Some(repeat.say(&idempotency.body, there))
    }

    pub(super) fn receipt(&self, nonce: &str) -> Option<Bytes> {
        self.receipts.get(nonce).cloned()
    }

    pub(super) fn find_earned(&self, agent: &Did) -> Earned {
        let row = self.earnings.get(agent).cloned();
        row.unwrap_or_else(|| EarnedRow::nothing(agent)).earned
    }

    pub(super) fn all_earned(&self, after: Option<&Did>, limit: u32) -> Vec<Earned> {
        let later = self.earnings.range::<Did, _>(start(after));
        later
            .take(page(limit))
            .map(|(_, row)| row.earned.clone())
            .collect()
    }

    pub(super) fn totals(&self) -> Totals {
        let accounts = || self.accounts.values().map(|row| &row.account);
        let channels = || self.channels.values();
        let open = channels().filter(|channel| channel.status == ChannelStatus::Open);
        let demo = channels().filter(|channel| channel.funding == Funding::Demo);
        let earnings = || self.earnings.values();
        Totals {
            credited: self.issued.credited,
            demo: self.issued.demo,
            balances: accounts().map(|account| account.balance).sum(),
            held: [
                accounts().map(|account| account.held).sum::<Usd>(),
                channels().map(|channel| channel.held).sum(),
            ]
            .into_iter()
            .sum(),
            channels: open.map(Channel::balance).sum(),
            earned: earnings().map(|row| row.earned.earned).sum(),
            paid_out: earnings().map(|row| row.earned.paid_out).sum(),
            fees: earnings().map(|row| row.fees).sum(),
            demo_returned: demo.map(|channel| channel.refunded).sum(),
            paid_directly: earnings().map(|row| row.earned.paid_directly).sum(),
        }
    }
}
