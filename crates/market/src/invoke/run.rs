//! What happens to money and work: begin, call, end (steps 12 and 13).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::time::Timestamp;
use futures_util::FutureExt as _;
use tokio::task::{JoinError, JoinHandle};
use uuid::Uuid;

use super::Invoked;
use super::answer::{Done, Failure, as_kept, failed, succeeded};
use super::input;
use super::price::Cost;
use super::routed::Route;
use super::x402::Paying;
use crate::limits::{INVOKE_MARGIN, RESULT_BYTES_MAX, STORE_PAUSES};
use crate::market::{Market, Seams};
use crate::money::Usd;
use crate::offer::Offer;
use crate::progress::{ProgressSink, Track};
use crate::provider::{ProviderCall, ProviderError};
use crate::refusal::{MarketCode, MarketError, MarketRefusal};
use crate::schema::Checked;
use crate::store::{
    Answer, Begin, Begun, Finish, Finished, Idempotency, Invocation, InvocationStatus, Outcome, Purse,
    StoreError, Unpayable,
};

/// A call that was set going.
pub(super) type Work = JoinHandle<Result<Invoked, MarketError>>;

/// A call about which everything is known that can be known before it is made.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) id: Uuid,
    pub(super) offer: Arc<Offer>,
    pub(super) cost: Cost,
    /// How it gets to another hub; `None`: the provider is one of this hub's.
    pub(super) route: Option<Route>,
    pub(super) input: serde_json::Value,
    pub(super) idempotency: Option<Idempotency>,
    /// Where who follows the call sees it.
    pub(super) track: Arc<Track>,
}

impl Plan {
    fn provider_call(&self, timeout: Duration) -> ProviderCall {
        let track = &self.track;
        ProviderCall {
            id: self.id,
            input: self.input.clone(),
            timeout,
            progress: track.is_followed.then(|| ProgressSink(Arc::clone(track))),
            cancelled: track.cancelled.clone(),
        }
    }

    fn begin(&self, market: &Market, timeout: Duration) -> Begin {
        let (charge, trial) = match &self.cost {
            Cost::Nothing | Cost::Payment(_) => (None, None),
            Cost::Trial(trial) => (None, Some(trial.clone())),
            Cost::Charge(charge) => (Some(charge.clone()), None),
        };
        Begin {
            id: self.id,
            idempotency: self.idempotency.clone(),
            agent: self.offer.agent.clone(),
            product_id: self.offer.product_id.clone(),
            capability_id: self.offer.capability_id.clone(),
            charge,
            trial,
            payment: self.cost.payment().map(Paying::claim),
            holder: market.config.holder,
            deadline: market.seams.clock.now() + timeout + INVOKE_MARGIN + self.cost.spare(),
        }
    }
}

impl Market {
    /// Makes the call. It runs on by itself: whoever asked may go away.
    pub(super) async fn make(self: &Arc<Self>, plan: Plan) -> Result<Invoked, MarketError> {
        joined(self.set_going(plan)?.await)
    }

    /// Sets the call going, if there is a place for it.
    pub(super) fn set_going(self: &Arc<Self>, plan: Plan) -> Result<Work, MarketRefusal> {
        let busy = |_full| {
            MarketRefusal::new(
                MarketCode::Unavailable,
                "Too many calls are under way. Try again.",
            )
            .retry_after(1)
        };
        let crowded = || {
            let detail = "Too many calls of this provider are under way. Try again.";
            MarketRefusal::new(MarketCode::Unavailable, detail).retry_after(1)
        };
        let place = self.crowd.take_place(&plan.offer.agent).ok_or_else(crowded)?;
        let elsewhere = match &plan.route {
            Some(_) => Some(Arc::clone(&self.routed_slots).try_acquire_owned().map_err(busy)?),
            None => None,
        };
        let slot = Arc::clone(&self.slots).try_acquire_owned().map_err(busy)?;
        let market = Arc::clone(self);
        Ok(self.tasks.spawn(async move {
            let made = market.carry_out(plan).await;
            drop((place, elsewhere, slot));
            made
        }))
    }

