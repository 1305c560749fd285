//! What can go wrong inside a store. A refusal is not an error: see the outcome types.

use std::borrow::Cow;

use aip_protocol::error::ErrorCode;

/// A failure of the store, not of the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Nothing was changed; the same call may be tried again later.
    #[error("the mailbox store is unavailable: {0}")]
    Unavailable(Cow<'static, str>),
    /// The write failed or its answer was lost: it may or may not have happened. A retry of the same bytes
    /// tells.
    #[error("the outcome of the write is unknown: {0}")]
    OutcomeUnknown(Cow<'static, str>),
    /// A record does not read back as it was written.
    #[error("the mailbox store is damaged: {0}")]
    Corrupt(Cow<'static, str>),
}

impl StoreError {
    /// The code of spec §7 that the caller answers with.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unavailable(_) => ErrorCode::Unavailable,
            Self::OutcomeUnknown(_) => ErrorCode::OutcomeUnknown,
            Self::Corrupt(_) => ErrorCode::Internal,
        }
    }
}
