//! Calls that are paid over x402: what is shown (step 7), what it has to pay (10), whether it could be made (before the work),
//! and making it (after the work).

use std::sync::Arc;
use std::time::Duration;

use aip_protocol::market::evm::Address;
use aip_protocol::market::x402::{
    self as wire, Fault, Payment, REQUIRED_HEADER, RESPONSE_HEADER, Requirements, Resource, SIGNATURE_HEADER,
};
use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::answer::{Done, Failure, succeeded};
use super::price::Cost;
use super::run::Plan;
use super::{InvokeHeaders, Invoked};
use crate::facilitator::{Settled, Verified, X402};
use crate::limits::{PAYMENT_AHEAD_MAX, TOLD_BYTES_MAX};
use crate::market::Market;
use crate::money::Usd;
use crate::offer::{Offer, Source};
use crate::refusal::{MarketCode, MarketError, MarketRefusal};
use crate::store::{Answer, Finish, Finished, Outcome, PaymentClaim, Planned};
use crate::text::told;

mod resume;

/// A payment that pays a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Paying {
    payment: Payment,
    asked: Requirements,
    pub(super) amount: Usd,
    /// What the payment takes beside the work.
    pub(super) spare: Duration,
}

impl Paying {
    /// As the store keeps it.
    pub(super) fn claim(&self) -> PaymentClaim {
        let transfer = &self.payment.transfer;
        let mut hash = Sha256::new();
        for part in [
            self.asked.network(),
            self.asked.asset.lower(),
            transfer.from.lower(),
            transfer.nonce.to_string(),
        ] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        PaymentClaim {
            key: hash.finalize().into(),
            amount: self.amount,
            payment: keep(&self.payment, &self.asked),
        }
    }

    fn payer(&self) -> Address {
        self.payment.transfer.from
    }
}

/// Enough to have it made later.
fn keep(payment: &Payment, asked: &Requirements) -> Bytes {
    let kept = json!({ "paymentPayload": payment.json, "paymentRequirements": asked.to_json() });
    kept.to_string().into()
}

/// What was kept; `None`: it is damaged.
fn recall(kept: &[u8]) -> Option<(Payment, Requirements)> {
    let kept: Value = serde_json::from_slice(kept).ok()?;
    let payment = Payment::from_json(kept.get("paymentPayload")?.clone()).ok()?;
    let asked = Requirements::from_json(kept.get("paymentRequirements")?).ok()?;
    Some((payment, asked))
}

impl Market {
    /// The payment that is shown, if its payer signed it. That it pays this call is looked at later.
    pub(super) fn payment_shown(&self, headers: &InvokeHeaders) -> Result<Option<Payment>, MarketRefusal> {
        if !headers.x402 {
            return Ok(None);
        }
        let refuse = |detail: &'static str| MarketRefusal::new(MarketCode::PaymentInvalid, detail);
        if self.seams.x402.is_none() {
            return Err(refuse(
                "This hub takes no payments on chains: it takes X-API-Key and X-Payment-Channel.",
            ));
        }
        let shown = headers.payment.iter().find(|(name, _)| *name == SIGNATURE_HEADER);
        let (_, header) = shown
            .ok_or_else(|| refuse("This hub speaks x402 version 2: the payment is in PAYMENT-SIGNATURE."))?;
        let payment = Payment::from_header(header);
        let signed = payment.and_then(|payment| payment.check_signature().map(|()| payment));
        signed.map(Some).map_err(|fault| {
            refuse("PAYMENT-SIGNATURE holds no payment: `reason` says what is wrong with it.")
                .with("reason", fault.as_str())
        })
    }