    async fn carry_out(&self, plan: Plan) -> Result<Invoked, MarketError> {
        let timeout = plan.offer.timeout.unwrap_or(self.config.provider_timeout);
        let begin = plan.begin(self, timeout);
        let deadline = begin.deadline;
        match self.begin(begin).await? {
            Begun::Started => {}
            Begun::Unpayable(why) => {
                let refusal = self.unpayable(&plan, why);
                return Err(self.with_terms(refusal, &plan.offer).into());
            }
            repeated => return repetition(repeated),
        }
        if let Some(paying) = plan.cost.payment() {
            self.verify_payment(&plan, paying).await?;
        }
        let place = self.board.enter(&plan.track);
        let timeout = timeout.min(self.left_for_work(deadline, &plan.cost));
        // From here on every way out ends what was begun, also a panic of a provider's client.
        let work = AssertUnwindSafe(self.work(&plan, timeout)).catch_unwind().await;
        let done = work.unwrap_or_else(|_panic| {
            tracing::error!(invocation = %plan.id, "the call of a provider panicked");
            Err(Failure::Broken)
        });
        let invoked = match done {
            Ok(done) => self.settle(&plan, done).await,
            Err(failure) => self.release(&plan, &failure).await,
        };
        place.end(&invoked, self.seams.clock.now());
        Ok(invoked)
    }

    /// What the provider may have, so that it ends before anybody gives the call up, also where beginning took long. Its work
    /// would be for nothing otherwise.
    fn left_for_work(&self, deadline: Timestamp, cost: &Cost) -> Duration {
        let left = deadline.millis_since(self.seams.clock.now());
        Duration::from_millis(u64::try_from(left).unwrap_or(0))
            .saturating_sub(INVOKE_MARGIN / 2 + cost.spare())
    }

    /// Begins, and again where the answer of the store was lost: the same id holds once.
    async fn begin(&self, begin: Begin) -> Result<Begun, StoreError> {
        let Seams { store, clock, .. } = &self.seams;
        for pause in STORE_PAUSES {
            match store.begin(begin.clone(), clock.now()).await {
                Err(StoreError::Unavailable(_)) => tokio::time::sleep(pause).await,
                begun => return begun,
            }
        }
        store.begin(begin, clock.now()).await
    }

    /// Calls the provider, and looks at what it answers.
    async fn work(&self, plan: &Plan, timeout: Duration) -> Result<Done, Failure> {
        if timeout.is_zero() {
            return Err(Failure::Broken);
        }
        let clock = &self.seams.clock;
        let started = clock.now();
        let (result, attested) = match &plan.route {
            None => (self.work_of_provider(plan, timeout).await?, None),
            Some(route) => {
                let working = self.work_of_peer(plan, route, timeout);
                let (result, attested) = self.unless_cancelled(&plan.track, working).await??;
                (result, Some(attested))
            }
        };
        let latency_ms = u64::try_from(clock.now().millis_since(started)).unwrap_or(0);
        let bytes = result.to_string().len();
        if bytes > RESULT_BYTES_MAX {
            return Err(Failure::Provider(ProviderError::Invalid(format!(
                "it has {bytes} bytes"
            ))));
        }
        // What the buyer pays another hub for is not kept from it.
        let is_sold_here = plan.route.as_ref().is_none_or(Route::sells);
        if let Some(schema) = plan.offer.output_schema.as_ref().filter(|_| is_sold_here) {
            match input::checked(schema, &result, bytes).await {
                Checked::Fits => {}
                Checked::Faulty(faults) => {
                    let fault = faults.into_iter().next();
                    let words = fault.map(|fault| format!("{} {}", fault.path, fault.message));
                    return Err(Failure::Output(words.unwrap_or_default()));
                }
                Checked::TooLarge => return Err(Failure::Output("it is too large to be checked".to_owned())),
                Checked::NoSchema => return Err(Failure::Output("its schema is none".to_owned())),
            }
        }
        let remaining = self.remaining(&plan.cost).await;
        Ok(Done {
            result,
            latency_ms,
            remaining,
            attested,
        })
    }

