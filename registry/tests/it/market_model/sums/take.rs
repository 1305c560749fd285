//! Each step, done to a store, and what the sums say of its answer.

use aip_market::store::{Closed, Created, Credited, MarketStore, Opened, PaidOut, ToppedUp, Unpayable};
use aip_market::testsuite::fixtures::{account, account_id, agent, at, channel_id, key_id, new_channel};
use proptest::prelude::*;

use super::{ALL, Holder, Line, Sums, Told, name, usd};
use crate::market_model::steps::Step;

impl Sums {
    /// Does a step, and believes the answer if it is the right one.
    pub(crate) async fn take<S: MarketStore>(&mut self, store: &S, step: &Step) -> Told {
        match *step {
            Step::Create { account, grant } => self.create(store, account, grant).await,
            Step::Credit {
                account,
                amount,
                reference,
            } => self.credit(store, account, amount, reference).await,
            Step::Budget {
                account,
                of_key,
                budget,
            } => self.budget(store, account, of_key, budget).await,
            Step::Suspend { account, suspended } => self.suspend(store, account, suspended).await,
            Step::Revoke { account } => self.revoke(store, account).await,
            Step::Open {
                channel,
                account,
                deposit,
                lives,
            } => self.open(store, channel, account, deposit, lives).await,
            Step::TopUp {
                channel,
                amount,
                reference,
            } => self.top_up(store, channel, amount, reference).await,
            Step::Close { channel } => self.close(store, channel).await,
            Step::Expire { limit } => self.expire(store, limit).await,
            Step::Begin { .. } => self.begin(store, step).await,
            Step::Finish { is_known, call, paid } => {
                let number = if is_known { self.under_way(call) } else { call };
                self.finish(store, number, paid).await
            }
            Step::Abandon { holder, limit } => self.abandon(store, holder, limit).await,
            Step::Forget => self.forget(store).await,
            Step::PayOut {
                seller,
                amount,
                reference,
            } => self.pay_out(store, seller, amount, reference).await,
            Step::Wait { secs } => {
                self.now += secs;
                Ok(())
            }
            Step::Crash { .. } => Ok(()),
        }
    }

    /// Gives up what a process left behind.
    pub(crate) async fn lose<S: MarketStore>(&mut self, store: &S, holder: u8) -> Told {
        self.abandon(store, Some(holder), ALL).await
    }

    async fn create<S: MarketStore>(&mut self, store: &S, number: u8, grant: u64) -> Told {
        let mut new = account(&name(number), "0");
        new.grant = usd(grant);
        let made = store.create_account(new, at(self.now)).await.expect("answered");
        let expected = match self.accounts.get(&number) {
            Some(holder) if !holder.has_key => Created::Refused,
            Some(_) => Created::Made,
            None => {
                let holder = Holder {
                    has_key: true,
                    ..Holder::default()
                };
                self.accounts.insert(number, holder);
                self.credits.push((number, grant));
                Created::Made
            }
        };
        prop_assert_eq!(made, expected);
        Ok(())
    }

