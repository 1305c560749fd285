//! A provider at a URL of its own choice: `POST` through the guarded way out, once, with a bounded answer.

use std::fmt::{self, Debug};
use std::sync::Arc;

use aip_federation::egress::{EgressError, Exchange, Limits, Method, Request, Response};
use aip_market::limits::RESULT_BYTES_MAX;
use aip_market::offer::Offer;
use aip_market::provider::{ProviderCall, ProviderError};
use aip_protocol::clock::Clock;
use aip_protocol::market::{Value as Exact, digest};
use aip_protocol::multikey::SigningKey;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use url::Url;

use super::reason;

/// Room for what stands around a result in an answer, in bytes.
const FRAME_BYTES: usize = 4 * 1024;

/// Domain separation of a hub's word that it admitted a call (AIMarket, "provider request auth").
const ADMISSION: &str = "aimarket-hub-request/v1";

/// What a hub signs the calls that it admitted with.
#[derive(Debug)]
pub struct Admission {
    /// The hub's key.
    pub key: Arc<SigningKey>,
    /// The hub's public URL.
    pub hub: String,
}

/// Calls providers over HTTP.
pub struct HttpProviders {
    exchange: Arc<dyn Exchange>,
    admission: Admission,
    clock: Arc<dyn Clock>,
}

impl Debug for HttpProviders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpProviders").finish_non_exhaustive()
    }
}

impl HttpProviders {
    /// Through this way out, which must be a guarded one: every URL was chosen by a stranger.
    pub fn new(exchange: Arc<dyn Exchange>, admission: Admission, clock: Arc<dyn Clock>) -> Self {
        Self {
            exchange,
            admission,
            clock,
        }
    }

    /// Calls the provider at `url`.
    ///
    /// # Errors
    /// There is no result.
    pub async fn call(&self, offer: &Offer, url: &str, call: ProviderCall) -> Result<Value, ProviderError> {
        let id = call.id.hyphenated().to_string();
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json".to_owned()),
            ("idempotency-key", id.clone()),
            ("x-aimarket-operation-id", id),
        ];
        headers.extend(self.admitted(offer, url, &call));
        let body = json!({
            "input": call.input,
            "product_id": offer.product_id,
            "capability_id": offer.capability_id,
        });
        let request = Request {
            method: Method::Post,
            url: url.to_owned(),
            headers,
            body: body.to_string().into(),
        };
        let limits = Limits {
            timeout: call.timeout,
            answer_bytes_max: RESULT_BYTES_MAX + FRAME_BYTES,
        };
        let response = self.exchange.exchange(request, limits).await.map_err(no_answer)?;
        result(&response)
    }

    /// The hub's signed word that it admitted this call, so that a provider can refuse everybody else. A URL that has no
    /// canonical form gets none, and neither does an input that cannot be spelled as both sides spell it.
    fn admitted(&self, offer: &Offer, url: &str, call: &ProviderCall) -> Vec<(&'static str, String)> {
        let urls = canonical(&self.admission.hub).zip(canonical(url));
        let Some(((hub, audience), input)) = urls.zip(spelled(&call.input)) else {
            return Vec::new();
        };
        let (timestamp, nonce) = (
            self.clock.now().unix_millis() / 1_000,
            call.id.simple().to_string(),
        );
        let statement = json!({
            "aud": audience,
            "capability_id": offer.capability_id,
            "hub": hub,
            "input_sha256": digest::sha256_hex(&input),
            "nonce": nonce,
            "ts": timestamp,
        });
        let mut signed = format!("{ADMISSION}\n").into_bytes();
        signed.extend(spelled(&statement).unwrap_or_default());
        let signature = STANDARD.encode(self.admission.key.sign_bytes(&signed));
        vec![
            ("x-aimarket-hub-signer", hub),
            ("x-aimarket-hub-audience", audience),
            ("x-aimarket-hub-timestamp", timestamp.to_string()),
            ("x-aimarket-hub-nonce", nonce),
            ("x-aimarket-hub-signature", signature),
        ]
    }
}

/// The text that AIMarket's digests are over; `None` beyond the bounds of its JSON.
fn spelled(value: &Value) -> Option<Vec<u8>> {
    let exact = Exact::parse(value.to_string().as_bytes()).ok()?;
    Some(digest::compact(&exact))
}

/// As both sides compare URLs: scheme and host in lower case, no default port, no query, no slash at the end.
fn canonical(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let path = url.path().trim_end_matches('/');
    matches!(url.scheme(), "http" | "https").then(|| format!("{}://{host}{port}{path}", url.scheme()))
}

/// The texts of egress name no part of the URL, which may hold a secret of the provider.
fn no_answer(error: EgressError) -> ProviderError {
    match error {
        EgressError::TimedOut => ProviderError::TimedOut,
        EgressError::AnswerTooLarge { .. } => ProviderError::Invalid(error.to_string()),
        error => ProviderError::Unreachable(error.to_string()),
    }
}

/// `result`, else `output`, else the whole body. A status other than 2xx is no result, and neither is a body that says so.
fn result(response: &Response) -> Result<Value, ProviderError> {
    let body: Result<Value, _> = serde_json::from_slice(&response.body);
    if !(200..300).contains(&response.status) {
        let why = format!("status {}", response.status);
        // A refusal in JSON is the provider's own word, such as that the input is beyond its free tier.
        return Err(match body {
            Ok(body) if (400..500).contains(&response.status) && body.is_object() => {
                ProviderError::Refused(format!("{why}: {}", reason(&body)))
            }
            _ => ProviderError::Invalid(why),
        });
    }
    let Ok(Value::Object(mut body)) = body else {
        return Err(ProviderError::Invalid("it is no JSON object".to_owned()));
    };
    let is_refused = ["ok", "success"]
        .iter()
        .any(|name| body.get(*name) == Some(&Value::Bool(false)));
    if is_refused {
        return Err(ProviderError::Refused(reason(&Value::Object(body))));
    }
    let result = body.remove("result").or_else(|| body.remove("output"));
    Ok(result.unwrap_or(Value::Object(body)))
}

#[cfg(test)]
mod tests;