    async fn work_of_provider(&self, plan: &Plan, timeout: Duration) -> Result<serde_json::Value, Failure> {
        let call = plan.provider_call(timeout);
        let calling = tokio::time::timeout(timeout, self.seams.providers.call(&plan.offer, call));
        let answered = self.unless_cancelled(&plan.track, calling).await?;
        answered
            .unwrap_or(Err(ProviderError::TimedOut))
            .map_err(Failure::Provider)
    }

    /// What is left in the purse; the price is held already. Left out where it cannot be said.
    async fn remaining(&self, cost: &Cost) -> Option<Usd> {
        let Cost::Charge(charge) = cost else {
            return None;
        };
        let store = &self.seams.store;
        match &charge.purse {
            Purse::Account { account, .. } => Some(store.account(account).await.ok()??.balance),
            Purse::Channel(channel) => Some(store.channel(channel).await.ok()??.balance()),
        }
    }

    /// Pays, keeps the receipt and the answer. Where that cannot be written the caller has its result all the same.
    async fn settle(&self, plan: &Plan, done: Done) -> Invoked {
        if let Some(paying) = plan.cost.payment() {
            return self.settle_payment(plan, paying, &done).await;
        }
        let amount = plan.paid(&done);
        let own = if plan.has_own_receipt(amount) {
            match self.receipt(plan, amount, &done) {
                Ok(receipt) => Some(receipt),
                Err(refusal) => {
                    tracing::error!(invocation = %plan.id, %refusal, "a receipt cannot be signed");
                    return self.release(plan, &Failure::Broken).await;
                }
            }
        } else {
            None
        };
        let (kept, signed) = own.unzip();
        let answer = succeeded(plan, &done, signed, true);
        let finish = Finish {
            outcome: Outcome::Captured {
                amount,
                fee: plan.kept_of(amount, self.config.fee_bps),
            },
            answer: as_kept(&answer, plan.worth(amount)),
            receipt: kept,
        };
        let answer = if self.finish(plan.id, finish).await {
            answer
        } else if let Some(cancelled) = self.ended_otherwise(plan).await {
            return cancelled;
        } else {
            succeeded(plan, &done, None, false)
        };
        Invoked {
            routed: plan.routed(&done),
            headers: done.attested.map(|attested| attested.headers).unwrap_or_default(),
            ..answer.into()
        }
    }

    /// Gives back what is held.
    pub(super) async fn release(&self, plan: &Plan, failure: &Failure) -> Invoked {
        tracing::debug!(invocation = %plan.id, ?failure, "an invocation has no result");
        let answer = failed(&plan.offer, failure);
        // Whoever pays another hub, once it has said what it wants, may do so under the same key.
        let (outcome, headers) = match failure {
            Failure::Unpaid(terms) => (Outcome::Withdrawn, terms.headers.clone()),
            _ => (Outcome::Released, Vec::new()),
        };
        let finish = Finish {
            outcome,
            answer: answer.clone(),
            receipt: None,
        };
        // Where it cannot be written, what is held goes back when its time is over.
        if !self.finish(plan.id, finish).await
            && let Some(otherwise) = self.ended_otherwise(plan).await
        {
            return otherwise;
        }
        Invoked {
            headers,
            routed: plan.not_routed(failure),
            ..answer.into()
        }
    }

