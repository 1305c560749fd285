//! A facilitator over HTTP (x402 §7): `POST /verify`, `POST /settle`, `GET /supported`, through the guarded way out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aip_federation::egress::{EgressError, Exchange, Limits, Method, Request, Response};
use aip_market::facilitator::{Facilitator, FacilitatorError, Settled, Verified};
use aip_protocol::market::x402::{Payment, Requirements, VERSION};
use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::config::Secret;
use crate::market::limits::{FACILITATOR_ANSWER_BYTES_MAX, FACILITATOR_TEXT_CHARS_MAX};

/// Asks a facilitator at an address that the operator chose.
pub struct HttpFacilitator {
    exchange: Arc<dyn Exchange>,
    /// Without a slash at the end.
    base: String,
    token: Secret,
    timeout: Duration,
}

impl fmt::Debug for HttpFacilitator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpFacilitator").finish_non_exhaustive()
    }
}

impl HttpFacilitator {
    /// At this address; with a token, it is shown as a bearer token.
    pub fn new(exchange: Arc<dyn Exchange>, base: &str, token: Secret, timeout: Duration) -> Self {
        Self {
            exchange,
            base: base.trim_end_matches('/').to_owned(),
            token,
            timeout,
        }
    }

    async fn ask(&self, method: Method, path: &str, body: Bytes) -> Result<Response, FacilitatorError> {
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json".to_owned()),
        ];
        if !self.token.is_empty() {
            headers.push(("authorization", format!("Bearer {}", self.token.reveal())));
        }
        let request = Request {
            method,
            url: format!("{}{path}", self.base),
            headers,
            body,
        };
        let limits = Limits {
            timeout: self.timeout,
            answer_bytes_max: FACILITATOR_ANSWER_BYTES_MAX,
        };
        self.exchange.exchange(request, limits).await.map_err(no_answer)
    }

    /// An answer in JSON with the member that says yes or no. Some facilitators say no with a status of 400.
    async fn decide(
        &self,
        path: &str,
        (payment, asked): (&Payment, &Requirements),
        decision: &str,
    ) -> Result<(bool, Value), FacilitatorError> {
        let body = json!({
            "x402Version": VERSION,
            "paymentPayload": payment.json,
            "paymentRequirements": asked.to_json(),
        });
        let response = self.ask(Method::Post, path, body.to_string().into()).await?;
        let invalid = || FacilitatorError::Invalid(format!("status {}", response.status));
        let answer: Value = serde_json::from_slice(&response.body).map_err(|_error| invalid())?;
        let says = answer
            .get(decision)
            .and_then(Value::as_bool)
            .ok_or_else(invalid)?;
        let is_answer =
            (200..300).contains(&response.status) || (!says && (400..500).contains(&response.status));
        if is_answer {
            Ok((says, answer))
        } else {
            Err(invalid())
        }
    }
}

#[async_trait]
impl Facilitator for HttpFacilitator {
    async fn verify(&self, payment: &Payment, asked: &Requirements) -> Result<Verified, FacilitatorError> {
        let (is_valid, answer) = self.decide("/verify", (payment, asked), "isValid").await?;
        if is_valid {
            return Ok(Verified::Valid);
        }
        let reason = text(&answer, "invalidReason", "unexpected_verify_error");
        Ok(Verified::Invalid(cut(reason)))
    }

    async fn settle(&self, payment: &Payment, asked: &Requirements) -> Result<Settled, FacilitatorError> {
        let (is_done, answer) = self.decide("/settle", (payment, asked), "success").await?;
        let transaction = text(&answer, "transaction", "");
        if is_done && transaction.is_empty() {
            return Err(FacilitatorError::Invalid("no transaction".to_owned()));
        }
        if is_done {
            return Ok(Settled::Done(cut(transaction)));
        }
        let reason = text(&answer, "errorReason", "unexpected_settle_error");
        Ok(if transaction.is_empty() && is_before_the_chain(reason) {
            Settled::Refused(cut(reason))
        } else {
            Settled::Unclear(cut(reason))
        })
    }

    async fn supports(&self, network: &str) -> Result<bool, FacilitatorError> {
        let response = self.ask(Method::Get, "/supported", Bytes::new()).await?;
        let invalid = || FacilitatorError::Invalid(format!("status {}", response.status));
        let answer: Value = serde_json::from_slice(&response.body).map_err(|_error| invalid())?;
        let kinds = answer
            .get("kinds")
            .and_then(Value::as_array)
            .ok_or_else(invalid)?;
        let is_ours = |kind: &Value| {
            let is = |name: &str, value: &str| kind.get(name).and_then(Value::as_str) == Some(value);
            let version = kind.get("x402Version").and_then(Value::as_u64);
            version == Some(VERSION) && is("scheme", "exact") && is("network", network)
        };
        Ok(kinds.iter().any(is_ours))
    }
}

/// Whether this attempt at a payment that is refused for this reason sent nothing to the chain: it is what a facilitator looks
/// at before. Also that a nonce is used: whether an attempt before this one did that, its caller knows.
fn is_before_the_chain(reason: &str) -> bool {
    let is_looked_at = ["invalid_", "insufficient_", "unsupported_"]
        .iter()
        .any(|kind| reason.starts_with(kind));
    is_looked_at && !["transaction", "event"].iter().any(|word| reason.contains(word))
}

fn text<'a>(answer: &'a Value, name: &str, otherwise: &'static str) -> &'a str {
    let text = answer.get(name).and_then(Value::as_str);
    text.unwrap_or(otherwise)
}

/// No longer than a header and a line of the log may have it.
fn cut(text: &str) -> String {
    text.chars().take(FACILITATOR_TEXT_CHARS_MAX).collect()
}

/// The texts of egress name no part of the URL.
fn no_answer(error: EgressError) -> FacilitatorError {
    match error {
        EgressError::TimedOut => FacilitatorError::TimedOut,
        EgressError::AnswerTooLarge { .. } => FacilitatorError::Invalid(error.to_string()),
        error => FacilitatorError::Unreachable(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