    /// What the call costs who shows this payment.
    pub(super) fn paid_with(&self, offer: &Offer, payment: Payment) -> Result<Cost, MarketRefusal> {
        let takes = offer.timeout.unwrap_or(self.config.provider_timeout);
        let asked = |x402: &Arc<X402>| Some((x402.asked(offer, takes)?, x402.spare()));
        let (asked, spare) = self.seams.x402.as_ref().and_then(asked).ok_or_else(|| {
            let detail = "The provider of this capability names no address on a chain: pay in another way.";
            self.payment(MarketCode::ListingNotSellable, detail, offer.price)
        })?;
        let now = self.now_secs();
        let checked = payment.check(&asked, now, now + (takes + spare).as_secs());
        let is_bounded = payment.transfer.valid_before <= (now + PAYMENT_AHEAD_MAX.as_secs()).into();
        checked
            .and(is_bounded.then_some(()).ok_or(Fault::ValidBefore))
            .map_err(|fault| self.not_paid(offer.price, fault.as_str()))?;
        Ok(Cost::Payment(Box::new(Paying {
            payment,
            asked,
            amount: offer.price,
            spare,
        })))
    }

    /// The payment does not pay the call.
    fn not_paid(&self, price: Usd, reason: &str) -> MarketRefusal {
        let detail = "The payment does not pay this call: `reason` says why, `accepts` what would.";
        self.payment(MarketCode::PaymentInvalid, detail, price)
            .with("reason", told(reason, TOLD_BYTES_MAX))
    }

    /// The payment pays another call.
    pub(super) fn payment_used(&self, offer: &Offer) -> MarketRefusal {
        let detail = "This payment pays another call, or did: sign a new one. An answer that was lost is asked for with \
                      the Idempotency-Key of its call.";
        self.payment(MarketCode::PaymentInvalid, detail, offer.price)
            .with("reason", "payment_used")
    }

    /// Adds to a 402 how the call is paid over x402, where that can be done: in the body as `accepts`, and in the header
    /// PAYMENT-REQUIRED.
    pub(super) fn with_terms(&self, mut refusal: MarketRefusal, offer: &Offer) -> MarketRefusal {
        let Some(x402) = &self.seams.x402 else {
            return refusal;
        };
        let is_asked = refusal.code.status() == 402 && offer.source == Source::Local;
        let takes = offer.timeout.unwrap_or(self.config.provider_timeout);
        let Some(asked) = x402.asked(offer, takes).filter(|_| is_asked) else {
            return refusal;
        };
        let url = format!("{}/ai-market/v2/invoke", self.config.base_url);
        let resource = Resource {
            url: &url,
            description: &offer.name,
        };
        let terms = wire::payment_required(&refusal.detail, &resource, std::slice::from_ref(&asked));
        refusal.headers.push((REQUIRED_HEADER, wire::to_header(&terms)));
        let rail = json!({
            "rail": "seller_direct",
            "header": "PAYMENT-SIGNATURE",
            "x402_version": wire::VERSION,
            "network": asked.network(),
            "asset": asked.asset.to_string(),
        });
        for (name, value) in &mut refusal.members {
            if let ("payment_ways", Some(ways)) = (*name, value.as_array_mut()) {
                ways.push(rail.clone());
            }
        }
        refusal
            .with("x402Version", wire::VERSION)
            .with("resource", terms.get("resource").cloned().unwrap_or_default())
            .with("accepts", json!([asked.to_json()]))
    }

    /// Asks whether the payment of a call that was begun could be made; otherwise the call is as if it had never begun.
    pub(super) async fn verify_payment(&self, plan: &Plan, paying: &Paying) -> Result<(), MarketError> {
        let Some(x402) = &self.seams.x402 else {
            return Ok(());
        };
        let asking = x402.facilitator.verify(&paying.payment, &paying.asked);
        let verified = tokio::time::timeout(x402.terms.timeout, asking).await;
        let refusal = match verified {
            Ok(Ok(Verified::Valid)) => return Ok(()),
            Ok(Ok(Verified::Invalid(reason))) => {
                self.with_terms(self.not_paid(paying.amount, &reason), &plan.offer)
            }
            Ok(Err(_)) | Err(_) => {
                tracing::warn!(invocation = %plan.id, ?verified, "the facilitator does not say whether a payment is good");
                let detail = "Nobody says whether the payment is good: nothing was paid. Try again.";
                MarketRefusal::new(MarketCode::Unavailable, detail).retry_after(1)
            }
        };
        self.withdraw(plan, &refusal).await;
        Err(refusal.into())
    }