    /// Ends an invocation. `false`: it is not known to have ended like this.
    pub(super) async fn finish(&self, id: Uuid, finish: Finish) -> bool {
        let Seams { store, clock, .. } = &self.seams;
        let mut pauses = STORE_PAUSES.into_iter();
        let mut is_first = true;
        loop {
            match store.finish(id, finish.clone(), clock.now()).await {
                Ok(Finished::Done) => return true,
                // An attempt before may have done it, and its answer was lost.
                Ok(Finished::NotStarted) => return !is_first && self.has_finished(id, &finish).await,
                Err(error) => {
                    tracing::warn!(invocation = %id, %error, "the end of an invocation cannot be written");
                    is_first = false;
                }
            }
            let Some(pause) = pauses.next() else {
                return false;
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Whether it ended like this, as far as can be seen of it: somebody else may have ended it meanwhile.
    async fn has_finished(&self, id: Uuid, finish: &Finish) -> bool {
        let Ok(Some(found)) = self.seams.store.invocation(id).await else {
            return false;
        };
        let is_paid_so = match finish.outcome {
            Outcome::Captured { amount, .. } => found.charged == amount,
            _ => found.charged == Usd::ZERO,
        };
        let is_answered_so = found.answer.is_none_or(|answer| answer == finish.answer);
        found.status == InvocationStatus::Finished && is_paid_so && is_answered_so
    }

    fn unpayable(&self, plan: &Plan, why: Unpayable) -> MarketRefusal {
        let price = match &plan.cost {
            Cost::Charge(charge) => charge.amount,
            _ => plan.offer.price,
        };
        let failed = |detail: String| self.payment(MarketCode::PaymentFailed, detail, price);
        match why {
            Unpayable::Insufficient(balance) => {
                failed(format!("The call costs {price} USD, and {balance} USD are left."))
                    .with("balance", balance.to_f64())
            }
            Unpayable::OverBudget(left) => failed(format!(
                "The call costs {price} USD, and the budget leaves {left} USD."
            ))
            .with("budget_left", left.to_f64()),
            Unpayable::PaymentUsed => self.payment_used(&plan.offer),
            Unpayable::NoPurse => failed("The purse has ended, or was closed.".to_owned()),
            Unpayable::TrialsUsed(used) => {
                let detail = format!("Your {used} free calls are used; the call costs {price} USD.");
                let sandbox = serde_json::json!({
                    "max_trials": self.config.trials_per_visitor,
                    "used": used,
                    "remaining": 0,
                });
                let refusal = self
                    .payment(MarketCode::TrialsUsed, detail, price)
                    .with("sandbox", sandbox);
                match &plan.offer.free_tier {
                    // A smaller number is taken for nothing all the same.
                    Some(tier) => refusal.with("free_tier", tier.told(&plan.input)),
                    None => refusal,
                }
            }
        }
    }
}

/// The end of a call that was set going. It does not panic (see [`Market::carry_out`]), and nobody aborts it: then the process
/// is ending, and its hold goes back later.
pub(super) fn joined(made: Result<Result<Invoked, MarketError>, JoinError>) -> Result<Invoked, MarketError> {
    made.unwrap_or_else(|error| {
        tracing::error!(%error, "an invocation broke off");
        Err(MarketRefusal::new(MarketCode::Unavailable, "The hub is stopping. Try again.").into())
    })
}

/// What a call is answered that was made before.
pub(super) fn repetition(begun: Begun) -> Result<Invoked, MarketError> {
    let refuse = |code, detail: &'static str| MarketRefusal::new(code, detail);
    match begun {
        Begun::Again(Invocation {
            answer: Some(answer), ..
        }) => Ok(Invoked {
            replayed: true,
            ..answer.into()
        }),
        Begun::OtherBody => {
            let detail = "This Idempotency-Key came with another request: take a new one for a new request.";
            Err(refuse(MarketCode::IdempotencyConflict, detail).into())
        }
        Begun::Running(_) => {
            let detail = "The same request is under way. Ask again for its answer.";
            Err(refuse(MarketCode::IdempotencyInProgress, detail)
                .retry_after(1)
                .into())
        }
        // A store that says this of a repetition does not keep its contract.
        Begun::Again(_) | Begun::Started | Begun::Unpayable(_) => {
            Err(StoreError::Corrupt("a repetition has no answer".into()).into())
        }
    }
}

impl From<Answer> for Invoked {
    fn from(answer: Answer) -> Self {
        Self {
            status: answer.status,
            body: answer.body,
            replayed: false,
            headers: Vec::new(),
            routed: None,
        }
    }
}
