//! A provider without an address: it is asked by a sealed message of the hub's own agent, and answers with one.
//!
//! The provider is an agent of this hub. It is asked with the id of the invocation, so that the same invocation is one
//! message however often it is tried; what counts as an answer says `crate::agent::ask`.

use std::fmt::{self, Debug};
use std::sync::Arc;

use aip_market::limits::RESULT_BYTES_MAX;
use aip_market::offer::Offer;
use aip_market::progress::{ProgressSink, WordKind};
use aip_market::provider::{ProviderCall, ProviderError};
use aip_protocol::error::ErrorCode;
use aip_protocol::seal::Plaintext;
use aip_relay::relay::SendError;
use serde_json::{Value, json};

use super::reason;
use crate::agent::{AskError, Hearing, HubAgent, Outgoing};

/// The type of a question: `docs/protocol/types/aip.invoke.request.json`.
pub const REQUEST: &str = "aip.invoke.request";
/// The type of a word before the answer: `docs/protocol/types/aip.invoke.progress.json`.
pub const PROGRESS: &str = "aip.invoke.progress";
/// The type of the word that nobody waits any more: `docs/protocol/types/aip.invoke.cancel.json`.
pub const CANCEL: &str = "aip.invoke.cancel";
/// The type of an answer: `docs/protocol/types/aip.invoke.response.json`.
pub const RESPONSE: &str = "aip.invoke.response";

const JSON: &str = "application/json";

/// Room for what stands around a result in an answer, in bytes.
const FRAME_BYTES: usize = 1024;

/// Calls providers by message.
pub struct RelayProviders {
    agent: Arc<HubAgent>,
}

impl Debug for RelayProviders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayProviders").finish_non_exhaustive()
    }
}

impl RelayProviders {
    /// By messages of this agent.
    pub fn new(agent: Arc<HubAgent>) -> Self {
        Self { agent }
    }

    /// Asks the agent of the offer.
    ///
    /// # Errors
    /// There is no result.
    pub async fn call(&self, offer: &Offer, call: ProviderCall) -> Result<Value, ProviderError> {
        if offer.agent.domain() != self.agent.did().domain() {
            let why = "it is an agent of another hub";
            return Err(ProviderError::Unreachable(why.to_owned()));
        }
        let id = call.id.hyphenated().to_string();
        let mut body = json!({
            "id": id,
            "product_id": offer.product_id,
            "capability_id": offer.capability_id,
            "input": call.input,
        });
        if let (Some(_), Some(members)) = (&call.progress, body.as_object_mut()) {
            members.insert("progress".to_owned(), true.into());
        }
        let question = Outgoing::json(offer.agent.clone(), REQUEST, JSON, &body);
        let mut question = question.map_err(|error| ProviderError::Unreachable(error.to_string()))?;
        question.key = Some(id.clone());
        let hearing = call.progress.map(|progress| hearing(id.clone(), progress));
        let asking = self.agent.ask_hearing(question, RESPONSE, call.timeout, hearing);
        tokio::select! {
            biased;
            answer = asking => result(&id, &answer.map_err(no_answer)?),
            () = call.cancelled.cancelled() => {
                self.withdraw(offer, &id).await;
                Err(ProviderError::TimedOut)
            }
        }
    }

    /// Tells the provider that nobody waits for its result any more. Where that does not arrive it works for nothing, as it
    /// would without it.
    async fn withdraw(&self, offer: &Offer, id: &str) {
        let word = Outgoing::json(offer.agent.clone(), CANCEL, JSON, &json!({ "id": id }));
        let Ok(word) = word else {
            return;
        };
        if let Err(error) = self.agent.withdraw(word, (REQUEST, id)).await {
            tracing::debug!(
                code = error.code().as_str(),
                "A provider is not told that a call was cancelled"
            );
        }
    }
}

/// Tells the words of the provider of this call.
fn hearing(id: String, progress: ProgressSink) -> Hearing {
    Hearing {
        kind: PROGRESS,
        hear: Arc::new(move |plaintext| {
            if progress.has_room()
                && let Some((kind, data)) = word(&id, plaintext)
            {
                progress.tell(kind, &data);
            }
        }),
    }
}

/// `{"id", "progress"}` or `{"id", "chunk"}`, of this invocation; anything else says nothing.
fn word(id: &str, plaintext: &[u8]) -> Option<(WordKind, Value)> {
    let Value::Object(mut body) = Plaintext::from_bytes(plaintext).ok()?.body else {
        return None;
    };
    if body.get("id").and_then(Value::as_str) != Some(id) {
        return None;
    }
    [WordKind::Progress, WordKind::Chunk]
        .into_iter()
        .find_map(|kind| body.remove(kind.as_str()).map(|data| (kind, data)))
}

fn no_answer(error: AskError) -> ProviderError {
    match error {
        AskError::TimedOut => ProviderError::TimedOut,
        AskError::NotTaken(code) if code == ErrorCode::Expired.as_str() => ProviderError::TimedOut,
        // Of the sending only what the provider is to blame for is told by its name.
        AskError::NotSent(SendError::Refused(refusal)) => {
            ProviderError::Unreachable(refusal.code.as_str().to_owned())
        }
        AskError::NotSent(failure) => ProviderError::Unreachable(failure.code().as_str().to_owned()),
        error => ProviderError::Unreachable(error.to_string()),
    }
}

/// `{"id", "ok": true, "result"}` or `{"id", "ok": false, "error"}`, of this invocation.
fn result(id: &str, plaintext: &[u8]) -> Result<Value, ProviderError> {
    let invalid = |why: &str| ProviderError::Invalid(why.to_owned());
    if plaintext.len() > RESULT_BYTES_MAX + FRAME_BYTES {
        return Err(invalid("it is too long"));
    }
    let plaintext = Plaintext::from_bytes(plaintext).map_err(|_refusal| invalid("it is no JSON"))?;
    let essence = plaintext.content_type.split(';').next().unwrap_or_default();
    if !essence.trim().eq_ignore_ascii_case(JSON) {
        return Err(invalid("it is no JSON"));
    }
    let Value::Object(mut body) = plaintext.body else {
        return Err(invalid("it is no JSON object"));
    };
    if body.get("id").and_then(Value::as_str) != Some(id) {
        return Err(invalid("it is for another call"));
    }
    match body.get("ok") {
        Some(Value::Bool(true)) => body.remove("result").ok_or_else(|| invalid("it has no result")),
        Some(Value::Bool(false)) => Err(ProviderError::Refused(reason(&Value::Object(body)))),
        _ => Err(invalid("it does not say whether it is ok")),
    }
}

#[cfg(test)]
mod tests;
