//! Why there is no identity.

use std::borrow::Cow;

use aip_protocol::error::{ErrorCode, Refusal};

use crate::directory::PeerError;

/// Why a remote agent could not be looked up. Cheap to clone: all who wait for one look-up get it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// Its own hub says that there is no such agent.
    #[error("its hub knows no such agent")]
    NotFound,
    /// Its hub shows a history that does not extend the one known before, or that somebody else signed. Both operations are
    /// kept as evidence; the operator decides.
    #[error("its hub shows a history that contradicts the one known before, or is not its agent's")]
    Forked,
    /// What its hub shows is no history of it, or is beyond every bound. Mail of it is refused for good, as its sender has to
    /// know: waiting mends no history.
    #[error("its hub shows no sound history: {0}")]
    Unsound(Cow<'static, str>),
    /// Its hub cannot be asked.
    #[error(transparent)]
    Peer(#[from] PeerError),
}

impl IdentityError {
    /// The code of §7.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound => ErrorCode::NotFound,
            Self::Forked => ErrorCode::HistoryForked,
            Self::Unsound(_) => ErrorCode::HistoryUnsound,
            Self::Peer(error) => error.code(),
        }
    }

    /// Whether it may be otherwise in a moment, without anybody doing anything.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Peer(error) if error.is_transient())
    }

    /// What a caller of ours is told; the cause stays in the log.
    pub fn refusal(&self) -> Refusal {
        let detail = match self {
            Self::NotFound => "There is no such agent at that domain.",
            Self::Forked => {
                "The history of that agent does not extend the one known here; the operator of this hub has to decide."
            }
            Self::Unsound(_) => "The hub of that domain shows no sound history of that agent.",
            Self::Peer(error) => return error.refusal(),
        };
        Refusal::new(self.code(), detail)
    }

    /// Whether nothing was heard of its hub.
    pub(super) fn is_unreachable(&self) -> bool {
        matches!(self, Self::Peer(PeerError::Unreachable { .. }))
    }
}