    /// Ends a call as if it had never begun.
    async fn withdraw(&self, plan: &Plan, refusal: &MarketRefusal) {
        let finish = Finish {
            outcome: Outcome::Withdrawn,
            answer: refused(refusal),
            receipt: None,
        };
        // Where it cannot be written, the claim goes back when its time is over.
        self.finish(plan.id, finish).await;
    }

    /// The work is done: has the payment made, and ends the call.
    pub(super) async fn settle_payment(&self, plan: &Plan, paying: &Paying, done: &Done) -> Invoked {
        let (receipt, signed) = match self.receipt(plan, paying.amount, done) {
            Ok(receipt) => receipt,
            Err(refusal) => {
                tracing::error!(invocation = %plan.id, %refusal, "a receipt cannot be signed");
                return self.release(plan, &Failure::Broken).await;
            }
        };
        let answer = succeeded(plan, done, Some(signed), true);
        let planned = Planned { answer, receipt };
        // Until then no other process takes it up, and every attempt is this one's.
        let until = self.seams.clock.now() + paying.spare;
        if !self.begin_settling(plan, &planned).await {
            return self.release(plan, &Failure::Broken).await;
        }
        match self.have_made(&paying.payment, &paying.asked, true).await {
            Some(Settled::Refused(reason)) if self.seams.clock.now() <= until => {
                self.not_made(plan, paying, reason).await
            }
            settled => {
                let (payment, asked) = (&paying.payment, &paying.asked);
                self.end_paid(plan.id, planned, (payment, asked), settled).await
            }
        }
    }

    /// The payment was refused after the work, at the first attempt, so that nobody here made it: there is no result.
    async fn not_made(&self, plan: &Plan, paying: &Paying, reason: String) -> Invoked {
        tracing::info!(
            invocation = %plan.id, network = paying.asked.network(), payer = %paying.payer(),
            nonce = %paying.payment.transfer.nonce, reason, "a payment was refused after the work"
        );
        let detail = "The payment was not made, and the call is not paid: `reason` says why.";
        let refusal = self
            .payment(MarketCode::PaymentFailed, detail, paying.amount)
            .with("reason", told(&reason, TOLD_BYTES_MAX));
        let mut refusal = self.with_terms(refusal, &plan.offer);
        let response = wire::not_settled(&paying.asked, paying.payer(), &reason);
        refusal
            .headers
            .push((RESPONSE_HEADER, wire::to_header(&response)));
        self.payments.count(Some(&Settled::Refused(reason)));
        self.withdraw(plan, &refusal).await;
        Invoked {
            headers: refusal.headers.clone(),
            ..refused(&refusal).into()
        }
    }

    /// Says in the store that the payment is being made. `false`: it is not said, and nothing may be made.
    async fn begin_settling(&self, plan: &Plan, planned: &Planned) -> bool {
        let (store, clock) = (&self.seams.store, &self.seams.clock);
        for pause in crate::limits::STORE_PAUSES {
            match store.settle(plan.id, planned.clone(), clock.now()).await {
                Ok(settling) => return settling == Finished::Done,
                Err(error) => {
                    tracing::warn!(invocation = %plan.id, %error, "a payment cannot be begun");
                    tokio::time::sleep(pause).await;
                }
            }
        }
        false
    }

    pub(super) fn now_secs(&self) -> u64 {
        u64::try_from(self.seams.clock.now().unix_millis() / 1_000).unwrap_or(0)
    }
}

/// A refusal, as it would be answered.
fn refused(refusal: &MarketRefusal) -> Answer {
    Answer {
        status: refusal.code.status(),
        body: refusal.body().to_string().into(),
    }
}
