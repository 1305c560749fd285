//! Why there is no peer.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::time::Timestamp;

use crate::peers::StoreError;

/// Why nothing can be had of, or sent to, the hub of a domain. Cheap to clone: all who wait for one look-up get it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The operator blocked it.
    #[error("the operator blocked this peer")]
    Blocked,
    /// It showed a key that no pinned key vouches for, and waits for the operator.
    #[error("the peer is frozen: it showed {kid}, which no pinned key vouches for")]
    Frozen {
        /// The key that it showed.
        kid: String,
    },
    /// No answer, or one that is none of a hub's: it may be there again soon.
    #[error("the peer cannot be reached: {cause}")]
    Unreachable {
        /// What happened, for the log.
        cause: Cow<'static, str>,
        /// What it asked for.
        retry_after: Option<Duration>,
    },
    /// It answered, and what it says makes it no peer.
    #[error("not a hub to speak with: {0}")]
    Unfit(Cow<'static, str>),
    /// It was asked afresh a moment ago.
    #[error("asked afresh a moment ago")]
    TooSoon {
        /// When it may be asked afresh again.
        retry_after_secs: u64,
    },
    /// Too many look-ups are under way.
    #[error("too many look-ups are under way")]
    Busy,
    /// Our own store failed.
    #[error("the store of peers does not answer")]
    Store(#[source] Arc<StoreError>),
}

impl PeerError {
    /// The code of §7.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Blocked => ErrorCode::PeerBlocked,
            Self::Frozen { .. } => ErrorCode::HubKeyNotPinned,
            Self::Unreachable { .. } | Self::Unfit(_) => ErrorCode::PeerFailed,
            Self::TooSoon { .. } | Self::Busy | Self::Store(_) => ErrorCode::Unavailable,
        }
    }

    /// Whether it may be otherwise in a moment, without anybody doing anything.
    pub fn is_transient(&self) -> bool {
        !matches!(self, Self::Blocked | Self::Frozen { .. } | Self::Unfit(_))
    }

    /// What a caller of ours is told; the cause stays in the log.
    pub fn refusal(&self) -> Refusal {
        let detail = match self {
            Self::Blocked => "This hub has nothing to do with the hub of that domain.",
            Self::Frozen { .. } => {
                "The hub of that domain shows a key that this hub does not know; its operator has to approve it."
            }
            Self::Unreachable { .. } => "The hub of that domain cannot be reached; try again later.",
            Self::Unfit(_) => "There is no hub at that domain, or none that this hub can speak with.",
            Self::TooSoon { .. } | Self::Busy | Self::Store(_) => {
                "Look-ups are not possible right now; try again."
            }
        };
        let refusal = Refusal::new(self.code(), detail);
        match self {
            Self::TooSoon { retry_after_secs } => refusal.retry_after(*retry_after_secs),
            Self::Busy | Self::Store(_) => refusal.retry_after(1),
            Self::Unreachable {
                retry_after: Some(retry_after),
                ..
            } => refusal.retry_after(retry_after.as_secs().max(1)),
            _ => refusal,
        }
    }

    /// [`PeerError::TooSoon`] until `next`.
    pub(crate) fn too_soon(next: Timestamp, now: Timestamp) -> Self {
        let millis = u64::try_from(next.millis_since(now)).unwrap_or_default();
        Self::TooSoon {
            retry_after_secs: millis.div_ceil(1000).max(1),
        }
    }

    pub(crate) fn unreachable(cause: impl Into<Cow<'static, str>>) -> Self {
        Self::Unreachable {
            cause: cause.into(),
            retry_after: None,
        }
    }
}

impl From<StoreError> for PeerError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}
