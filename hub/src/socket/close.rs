//! Why a socket is closed, and the code that says so (spec §6).

use actix_ws::CloseCode;
use aip_relay::presence::CloseReason;

/// The end of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The agent closed it, or is gone: nobody is there to be told.
    Gone,
    /// 4400: no JSON, no text, an unknown `t`, a member that is missing or has the wrong type.
    BadFrame,
    /// 4401: not signed in, or no longer good.
    Unauthenticated,
    /// 4408: no `auth` in time.
    AuthTimeout,
    /// 4409: a newer connection of the agent took over.
    Replaced,
    /// 4413: a frame above the limit.
    FrameTooLarge,
    /// 4429: too many frames.
    TooFast,
    /// 1001: the hub goes away.
    GoingAway,
    /// 1008: nothing was heard for too long, not even a pong.
    Silent,
    /// 1011: the hub failed.
    Failed,
}

impl Ending {
    /// The close code and a sentence; `None` where nobody listens.
    pub(super) fn frame(self) -> Option<actix_ws::CloseReason> {
        let (code, reason) = match self {
            Self::Gone => return None,
            Self::BadFrame => (4400, "bad frame: JSON text frames with a known t and its members"),
            Self::Unauthenticated => (4401, "not authenticated"),
            Self::AuthTimeout => (4408, "no auth in time"),
            Self::Replaced => (4409, "replaced by a newer connection of this agent"),
            Self::FrameTooLarge => (4413, "frame too large"),
            Self::TooFast => (4429, "too many frames"),
            Self::GoingAway => (1001, "the hub is going away, connect again in a moment"),
            Self::Silent => (1008, "silent for too long"),
            Self::Failed => (1011, "the hub failed, connect again in a moment"),
        };
        Some(actix_ws::CloseReason {
            code: CloseCode::from(code),
            description: Some(reason.to_owned()),
        })
    }
}

impl From<CloseReason> for Ending {
    fn from(reason: CloseReason) -> Self {
        match reason {
            CloseReason::Replaced => Self::Replaced,
            CloseReason::Unauthenticated => Self::Unauthenticated,
            CloseReason::GoingAway => Self::GoingAway,
        }
    }
}
