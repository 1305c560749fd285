//! Another hub, which is called once, as its own buyers call it. What a buyer of this hub pays here with never gets there.

use std::fmt::{self, Debug};
use std::sync::Arc;

use aip_federation::egress::{Exchange, Limits, Method, Request, Response};
use aip_market::limits::RESULT_BYTES_MAX;
use aip_market::money::Usd;
use aip_market::peers::{MarketPeer, PeerKeys};
use aip_market::provider::ProviderError;
use aip_market::refusal::PROTOCOL_VERSION;
use aip_market::routing::{PeerAnswer, PeerCall, PeerFailure, PeerHubs, Shown, Terms};
use aip_protocol::market::{Members, Value as Exact};
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use url::Url;

use super::http::no_answer;
use super::{Admission, reason};

/// Where a hub is called, below its address.
const INVOKE_PATH: &str = "/ai-market/v2/invoke";

/// Room for what stands around a result in an answer, receipts among it, in bytes.
const FRAME_BYTES: usize = 64 * 1024;

/// The headers of a peer's answer that are about payment.
const PAYMENT_FIELDS: [&str; 4] = [
    "payment-required",
    "payment-response",
    "x-payment-response",
    "x-payment-nonce",
];

/// What an offer over x402 says in the header, for a buyer who reads bodies only.
const OFFER_MEMBERS: [&str; 3] = ["x402Version", "accepts", "resource"];

/// Calls other hubs.
pub struct PeerProviders {
    exchange: Arc<dyn Exchange>,
    admission: Arc<Admission>,
    keys: Arc<dyn PeerKeys>,
}

impl Debug for PeerProviders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerProviders").finish_non_exhaustive()
    }
}

impl PeerProviders {
    /// Through this way out, which must be a guarded one. `keys` are of this hub's accounts at others.
    pub fn new(exchange: Arc<dyn Exchange>, admission: Arc<Admission>, keys: Arc<dyn PeerKeys>) -> Self {
        Self {
            exchange,
            admission,
            keys,
        }
    }

    fn request(&self, call: &PeerCall<'_>) -> Result<Request, PeerFailure> {
        let url = endpoint(call.peer);
        let is_at_usual_path = url.ends_with(INVOKE_PATH);
        // To a hub `source_hub` says which hub it should call: itself, or it would send the call back.
        let source_hub = if is_at_usual_path {
            "local"
        } else {
            &self.admission.hub
        };
        let mut body = json!({
            "product_id": call.offer.product_id,
            "capability_id": call.offer.capability_id,
            "source_hub": source_hub,
            "input": call.input,
        });
        let most = match call.shown {
            Shown::Buyer { most, .. } => *most,
            Shown::Key(most) => Some(*most),
            Shown::Admission => None,
        };
        if let (Some(most), Some(members)) = (most, body.as_object_mut()) {
            members.insert("max_price_usd".to_owned(), most.to_f64().into());
        }
        Ok(Request {
            method: Method::Post,
            headers: self.headers(call, &url)?,
            url,
            body: body.to_string().into(),
        })
    }

    fn headers(&self, call: &PeerCall<'_>, url: &str) -> Result<Vec<(&'static str, String)>, PeerFailure> {
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json".to_owned()),
            ("idempotency-key", call.id.hyphenated().to_string()),
            ("x-aimarket-routing-hub", self.admission.hub.clone()),
        ];
        match call.shown {
            Shown::Buyer { visitor, payment, .. } => {
                headers.extend_from_slice(payment);
                let visitor = visitor.as_ref().filter(|_| payment.is_empty());
                headers.extend(visitor.map(|visitor| ("x-aimarket-sandbox-visitor", visitor.clone())));
            }
            Shown::Admission => {
                let id = &call.offer.capability_id;
                headers.extend(self.admission.headers(url, id, call.id, call.input));
            }
            Shown::Key(price) => {
                let key = self.keys.key(&call.peer.url);
                let none =
                    || PeerFailure::HubUnpaid("there is no key of this hub's account there".to_owned());
                headers.push(("x-api-key", key.ok_or_else(none)?.expose().to_owned()));
                headers.push(("x-aimarket-hub-charged", price.to_string()));
            }
        }
        Ok(headers)
    }
}

#[async_trait]
impl PeerHubs for PeerProviders {
    async fn call(&self, call: PeerCall<'_>) -> Result<PeerAnswer, PeerFailure> {
        let limits = Limits {
            timeout: call.timeout,
            answer_bytes_max: RESULT_BYTES_MAX + FRAME_BYTES,
        };
        let answer = self.exchange.exchange(self.request(&call)?, limits).await;
        answer_of(&answer.map_err(no_answer)?, call.shown)
    }
}

