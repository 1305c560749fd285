//! The order of an invocation: what is checked, paid for, called and answered, and when.
//!
//! Nothing is written before everything that can be known beforehand is known: who calls, what it costs, and that the input is
//! one that the provider takes. Then one step holds the charge and notes the invocation, the provider works, and one step pays,
//! keeps the receipt and keeps the answer. What ends between the two costs nobody anything: the charge goes back.

use std::sync::Arc;

use bytes::Bytes;

use self::request::Request;
pub use self::routed::Routed;
use self::run::{Plan, repetition};
use crate::market::Market;
use crate::offer::Offer;
use crate::progress::Track;
use crate::refusal::MarketError;
use crate::store::Begun;

mod answer;
mod input;
mod jobs;
mod payer;
mod price;
mod request;
mod routed;
mod run;
#[cfg(test)]
mod tests;
mod x402;

pub use jobs::{Followed, Job, JobEvent, JobFeed, JobHandle, JobReport, JobShown, JobStage, StreamPlace};

/// `POST /ai-market/v2/invoke`, as it came.
#[derive(Debug, Clone)]
pub struct InvokeCall {
    /// What its headers say.
    pub headers: InvokeHeaders,
    /// Its body, of at most what the door takes.
    pub body: Bytes,
    /// The client's network, as the rates count it: tells callers apart who show nothing.
    pub network: String,
}

/// The headers of an invocation that are read. Absent, or exactly as they came; a header that came twice is refused at the door.
#[derive(Clone, Default)]
pub struct InvokeHeaders {
    /// `X-API-Key`.
    pub api_key: Option<String>,
    /// `X-Payment-Channel`.
    pub channel: Option<String>,
    /// `X-Payment-Channel-Secret`.
    pub channel_secret: Option<String>,
    /// `X-AIMarket-Sandbox-Visitor`.
    pub visitor: Option<String>,
    /// `Idempotency-Key`.
    pub idempotency_key: Option<String>,
    /// Whether there is `X-Payment`, `PAYMENT` or `PAYMENT-SIGNATURE`.
    pub x402: bool,
    /// Headers of a payment over x402 as they came, for a hub that is paid directly; names in lower case.
    pub payment: Vec<(&'static str, String)>,
    /// Whether there is `X-AIMarket-Mandate`.
    pub mandate: bool,
    /// Whether there is `X-AIMarket-Job`.
    pub job: bool,
}

/// Says what there is, and no secret.
impl std::fmt::Debug for InvokeHeaders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InvokeHeaders")
            .field("api_key", &self.api_key.is_some())
            .field("channel", &self.channel)
            .field("channel_secret", &self.channel_secret.is_some())
            .finish_non_exhaustive()
    }
}

/// What came of an invocation, for the door and for its metrics.
#[derive(Debug)]
pub struct InvokeReport {
    /// What was invoked, where it is known: metrics name nothing else.
    pub offer: Option<Arc<Offer>>,
    /// The answer.
    pub answer: Result<Invoked, MarketError>,
}

/// An invocation that was begun, and has ended: with a result (200), or without one (502), where nothing is charged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoked {
    /// The HTTP status.
    pub status: u16,
    /// The JSON body.
    pub body: Bytes,
    /// Whether this is what an earlier request was answered: the header `Idempotency-Replayed: true`.
    pub replayed: bool,
    /// Further headers of the answer, about payment; a repetition has none.
    pub headers: Vec<(&'static str, String)>,
    /// What another hub did of it; `None`: it was not asked, or not now.
    pub routed: Option<Routed>,
}

/// What there is to do about a call.
#[derive(Debug)]
enum Intake {
    /// It is to be made.
    Call(Box<Plan>),
    /// It was made before, or is being made.
    Repetition(Begun),
}

impl Market {
    /// Invokes a capability. What was begun goes on to its end also if the caller goes away: it is paid for then, and asked again
    /// with the same `Idempotency-Key` it is answered.
    pub async fn invoke(self: &Arc<Self>, call: InvokeCall) -> InvokeReport {
        let mut offer = None;
        let answer = self.ordered(call, &mut offer).await;
        if let Err(MarketError::Store(error)) = &answer {
            tracing::warn!(%error, "an invocation fails");
        }
        InvokeReport { offer, answer }
    }

    async fn ordered(
        self: &Arc<Self>,
        call: InvokeCall,
        sold: &mut Option<Arc<Offer>>,
    ) -> Result<Invoked, MarketError> {
        match self.look_at(call, sold, false).await? {
            Intake::Call(plan) => self.make(*plan).await,
            Intake::Repetition(begun) => repetition(begun),
        }
    }

    /// The order of checks. What is refused earlier is refused for that reason. The answer of a call that somebody follows is
    /// kept also where the caller chose no key.
    async fn look_at(
        &self,
        call: InvokeCall,
        sold: &mut Option<Arc<Offer>>,
        is_followed: bool,
    ) -> Result<Intake, MarketError> {
        let request = Request::read(&call.body)?;
        let hub = self.hub_of(&request.source_hub);
        payer::check(&call.headers, &request)?;
        let payer = self.payer(&call, hub.is_some()).await?;
        let idempotency = payer.idempotency(call.headers.idempotency_key.as_deref(), &request);
        let idempotency = match &hub {
            Some(_) => idempotency.map(|idempotency| routed::scoped(idempotency, &call)),
            None => idempotency,
        };
        // What was answered is answered again, whatever has changed since: the price, the listing, the balance.
        if let Some(idempotency) = &idempotency
            && let Some(repeated) = self.seams.store.repeated(idempotency).await?
        {
            *sold = self.seams.offers.find(&request.asked(hub.as_deref()));
            return Ok(Intake::Repetition(repeated));
        }
        let offer = self.offer(&request, hub.as_deref())?;
        *sold = Some(Arc::clone(&offer));
        let (cost, route) = if let Some((cost, route)) = self.route(&offer, &request, &call, &payer)? {
            (cost, Some(route))
        } else {
            let cost = self.cost(&offer, &request, payer);
            (cost.map_err(|refusal| self.with_terms(refusal, &offer))?, None)
        };
        input::check(&offer, &request).await?;
        let id = self.draw_uuid();
        let unnamed = || is_followed.then(|| jobs::unnamed(id, request.digest));
        let plan = Plan {
            id,
            offer,
            cost,
            route,
            input: request.input,
            idempotency: idempotency.or_else(unnamed),
            track: Track::new(id, is_followed),
        };
        Ok(Intake::Call(Box::new(plan)))
    }
}
