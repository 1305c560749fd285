//! The provider of a capability, as the market calls it.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::offer::Offer;
use crate::progress::ProgressSink;

/// One call of a provider.
#[derive(Debug, Clone)]
pub struct ProviderCall {
    /// The same for every attempt at this invocation, so that a provider can tell a repetition (`Idempotency-Key`).
    pub id: Uuid,
    /// What is given to it.
    pub input: Value,
    /// How long it may take.
    pub timeout: Duration,
    /// Where it may say how far it is; `None`: nobody follows the call.
    pub progress: Option<ProgressSink>,
    /// Cancelled when the result is not wanted any more: whoever can tell the provider does, and ends soon. What it ends with is
    /// not looked at.
    pub cancelled: CancellationToken,
}

/// Why there is no result. None of these costs the buyer anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// It could not be reached.
    #[error("the provider cannot be reached: {0}")]
    Unreachable(String),
    /// It took too long.
    #[error("the provider did not answer in time")]
    TimedOut,
    /// It answered with what is no result: a status, something that is not JSON, or too much.
    #[error("the provider's answer is no result: {0}")]
    Invalid(String),
    /// It says that it did not do it (`ok` or `success` is false).
    #[error("the provider refused: {0}")]
    Refused(String),
    /// It does not sign what it answers, as its listing says that it does.
    #[error("the provider's answer is not signed: {0}")]
    Unsigned(&'static str),
}

/// Calls providers. Two exist: over HTTP, and by message over the relay.
#[async_trait]
pub trait Providers: Send + Sync + Debug {
    /// Calls the provider of this offer and gives back its result. May be dropped at any moment.
    ///
    /// # Errors
    /// There is no result.
    async fn call(&self, offer: &Offer, call: ProviderCall) -> Result<Value, ProviderError>;
}