/// Where a peer is called: a hub at the usual path, a bare provider where it says, which is at its own origin.
fn endpoint(peer: &MarketPeer) -> String {
    let said = peer.declared.invoke_url.as_ref().filter(|_| !peer.is_hub());
    let own = said.filter(|url| is_same_origin(url, &peer.url));
    own.cloned()
        .unwrap_or_else(|| format!("{}{INVOKE_PATH}", peer.url))
}

fn is_same_origin(url: &str, other: &str) -> bool {
    match (Url::parse(url), Url::parse(other)) {
        (Ok(url), Ok(other)) => url.origin() == other.origin() && url.origin().is_tuple(),
        _ => false,
    }
}

fn answer_of(response: &Response, shown: &Shown) -> Result<PeerAnswer, PeerFailure> {
    let body = Exact::parse(&response.body);
    if response.status == 402 {
        return Err(match shown {
            Shown::Buyer { .. } => PeerFailure::Unpaid(terms(response, body.ok().as_ref())),
            Shown::Admission | Shown::Key(_) => PeerFailure::HubUnpaid(told(402, body.ok())),
        });
    }
    if response.status == 401 && matches!(shown, Shown::Key(_)) {
        return Err(PeerFailure::HubUnpaid(told(401, body.ok())));
    }
    if !(200..300).contains(&response.status) {
        return Err(refused(response.status, body.ok()).into());
    }
    let Ok(Exact::Object(members)) = body else {
        return Err(ProviderError::Invalid("it is no JSON object".to_owned()).into());
    };
    let is_refused = ["ok", "success"]
        .iter()
        .any(|name| members.get(*name) == Some(&Exact::Bool(false)));
    if is_refused {
        return Err(ProviderError::Refused(reason(&Exact::Object(members).into())).into());
    }
    Ok(normal(members, response))
}

/// An answer in one form, whether a hub gave it (`result`) or a bare provider (`output`).
fn normal(mut body: Members, response: &Response) -> PeerAnswer {
    let receipt = body.remove("receipt").filter(|receipt| *receipt != Exact::Null);
    let price = dollars(body.get("price_usd")).or_else(|| dollars(receipt.as_ref()?.get("price_usd")));
    let is_trial = matches!(body.get("sandbox"), Some(Exact::Bool(true) | Exact::Object(_)));
    let result = body.remove("result").or_else(|| body.remove("output"));
    PeerAnswer {
        result: result.unwrap_or(Exact::Object(body)).into(),
        receipt,
        price,
        is_trial,
        headers: payment_fields(response),
    }
}

/// What a peer says that something costs: a stranger's number. No price that there is money for is higher than [`Usd::MAX`].
fn dollars(said: Option<&Exact>) -> Option<Usd> {
    let number = said?.as_number()?.as_f64();
    (number >= 0.0).then(|| Usd::from_f64(number).unwrap_or(Usd::MAX))
}

fn payment_fields(response: &Response) -> Vec<(&'static str, String)> {
    let fields = PAYMENT_FIELDS
        .iter()
        .filter_map(|name| Some((*name, response.field(name)?.to_owned())));
    fields.collect()
}

/// What the buyer is to pay, word for word. Where there are no words, the ones that the header says.
fn terms(response: &Response, body: Option<&Exact>) -> Terms {
    let has_words = body
        .and_then(Exact::as_object)
        .is_some_and(|members| !members.is_empty());
    Terms {
        body: if has_words {
            response.body.clone()
        } else {
            spoken(response).to_string().into()
        },
        headers: payment_fields(response),
    }
}

fn spoken(response: &Response) -> Value {
    let mut spoken = json!({
        "success": false,
        "error": "payment_required",
        "detail": "The hub that does the work is to be paid: its terms are its own.",
        "protocol_version": PROTOCOL_VERSION,
    });
    let offer = response
        .field("payment-required")
        .and_then(|field| STANDARD.decode(field).ok());
    let offer = offer.and_then(|bytes| Exact::parse(&bytes).ok());
    if let (Some(offer), Some(members)) = (offer, spoken.as_object_mut()) {
        for name in OFFER_MEMBERS {
            if let Some(value) = offer.get(name) {
                members.insert(name.to_owned(), value.clone().into());
            }
        }
    }
    spoken
}

fn refused(status: u16, body: Option<Exact>) -> ProviderError {
    match body {
        Some(body @ Exact::Object(_)) if (400..500).contains(&status) => {
            ProviderError::Refused(told(status, Some(body)))
        }
        _ => ProviderError::Invalid(format!("status {status}")),
    }
}

fn told(status: u16, body: Option<Exact>) -> String {
    match body {
        Some(body) => format!("status {status}: {}", reason(&body.into())),
        None => format!("status {status}"),
    }
}

#[cfg(test)]
mod tests;
