//! What a call is answered, and its receipt.

use aip_protocol::error::Refusal;
use aip_protocol::market::receipt::ReceiptDraft;
use aip_protocol::market::{Members, Value};
use bytes::Bytes;

use super::price::Cost;
use super::routed::{self, Attested};
use super::run::Plan;
use crate::limits::FREE_ANSWER_BYTES_MAX;
use crate::market::Market;
use crate::money::Usd;
use crate::offer::Offer;
use crate::provider::ProviderError;
use crate::refusal::{MarketCode, MarketRefusal, PROTOCOL_VERSION};
use crate::routing::Terms;
use crate::store::{Answer, KeptReceipt};
use crate::text::told;

/// Work that was done.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) result: serde_json::Value,
    pub(super) latency_ms: u64,
    /// What is left in the purse once it is paid.
    pub(super) remaining: Option<Usd>,
    /// What another hub has to show for it.
    pub(super) attested: Option<Attested>,
}

/// Why there is no result that can be sold.
#[derive(Debug)]
pub(super) enum Failure {
    /// The provider has none.
    Provider(ProviderError),
    /// It is not what the listing promises.
    Output(String),
    /// Another hub wants to be paid by the buyer, on these terms.
    Unpaid(Terms),
    /// Another hub wants to be paid by this one, which it is not.
    HubUnpaid,
    /// Our own side of the call broke.
    Broken,
    /// It is not wanted any more.
    Cancelled,
}

impl Market {
    /// The signed receipt of a call.
    pub(super) fn receipt(
        &self,
        plan: &Plan,
        paid: Usd,
        done: &Done,
    ) -> Result<(KeptReceipt, Value), Refusal> {
        let Plan { offer, cost, .. } = plan;
        let nonce = self.draw_nonce();
        let draft = ReceiptDraft {
            nonce: &nonce,
            product_id: &offer.product_id,
            capability_id: &offer.capability_id,
            price_micros: paid.micros(),
            list_price_micros: offer.price.micros(),
            timestamp: self.seams.clock.now(),
            success: true,
            latency_ms: done.latency_ms,
            sandbox: matches!(cost, Cost::Trial(_)),
        };
        let signed = draft.sign(&self.seams.key)?;
        let receipt = to_bytes(&signed);
        Ok((KeptReceipt { nonce, receipt }, signed))
    }
}

/// What is kept of an answer, for who asks the same again: of a call that cost nothing not more than
/// [`FREE_ANSWER_BYTES_MAX`], since anybody can make any number of them.
pub(super) fn as_kept(answer: &Answer, paid: Usd) -> Answer {
    if paid > Usd::ZERO || answer.body.len() <= FREE_ANSWER_BYTES_MAX {
        return answer.clone();
    }
    let detail =
        "This was answered once, with more than is kept of a call that cost nothing. Another key calls anew.";
    let refusal = MarketRefusal::new(MarketCode::IdempotencyForgotten, detail);
    Answer {
        status: refusal.code.status(),
        body: Bytes::from(refusal.body().to_string()),
    }
}

/// The answer with a result. Without a receipt it says that it is not settled, and nothing of what is left.
pub(super) fn succeeded(plan: &Plan, done: &Done, receipt: Option<Value>, is_settled: bool) -> Answer {
    let Plan { id, offer, cost, .. } = plan;
    let mut body = Members::new();
    let mut put = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    put("success", true.into());
    put("invocation_id", id.to_string().into());
    put("product_id", offer.product_id.as_str().into());
    put("capability_id", offer.capability_id.as_str().into());
    put("result", done.result.clone().into());
    if !is_settled {
        put("settled", false.into());
    }
    let paid = plan.paid(done);
    // What was held and is not taken is there again.
    let back = cost.amount().saturating_sub(paid);
    let remaining = done.remaining.and_then(|remaining| remaining.checked_add(back));
    if let Some(remaining) = remaining.filter(|_| is_settled) {
        put("remaining_balance", usd(remaining));
    }
    put("receipt", receipt.clone().into());
    put("price_usd", usd(paid));
    put("list_price_usd", usd(offer.price));
    put("latency_ms", done.latency_ms.into());
    if let Cost::Trial(trial) = cost {
        put("sandbox", true.into());
        put("max_trials", trial.max.into());
    }
    put("safety_checked", false.into());
    put("protocol_version", PROTOCOL_VERSION.into());
    routed::members(plan, done, &mut body, receipt);
    Answer {
        status: 200,
        body: to_bytes(&body.into()),
    }
}

/// The answer without one: nothing is charged.
pub(super) fn failed(offer: &Offer, failure: &Failure) -> Answer {
    if matches!(failure, Failure::Cancelled) {
        return cancelled(&offer.product_id, &offer.capability_id);
    }
    let words = |text: &str| told(text, crate::limits::TOLD_BYTES_MAX);
    let (reason, detail) = match failure {
        Failure::Provider(error) => {
            let reason = match error {
                ProviderError::Unreachable(_) => "unreachable",
                ProviderError::TimedOut => "timed_out",
                ProviderError::Invalid(_) => "answer_invalid",
                ProviderError::Refused(_) => "refused",
                ProviderError::Unsigned(_) => "answer_unsigned",
            };
            (reason, words(&error.to_string()))
        }
        Failure::Output(fault) => (
            "output_invalid",
            words(&format!("the result is not what the listing promises: {fault}")),
        ),
        Failure::Unpaid(terms) => {
            return Answer {
                status: MarketCode::PaymentRequired.status(),
                body: terms.body.clone(),
            };
        }
        Failure::HubUnpaid => return refused(&upstream_unpaid()),
        Failure::Broken | Failure::Cancelled => {
            ("unreachable", "the call of the provider broke off".to_owned())
        }
    };
    let refusal = MarketRefusal::new(
        MarketCode::ProviderFailed,
        format!("Nothing was charged: {detail}."),
    )
    .with("reason", reason)
    .with("product_id", offer.product_id.as_str())
    .with("capability_id", offer.capability_id.as_str());
    refused(&refusal)
}

fn upstream_unpaid() -> MarketRefusal {
    let detail =
        "Nothing was charged: this hub could not pay the hub that does the work. Its operator has to look.";
    MarketRefusal::new(MarketCode::UpstreamUnpaid, detail)
}

fn refused(refusal: &MarketRefusal) -> Answer {
    Answer {
        status: refusal.code.status(),
        body: refusal.body().to_string().into(),
    }
}

pub(super) fn usd(amount: Usd) -> Value {
    Value::usd(amount.micros())
}

/// The answer of a call that its buyer cancelled.
pub(super) fn cancelled(product_id: &str, capability_id: &str) -> Answer {
    let detail = "The call was cancelled; nothing was charged.";
    let refusal = MarketRefusal::new(MarketCode::JobCancelled, detail)
        .with("product_id", product_id)
        .with("capability_id", capability_id);
    Answer {
        status: refusal.code.status(),
        body: refusal.body().to_string().into(),
    }
}

fn to_bytes(value: &Value) -> Bytes {
    // Writing it into memory cannot fail.
    serde_json::to_vec(value).unwrap_or_default().into()
}
