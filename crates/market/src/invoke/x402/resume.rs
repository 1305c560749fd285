//! Having payments made, now and after a crash, and ending their calls.
//!
//! A facilitator that says nothing may have made the payment all the same, so that it is asked again. On the chain a payment is
//! made once, whoever asks how often. What is refused after an attempt that nobody saw the end of may be refused because that
//! attempt made it: then it is unclear, and the operator is told where to look.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use aip_protocol::market::x402::{self as wire, Payment, RESPONSE_HEADER, Requirements};
use aip_protocol::market::{Members, Value};
use futures_util::future::join_all;
use uuid::Uuid;

use super::recall;
use crate::facilitator::Settled;
use crate::invoke::Invoked;
use crate::limits::{SETTLE_PAUSES, SETTLING_AT_ONCE, SETTLING_ROUNDS, UNSETTLED_ASKED};
use crate::market::Market;
use crate::progress::Track;
use crate::store::{Answer, Finish, Outcome, Planned, StoreError, TakeOver, Unsettled};

impl Market {
    /// Has a payment made, in a few attempts. `None`: nobody says what became of it.
    pub(super) async fn have_made(
        &self,
        payment: &Payment,
        asked: &Requirements,
        is_first: bool,
    ) -> Option<Settled> {
        let x402 = self.seams.x402.as_ref()?;
        let mut is_first = is_first;
        for pause in SETTLE_PAUSES {
            tokio::time::sleep(pause).await;
            let asking = x402.facilitator.settle(payment, asked);
            match tokio::time::timeout(x402.terms.timeout, asking).await {
                Ok(Ok(Settled::Refused(reason))) if !is_first => return Some(Settled::Unclear(reason)),
                Ok(Ok(settled)) => return Some(settled),
                silent => {
                    tracing::warn!(?silent, "the facilitator does not say what became of a payment");
                }
            }
            is_first = false;
        }
        None
    }

    /// Ends a call whose work is done, by what became of its payment.
    pub(super) async fn end_paid(
        &self,
        id: Uuid,
        planned: Planned,
        (payment, asked): (&Payment, &Requirements),
        settled: Option<Settled>,
    ) -> Invoked {
        let payer = payment.transfer.from;
        self.payments.count(settled.as_ref());
        match settled {
            Some(Settled::Done(transaction)) => {
                let response = wire::settled(asked, payer, &transaction);
                let headers = vec![(RESPONSE_HEADER, wire::to_header(&response))];
                let answer = with_payment(&planned.answer, &Value::from(response), true);
                let finish = Finish {
                    outcome: Outcome::Paid { transaction },
                    answer: answer.clone(),
                    receipt: Some(planned.receipt),
                };
                let is_kept = self.finish(id, finish).await;
                let answer = if is_kept {
                    answer
                } else {
                    unsettled(&answer, "settling")
                };
                Invoked {
                    headers,
                    ..answer.into()
                }
            }
            Some(Settled::Unclear(reason) | Settled::Refused(reason)) => {
                tracing::error!(
                    invocation = %id, network = asked.network(), %payer, nonce = %payment.transfer.nonce, reason,
                    "Nobody says whether a payment was made: the call has its result. Look for the nonce on the chain"
                );
                let answer = unsettled(&planned.answer, "unclear");
                let finish = Finish {
                    outcome: Outcome::Unclear,
                    answer: answer.clone(),
                    receipt: None,
                };
                self.finish(id, finish).await;
                answer.into()
            }
            None => unsettled(&planned.answer, "settling").into(),
        }
    }

    /// Takes up what a process left whose payments were being made: of `holder`, or what is past its deadline. How many ended.
    pub async fn resume_payments(&self, holder: Option<Uuid>) -> Result<u64, StoreError> {
        let Some(x402) = self.seams.x402.clone() else {
            return Ok(0);
        };
        let mut ended = 0;
        for _round in 0..SETTLING_ROUNDS {
            let now = self.seams.clock.now();
            let take = TakeOver {
                holder,
                by: self.config.holder,
                until: now + x402.spare(),
            };
            let taken = self.seams.store.unsettled(take, SETTLING_AT_ONCE, now).await?;
            let (count, asking) = (taken.len(), taken.into_iter().map(|one| self.resume(one)));
            let done = join_all(asking).await;
            ended += done.into_iter().filter(|is_ended| *is_ended).count() as u64;
            if count < SETTLING_AT_ONCE as usize {
                break;
            }
        }
        Ok(ended)
    }

    /// Has one payment made; whether its call has ended. One that this process is still making ends by itself: asked beside it,
    /// neither would know whether a refusal is the other one's doing.
    async fn resume(&self, one: Unsettled) -> bool {
        let is_live = |track: Arc<Track>| track.ended().is_none();
        if self.board.find(one.id).is_some_and(is_live) {
            return false;
        }
        let Some((payment, asked)) = recall(&one.payment) else {
            tracing::error!(invocation = %one.id, "a payment that is being made cannot be read");
            return false;
        };
        let mut settled = self.have_made(&payment, &asked, false).await;
        if settled.is_none() && self.seams.clock.now() > one.since + UNSETTLED_ASKED {
            settled = Some(Settled::Unclear("the facilitator never said".to_owned()));
        }
        let is_told = settled.is_some();
        self.end_paid(one.id, one.planned, (&payment, &asked), settled)
            .await;
        is_told
    }

    /// Says in the log where the facilitator does not make payments of this network, or is not there.
    pub(crate) fn look_for_facilitator(self: &Arc<Self>) {
        let Some(x402) = self.seams.x402.clone() else {
            return;
        };
        self.tasks.spawn(async move {
            let network = x402.terms.network();
            match x402.facilitator.supports(&network).await {
                Ok(true) => tracing::info!(network, "payments on a chain are taken"),
                Ok(false) => tracing::error!(network, "the facilitator makes no payments of this network"),
                Err(error) => tracing::warn!(network, %error, "the facilitator is not there"),
            }
        });
    }

    /// [`Self::resume_payments`] beside everything else; one at a time in this process.
    pub(crate) fn resume_beside(self: &Arc<Self>, holder: Option<Uuid>) {
        if self.seams.x402.is_none() || self.resuming.swap(true, Ordering::AcqRel) {
            return;
        }
        let market = Arc::clone(self);
        self.tasks.spawn(async move {
            match market.resume_payments(holder).await {
                Ok(0) => {}
                Ok(count) => {
                    tracing::warn!(count, "{count} payments that were being made have come to an end");
                }
                Err(error) => tracing::warn!(%error, "payments that are being made were not looked at"),
            }
            market.resuming.store(false, Ordering::Release);
        });
    }
}

/// An answer that says what became of its payment; whatever else it says stays as it is spelled.
fn with_payment(answer: &Answer, payment: &Value, is_settled: bool) -> Answer {
    let Ok(Value::Object(mut body)) = Value::parse(&answer.body) else {
        return answer.clone();
    };
    body.insert("payment".to_owned(), payment.clone());
    if !is_settled {
        body.insert("settled".to_owned(), false.into());
        body.insert("receipt".to_owned(), Value::Null);
    }
    Answer {
        status: answer.status,
        body: Value::from(body).to_bytes().into(),
    }
}

/// An answer whose payment nobody has seen made: without a receipt.
fn unsettled(answer: &Answer, status: &'static str) -> Answer {
    let payment = Members::from([("status".to_owned(), Value::from(status))]);
    with_payment(answer, &payment.into(), false)
}
