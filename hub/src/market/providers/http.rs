//! A provider at a URL of its own choice: `POST` through the guarded way out, once, with a bounded answer.

use std::fmt::{self, Debug};
use std::sync::Arc;

use aip_federation::egress::{EgressError, Exchange, Limits, Method, Request, Response};
use aip_market::limits::RESULT_BYTES_MAX;
use aip_market::offer::Offer;
use aip_market::progress::ProgressSink;
use aip_market::provider::{ProviderCall, ProviderError};
use serde_json::{Value, json};

use super::{Admission, reason, signed};

mod streamed;

/// Room for what stands around a result in an answer, in bytes.
const FRAME_BYTES: usize = 4 * 1024;

/// Calls providers over HTTP.
pub struct HttpProviders {
    exchange: Arc<dyn Exchange>,
    admission: Arc<Admission>,
}

impl Debug for HttpProviders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpProviders").finish_non_exhaustive()
    }
}

impl HttpProviders {
    /// Through this way out, which must be a guarded one: every URL was chosen by a stranger.
    pub fn new(exchange: Arc<dyn Exchange>, admission: Arc<Admission>) -> Self {
        Self { exchange, admission }
    }

    /// Calls the provider at `url`.
    ///
    /// # Errors
    /// There is no result.
    pub async fn call(&self, offer: &Offer, url: &str, call: ProviderCall) -> Result<Value, ProviderError> {
        let id = call.id.hyphenated().to_string();
        // What is signed is one whole answer.
        let progress = call.progress.as_ref().filter(|_| offer.provider_key.is_none());
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            (
                "accept",
                progress
                    .map_or("application/json", |_| streamed::ACCEPT)
                    .to_owned(),
            ),
            ("idempotency-key", id.clone()),
            ("x-aimarket-operation-id", id),
        ];
        headers.extend(
            self.admission
                .headers(url, &offer.capability_id, call.id, &call.input),
        );
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
        let response = tokio::select! {
            biased;
            response = self.answer(request, limits, progress) => response?,
            // The connection ends here: that tells the provider.
            () = call.cancelled.cancelled() => return Err(ProviderError::TimedOut),
        };
        let result = result(&response)?;
        signed::check(offer, &call.input, &result, response.field(signed::SIGNATURE))?;
        Ok(result)
    }
}

impl HttpProviders {
    async fn answer(
        &self,
        request: Request,
        limits: Limits,
        progress: Option<&ProgressSink>,
    ) -> Result<Response, ProviderError> {
        match progress {
            Some(progress) => streamed::answer(&*self.exchange, request, limits, progress).await,
            None => self.exchange.exchange(request, limits).await.map_err(no_answer),
        }
    }
}

/// The texts of egress name no part of the URL, which may hold a secret of the provider.
pub(super) fn no_answer(error: EgressError) -> ProviderError {
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
