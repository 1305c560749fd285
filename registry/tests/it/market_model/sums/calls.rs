//! The steps of calls, done to a store, and what the sums say of its answers.

use aip_market::store::{
    Begin, Begun, Charge, Finish, Finished, InvocationStatus, MarketStore, Outcome, Purse,
};
use aip_market::testsuite::fixtures::{
    agent, answer, at, free_call, idempotency, of_account, of_channel, receipt, trial,
};
use proptest::prelude::*;
use uuid::Uuid;

use super::{ALL, Call, Sums, Told, call_id, name, process, usd};
use crate::market_model::steps::{Payment, Step};

impl Sums {
    /// Which call was asked for under this key, where that still counts.
    fn asked_before(&self, key: u8) -> Option<(u8, &Call)> {
        let counts = |call: &Call| {
            call.asked.is_some_and(|(of, _)| of == key)
                && call.status != InvocationStatus::Abandoned
                && !call.is_forgotten
        };
        let known = self.calls.iter().find(|(_, call)| counts(call));
        known.map(|(number, call)| (*number, call))
    }

    /// As a store is asked.
    fn request(&self, step: &Step, number: u8) -> Begin {
        let Step::Begin {
            purse,
            asked,
            holder,
            takes,
            seller,
            ..
        } = *step
        else {
            unreachable!("a step of another kind");
        };
        let paid = |purse: Purse, amount| Begin {
            charge: Some(Charge {
                purse,
                amount: usd(amount),
            }),
            ..free_call(number.into())
        };
        let begin = match purse {
            Payment::Free => free_call(number.into()),
            Payment::Trial(visitor) => trial(number.into(), &name(visitor)),
            Payment::Account(account, amount) => paid(of_account(&name(account)), amount),
            Payment::Channel(channel, amount) => paid(of_channel(&name(channel)), amount),
        };
        Begin {
            idempotency: asked.map(|(key, body)| idempotency(&name(key), &name(body))),
            agent: agent(&name(seller)),
            holder: process(holder),
            deadline: at(self.now + takes),
            ..begin
        }
    }

    pub(super) async fn begin<S: MarketStore>(&mut self, store: &S, step: &Step) -> Told {
        let Step::Begin {
            call,
            purse,
            asked,
            holder,
            takes,
            seller,
        } = *step
        else {
            return Ok(());
        };
        let next = self.calls.keys().next_back().map_or(0, |last| last + 1);
        let call = call.unwrap_or(next);
        let begun = store
            .begin(self.request(step, call), at(self.now))
            .await
            .expect("answered");
        if let Some(known) = self.calls.get(&call) {
            let is_mine = known.status == InvocationStatus::Started && known.holder == holder;
            let is_right = match begun {
                Begun::Started => is_mine,
                Begun::Again(there) => !is_mine && there.id == call_id(call),
                _ => false,
            };
            prop_assert!(is_right);
            return Ok(());
        }
        if let Some(asked) = asked
            && let Some((first, known)) = self.asked_before(asked.0)
        {
            prop_assert!(is_what_came_of(first, known, asked, begun));
            return Ok(());
        }
        if let Some(unpayable) = self.payment_objection(purse) {
            prop_assert_eq!(begun, Begun::Unpayable(unpayable));
            return Ok(());
        }
        prop_assert_eq!(begun, Begun::Started);
        let new = Call {
            payment: purse,
            asked,
            holder,
            deadline: self.now + takes,
            seller,
            status: InvocationStatus::Started,
            paid: 0,
            fee: 0,
            is_done: false,
            started: self.now,
            is_forgotten: false,
        };
        self.calls.insert(call, new);
        Ok(())
    }

    /// One of the calls that are under way, or any.
    pub(super) fn under_way(&self, at: u8) -> u8 {
        let calls = self.calls.iter();
        let started = calls.filter(|(_, call)| call.status == InvocationStatus::Started);
        let numbers: Vec<_> = started.map(|(number, _)| *number).collect();
        let chosen = numbers.iter().cycle().nth(at.into());
        chosen.copied().unwrap_or(at)
    }

    pub(super) async fn finish<S: MarketStore>(
        &mut self,
        store: &S,
        number: u8,
        paid: Option<(u64, u64)>,
    ) -> Told {
        let outcome = paid.map_or(Outcome::Released, |(amount, fee)| Outcome::Captured {
            amount: usd(amount),
            fee: usd(fee),
        });
        let finish = Finish {
            outcome,
            answer: answer(&name(number)),
            receipt: Some(receipt(&name(number))),
        };
        let ended = store
            .finish(call_id(number), finish, at(self.now))
            .await
            .expect("answered");
        let under_way = |call: &&mut Call| call.status == InvocationStatus::Started;
        let Some(call) = self.calls.get_mut(&number).filter(under_way) else {
            prop_assert_eq!(ended, Finished::NotStarted);
            return Ok(());
        };
        prop_assert_eq!(ended, Finished::Done);
        let (amount, fee) = paid.unwrap_or_default();
        call.paid = call.gone().min(amount);
        call.fee = call.paid.min(fee);
        (call.status, call.is_done) = (InvocationStatus::Finished, paid.is_some());
        let kept = store.receipt(&receipt(&name(number)).nonce).await.expect("read");
        prop_assert_eq!(kept, Some(receipt(&name(number)).receipt));
        Ok(())
    }

    pub(super) async fn abandon<S: MarketStore>(
        &mut self,
        store: &S,
        holder: Option<u8>,
        limit: u32,
    ) -> Told {
        let lost = store
            .abandon(holder.map(process), limit, at(self.now))
            .await
            .expect("answered");
        let is_lost = |call: &Call| {
            call.status == InvocationStatus::Started
                && holder.map_or(call.deadline <= self.now, |holder| call.holder == holder)
        };
        let calls = self.calls.iter().filter(|(_, call)| is_lost(call));
        let mut expected: Vec<_> = calls.map(|(number, call)| (call.deadline, *number)).collect();
        expected.sort_unstable();
        expected.truncate(limit as usize);
        let ids: Vec<Uuid> = expected.iter().map(|(_, number)| call_id(*number)).collect();
        prop_assert_eq!(lost, ids);
        for (_, number) in expected {
            self.calls
                .entry(number)
                .and_modify(|call| call.status = InvocationStatus::Abandoned);
        }
        Ok(())
    }

    pub(super) async fn forget<S: MarketStore>(&mut self, store: &S) -> Told {
        let forgotten = store.forget_answers(at(self.now), ALL).await.expect("answered");
        let now = self.now;
        let mut expected = 0;
        for call in self.calls.values_mut() {
            let is_kept =
                call.asked.is_some() && call.status == InvocationStatus::Finished && !call.is_forgotten;
            if is_kept && call.started < now {
                call.is_forgotten = true;
                expected += 1;
            }
        }
        prop_assert_eq!(forgotten, expected);
        Ok(())
    }
}

/// Whether who asks this now is told what came of the call that was asked for under the same key.
fn is_what_came_of(first: u8, known: &Call, asked: (u8, u8), begun: Begun) -> bool {
    let is_same = known.asked == Some(asked);
    match begun {
        Begun::OtherBody => !is_same,
        Begun::Running(id) => is_same && known.status == InvocationStatus::Started && id == call_id(first),
        Begun::Again(there) => {
            is_same
                && known.status == InvocationStatus::Finished
                && there.id == call_id(first)
                && there.answer == Some(answer(&name(first)))
        }
        _ => false,
    }
}