    /// What a reference was used for: nothing, the same (`true`), or something else.
    fn used(&self, reference: u8, purpose: (&'static str, u8, u64)) -> Option<bool> {
        self.references.get(&reference).map(|used| *used == purpose)
    }

    async fn credit<S: MarketStore>(&mut self, store: &S, number: u8, amount: u64, reference: u8) -> Told {
        let (id, text) = (account_id(&name(number)), name(reference));
        let done = store.credit(&id, usd(amount), &text, at(self.now)).await;
        let is_there = self.accounts.contains_key(&number);
        let expected = match self.used(reference, ("credit", number, amount)) {
            Some(true) => Credited::Again(usd(self.balance(number))),
            Some(false) => Credited::OtherUse,
            None if is_there => {
                self.credits.push((number, amount));
                self.references.insert(reference, ("credit", number, amount));
                Credited::Done(usd(self.balance(number)))
            }
            None => Credited::Refused,
        };
        prop_assert_eq!(done.expect("answered"), expected);
        Ok(())
    }

    async fn budget<S: MarketStore>(
        &mut self,
        store: &S,
        number: u8,
        of_key: bool,
        budget: Option<u64>,
    ) -> Told {
        let (id, key) = (account_id(&name(number)), key_id(&name(number)));
        let key = of_key.then_some(&key);
        let done = store
            .set_budget(&id, key, budget.map(usd))
            .await
            .expect("answered");
        let there = self
            .accounts
            .get_mut(&number)
            .filter(|holder| !of_key || holder.has_key);
        prop_assert_eq!(done, there.is_some());
        match there {
            Some(holder) if of_key => holder.key_budget = budget,
            Some(holder) => holder.budget = budget,
            None => {}
        }
        Ok(())
    }

    async fn suspend<S: MarketStore>(&mut self, store: &S, number: u8, suspended: bool) -> Told {
        let id = account_id(&name(number));
        let done = store.suspend(&id, suspended).await.expect("answered");
        let there = self.accounts.get_mut(&number);
        prop_assert_eq!(done, there.is_some());
        if let Some(holder) = there {
            holder.suspended = suspended;
        }
        Ok(())
    }

    async fn revoke<S: MarketStore>(&mut self, store: &S, number: u8) -> Told {
        let (id, key) = (account_id(&name(number)), key_id(&name(number)));
        let done = store.revoke_key(&id, &key).await.expect("answered");
        let there = self.accounts.get_mut(&number).filter(|holder| holder.has_key);
        prop_assert_eq!(done, there.is_some());
        if let Some(holder) = there {
            holder.has_key = false;
        }
        Ok(())
    }

    async fn open<S: MarketStore>(
        &mut self,
        store: &S,
        number: u8,
        from: Option<u8>,
        deposit: u64,
        lives: i64,
    ) -> Told {
        let mut new = new_channel(&name(number), from.map(name).as_deref(), "0");
        (new.deposit, new.expires_at) = (usd(deposit), at(self.now + lives));
        let opened = store.open_channel(new, at(self.now)).await.expect("answered");
        if self.channels.contains_key(&number) {
            let there = store.channel(&channel_id(&name(number))).await.expect("read");
            prop_assert_eq!(opened, Opened::Done(there.expect("known")));
            return Ok(());
        }
        let expected = match from.and_then(|account| self.objection(account, deposit)) {
            Some(Unpayable::Insufficient(there)) => Opened::Insufficient(there),
            Some(Unpayable::OverBudget(left)) => Opened::OverBudget(left),
            Some(_) => Opened::NoAccount,
            None => {
                let line = Line {
                    from,
                    deposits: vec![deposit],
                    expires: self.now + lives,
                    refund: None,
                };
                self.channels.insert(number, line);
                let there = store.channel(&channel_id(&name(number))).await.expect("read");
                Opened::Done(there.expect("open"))
            }
        };
        prop_assert_eq!(opened, expected);
        Ok(())
    }

    async fn top_up<S: MarketStore>(&mut self, store: &S, number: u8, amount: u64, reference: u8) -> Told {
        let (id, text) = (channel_id(&name(number)), name(reference));
        let topped = store
            .top_up(&id, usd(amount), &text, at(self.now))
            .await
            .expect("answered");
        let now = async || store.channel(&id).await.expect("read").expect("known");
        let expected = match self.used(reference, ("top up", number, amount)) {
            Some(true) => ToppedUp::Again(now().await),
            Some(false) => ToppedUp::OtherUse,
            None if !self.is_open(number) => ToppedUp::Refused,
            None => {
                let from = self.channels.get(&number).and_then(|line| line.from);
                match from.and_then(|account| self.objection(account, amount)) {
                    Some(Unpayable::Insufficient(there)) => ToppedUp::Insufficient(there),
                    Some(Unpayable::OverBudget(left)) => ToppedUp::OverBudget(left),
                    Some(_) => ToppedUp::Refused,
                    None => {
                        self.references.insert(reference, ("top up", number, amount));
                        self.channels
                            .entry(number)
                            .and_modify(|line| line.deposits.push(amount));
                        ToppedUp::Done(now().await)
                    }
                }
            }
        };
        prop_assert_eq!(topped, expected);
        Ok(())
    }

    fn end(&mut self, channel: u8) {
        let left = self.left(channel);
        self.channels
            .entry(channel)
            .and_modify(|line| line.refund = Some(left));
    }

    async fn close<S: MarketStore>(&mut self, store: &S, number: u8) -> Told {
        let id = channel_id(&name(number));
        let closed = store.close_channel(&id, at(self.now)).await.expect("answered");
        let held = Self::held(self.of_channel(number));
        match self.channels.get(&number) {
            None => prop_assert_eq!(closed, Closed::Missing),
            Some(line) if line.refund.is_none() && held > 0 => {
                prop_assert_eq!(closed, Closed::Pending(usd(held)));
            }
            Some(line) => {
                if line.refund.is_none() {
                    self.end(number);
                }
                let there = store.channel(&id).await.expect("read").expect("known");
                prop_assert_eq!(closed, Closed::Done(there));
            }
        }
        Ok(())
    }

    async fn expire<S: MarketStore>(&mut self, store: &S, limit: u32) -> Told {
        let ended = store
            .expire_channels(at(self.now), limit)
            .await
            .expect("answered");
        let is_over = |number: u8, line: &Line| {
            line.refund.is_none() && line.expires < self.now && Self::held(self.of_channel(number)) == 0
        };
        let over = self
            .channels
            .iter()
            .filter(|(number, line)| is_over(**number, line));
        let mut over: Vec<_> = over.map(|(number, line)| (line.expires, *number)).collect();
        over.sort_unstable();
        over.truncate(limit as usize);
        let expected: Vec<_> = over
            .iter()
            .map(|(_, number)| channel_id(&name(*number)))
            .collect();
        let ended: Vec<_> = ended.into_iter().map(|channel| channel.id).collect();
        prop_assert_eq!(ended, expected);
        for (_, number) in over {
            self.end(number);
        }
        Ok(())
    }

    async fn pay_out<S: MarketStore>(&mut self, store: &S, number: u8, amount: u64, reference: u8) -> Told {
        let (seller, text) = (agent(&name(number)), name(reference));
        let paid = store
            .pay_out(&seller, usd(amount), &text, at(self.now))
            .await
            .expect("answered");
        let now = async || store.earned(&seller).await.expect("read");
        let owed = self.earned(number) - self.paid_out.get(&number).copied().unwrap_or(0);
        let expected = match self.used(reference, ("pay out", number, amount)) {
            Some(true) => PaidOut::Again(now().await),
            Some(false) => PaidOut::OtherUse,
            None if amount > owed => PaidOut::Exceeds(usd(owed)),
            None => {
                self.references.insert(reference, ("pay out", number, amount));
                *self.paid_out.entry(number).or_default() += amount;
                PaidOut::Done(now().await)
            }
        };
        prop_assert_eq!(paid, expected);
        Ok(())
    }
}
