//! What the JetStream API answers.

use aip_relay::mailbox::StoreError;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The part that every answer may have instead of its own.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ApiError {
    #[serde(default)]
    pub(super) err_code: u64,
    #[serde(default)]
    pub(super) description: String,
}

impl ApiError {
    /// The refusal of a request that changed nothing.
    pub(super) fn unavailable(&self) -> StoreError {
        StoreError::Unavailable(format!("JetStream refuses: {} ({})", self.description, self.err_code).into())
    }
}

/// An answer, or the error in its place.
#[derive(Debug)]
pub(super) enum Answer<T> {
    Refused(ApiError),
    Done(T),
}

#[derive(Deserialize)]
struct Refused {
    #[serde(default)]
    error: Option<ApiError>,
}

/// Reads an answer. The error is looked for first: some refusals have all members of a success beside it.
pub(super) fn read<T: DeserializeOwned>(payload: &[u8]) -> Result<Answer<T>, StoreError> {
    let unreadable = |error: serde_json::Error| {
        StoreError::Corrupt(format!("an answer of JetStream is unreadable: {error}").into())
    };
    match serde_json::from_slice(payload).map_err(unreadable)? {
        Refused { error: Some(error) } => Ok(Answer::Refused(error)),
        Refused { error: None } => serde_json::from_slice(payload)
            .map(Answer::Done)
            .map_err(unreadable),
    }
}
