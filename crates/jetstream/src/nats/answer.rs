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
    error: ApiError,
}

/// Reads an answer. What `T` must have, an error has not.
pub(super) fn read<T: DeserializeOwned>(payload: &[u8]) -> Result<Answer<T>, StoreError> {
    let unreadable = match serde_json::from_slice(payload) {
        Ok(answer) => return Ok(Answer::Done(answer)),
        Err(error) => error,
    };
    match serde_json::from_slice::<Refused>(payload) {
        Ok(Refused { error }) => Ok(Answer::Refused(error)),
        Err(_) => Err(StoreError::Corrupt(
            format!("an answer of JetStream is unreadable: {unreadable}").into(),
        )),
    }
}
