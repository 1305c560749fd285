//! What happened, and what everybody has by it: sums over everything there ever was, where the stores keep running ones.
//!
//! What a store answers is believed only if the sums say so too.

mod calls;
mod compare;
mod take;

use std::collections::BTreeMap;

use aip_market::money::Usd;
use aip_market::store::{InvocationStatus, Unpayable};
use aip_market::testsuite::fixtures;
use proptest::prelude::*;
use uuid::Uuid;

use super::steps::Payment;

/// As many as there can be.
const ALL: u32 = 500;

type Told = Result<(), TestCaseError>;

/// Everything that happened.
#[derive(Debug, Default)]
pub(super) struct Sums {
    now: i64,
    accounts: BTreeMap<u8, Holder>,
    /// Into accounts.
    credits: Vec<(u8, u64)>,
    channels: BTreeMap<u8, Line>,
    calls: BTreeMap<u8, Call>,
    /// What each was used for: what, of whom, how much.
    references: BTreeMap<u8, (&'static str, u8, u64)>,
    paid_out: BTreeMap<u8, u64>,
}

#[derive(Debug, Default)]
struct Holder {
    budget: Option<u64>,
    key_budget: Option<u64>,
    has_key: bool,
    suspended: bool,
}

/// A channel.
#[derive(Debug)]
struct Line {
    from: Option<u8>,
    deposits: Vec<u64>,
    expires: i64,
    refund: Option<u64>,
}

#[derive(Debug)]
struct Call {
    payment: Payment,
    asked: Option<(u8, u8)>,
    holder: u8,
    deadline: i64,
    seller: u8,
    status: InvocationStatus,
    paid: u64,
    fee: u64,
    /// Whether its work was done.
    is_done: bool,
    started: i64,
    is_forgotten: bool,
}

impl Call {
    /// What is gone from the purse for it.
    fn gone(&self) -> u64 {
        match (self.status, self.payment) {
            (InvocationStatus::Started, Payment::Account(_, amount) | Payment::Channel(_, amount)) => amount,
            _ => self.paid,
        }
    }
}

fn usd(micros: u64) -> Usd {
    Usd::from_micros(micros).expect("small")
}

fn name(number: u8) -> String {
    format!("n{number}")
}

fn call_id(call: u8) -> Uuid {
    fixtures::call_id(call.into())
}

fn process(holder: u8) -> Uuid {
    Uuid::from_u128(u128::from(holder) + 1)
}

impl Sums {
    fn of_account(&self, account: u8) -> impl Iterator<Item = &Call> {
        let of = move |call: &&Call| matches!(call.payment, Payment::Account(of, _) if of == account);
        self.calls.values().filter(of)
    }

    fn of_channel(&self, channel: u8) -> impl Iterator<Item = &Call> {
        let of = move |call: &&Call| matches!(call.payment, Payment::Channel(of, _) if of == channel);
        self.calls.values().filter(of)
    }

    /// What an account spent, and what is set aside in channels and for calls.
    fn spent(&self, account: u8) -> u64 {
        let channels = self.channels.values().filter(|line| line.from == Some(account));
        let set_aside = channels.map(|line| line.deposits.iter().sum::<u64>() - line.refund.unwrap_or(0));
        set_aside.sum::<u64>() + self.of_account(account).map(Call::gone).sum::<u64>()
    }

    fn balance(&self, account: u8) -> u64 {
        let credits = self.credits.iter().filter(|(of, _)| *of == account);
        credits.map(|(_, amount)| amount).sum::<u64>() - self.spent(account)
    }

    fn held<'a>(calls: impl Iterator<Item = &'a Call>) -> u64 {
        let started = calls.filter(|call| call.status == InvocationStatus::Started);
        started.map(Call::gone).sum()
    }

    fn left(&self, channel: u8) -> u64 {
        let line = &self.channels[&channel];
        let gone: u64 = self.of_channel(channel).map(Call::gone).sum();
        line.deposits.iter().sum::<u64>() - gone - line.refund.unwrap_or(0)
    }

    fn budget_left(&self, account: u8) -> u64 {
        let holder = &self.accounts[&account];
        let lefts = [holder.budget, holder.key_budget].into_iter().flatten();
        let least = lefts
            .map(|budget| budget.saturating_sub(self.spent(account)))
            .min();
        least.unwrap_or(u64::MAX)
    }

    fn earned(&self, seller: u8) -> u64 {
        let calls = self.calls.values().filter(|call| call.seller == seller);
        calls.map(|call| call.paid - call.fee).sum()
    }

    /// Why an account cannot pay.
    fn objection(&self, account: u8, amount: u64) -> Option<Unpayable> {
        let may = self
            .accounts
            .get(&account)
            .is_some_and(|holder| holder.has_key && !holder.suspended);
        if !may {
            Some(Unpayable::NoPurse)
        } else if amount > self.budget_left(account) {
            Some(Unpayable::OverBudget(usd(self.budget_left(account))))
        } else if amount > self.balance(account) {
            Some(Unpayable::Insufficient(usd(self.balance(account))))
        } else {
            None
        }
    }

    fn is_open(&self, channel: u8) -> bool {
        let line = self.channels.get(&channel);
        line.is_some_and(|line| line.refund.is_none() && self.now <= line.expires)
    }

    fn payment_objection(&self, payment: Payment) -> Option<Unpayable> {
        match payment {
            Payment::Free => None,
            Payment::Account(account, amount) => self.objection(account, amount),
            Payment::Channel(channel, _) if !self.is_open(channel) => Some(Unpayable::NoPurse),
            Payment::Channel(channel, amount) => {
                let left = self.left(channel);
                (amount > left).then(|| Unpayable::Insufficient(usd(left)))
            }
            Payment::Trial(visitor) => {
                let of_visitor = self
                    .calls
                    .values()
                    .filter(|call| call.payment == Payment::Trial(visitor));
                let used = of_visitor.filter(|call| match call.status {
                    InvocationStatus::Started | InvocationStatus::Settling => true,
                    InvocationStatus::Finished => call.is_done,
                    InvocationStatus::Abandoned => false,
                });
                let used = u32::try_from(used.count()).expect("few");
                (used >= 2).then_some(Unpayable::TrialsUsed(used))
            }
        }
    }
}
