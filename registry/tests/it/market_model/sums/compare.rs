//! Everything that a store says there is, against the sums.

use aip_market::money::Usd;
use aip_market::store::{ChannelStatus, Entry, EntryKind, InvocationStatus, MarketStore, Totals};
use aip_market::testsuite::fixtures::{account_id, agent, answer, channel_id, digest};
use proptest::prelude::*;

use super::{Sums, Told, call_id, name, usd};
use crate::market_model::steps::Payment;

impl Sums {
    /// Whether the store says the same of everybody, and of all together.
    pub(crate) async fn compare<S: MarketStore>(&self, store: &S) -> Told {
        let totals = store.totals().await.expect("read");
        prop_assert!(totals.balance(), "{:?}", totals);
        prop_assert_eq!(totals, self.totals());
        self.compare_accounts(store).await?;
        self.compare_channels(store).await?;
        self.compare_calls(store).await
    }

    fn totals(&self) -> Totals {
        let accounts = || self.accounts.keys().copied();
        let lines = || self.channels.iter();
        let demo = || lines().filter(|(_, line)| line.from.is_none());
        let open = lines().filter(|(_, line)| line.refund.is_none());
        Totals {
            credited: usd(self.credits.iter().map(|(_, amount)| amount).sum()),
            demo: usd(demo().flat_map(|(_, line)| &line.deposits).sum()),
            balances: usd(accounts().map(|account| self.balance(account)).sum()),
            held: usd(Self::held(self.calls.values())),
            channels: usd(open.map(|(number, _)| self.left(*number)).sum()),
            earned: usd(self.calls.values().map(|call| call.paid - call.fee).sum()),
            paid_out: usd(self.paid_out.values().sum()),
            fees: usd(self.calls.values().map(|call| call.fee).sum()),
            demo_returned: usd(demo().filter_map(|(_, line)| line.refund).sum()),
            paid_directly: Usd::ZERO,
        }
    }

    async fn compare_accounts<S: MarketStore>(&self, store: &S) -> Told {
        let there = store.accounts(None, 100).await.expect("read");
        prop_assert_eq!(there.len(), self.accounts.len());
        for (number, holder) in &self.accounts {
            let id = account_id(&name(*number));
            let account = store.account(&id).await.expect("read").expect("known");
            prop_assert_eq!(account.balance, usd(self.balance(*number)));
            prop_assert_eq!(account.held, usd(Self::held(self.of_account(*number))));
            prop_assert_eq!(account.spent, usd(self.spent(*number)));
            prop_assert_eq!(account.suspended, holder.suspended);
            prop_assert_eq!(account.budget, holder.budget.map(usd));
            let key = store.key(&digest(&name(*number))).await.expect("read");
            prop_assert_eq!(key.is_some(), holder.has_key);
            if let Some((key, of)) = key {
                prop_assert_eq!(
                    (key.spent, key.budget),
                    (account.spent, holder.key_budget.map(usd))
                );
                prop_assert_eq!(&of, &account);
            }
            let lines = store.entries(&id, 0, 500).await.expect("read");
            prop_assert_eq!(add_up(&lines)?, account.balance);
        }
        Ok(())
    }

    async fn compare_channels<S: MarketStore>(&self, store: &S) -> Told {
        for (number, line) in &self.channels {
            let there = store.channel(&channel_id(&name(*number))).await.expect("read");
            let channel = there.expect("known");
            prop_assert_eq!(channel.deposit, usd(line.deposits.iter().sum()));
            prop_assert_eq!(channel.held, usd(Self::held(self.of_channel(*number))));
            prop_assert_eq!(
                channel.used,
                usd(self.of_channel(*number).map(|call| call.paid).sum())
            );
            prop_assert_eq!(channel.refunded, usd(line.refund.unwrap_or(0)));
            prop_assert_eq!(channel.status == ChannelStatus::Open, line.refund.is_none());
            prop_assert_eq!(channel.balance(), usd(self.left(*number)));
        }
        Ok(())
    }

    async fn compare_calls<S: MarketStore>(&self, store: &S) -> Told {
        for (number, call) in &self.calls {
            let there = store
                .invocation(call_id(*number))
                .await
                .expect("read")
                .expect("known");
            prop_assert_eq!((there.status, there.charged), (call.status, usd(call.paid)));
            let is_free = matches!(call.payment, Payment::Free | Payment::Trial(_));
            prop_assert!(!is_free || there.charged == Usd::ZERO);
            let is_kept =
                call.asked.is_some() && call.status == InvocationStatus::Finished && !call.is_forgotten;
            prop_assert_eq!(there.answer, is_kept.then(|| answer(&name(*number))));
        }
        for seller in 0..2 {
            let earned = store.earned(&agent(&name(seller))).await.expect("read");
            prop_assert_eq!(earned.earned, usd(self.earned(seller)));
            let paid_out = self.paid_out.get(&seller).copied().unwrap_or(0);
            prop_assert_eq!(earned.paid_out, usd(paid_out));
            let sold = self
                .calls
                .values()
                .filter(|call| call.seller == seller && call.paid > 0);
            prop_assert_eq!(earned.calls, sold.count() as u64);
        }
        Ok(())
    }
}

/// What is left by the lines of a ledger; each must say so itself.
fn add_up(lines: &[Entry]) -> Result<Usd, TestCaseError> {
    let mut balance = Usd::ZERO;
    for (line, number) in lines.iter().zip(1..) {
        prop_assert_eq!(line.number, number);
        prop_assert!(line.amount > Usd::ZERO);
        let next = match line.kind {
            EntryKind::Credit | EntryKind::Release | EntryKind::Refund => balance.checked_add(line.amount),
            EntryKind::Hold | EntryKind::Deposit => balance.checked_sub(line.amount),
            EntryKind::Capture => Some(balance),
        };
        prop_assert_eq!(next, Some(line.balance));
        balance = line.balance;
    }
    Ok(balance)
}
