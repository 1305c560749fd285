//! What a sender is told.

use aip_protocol::error::{ErrorCode, Refusal};
use serde::ser::{Serialize, SerializeMap, Serializer};
use uuid::Uuid;

use super::seams::SourceError;
use crate::mailbox::{Route, StoreError};

/// What happened to an accepted envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It waits in the mailbox, durably.
    Stored,
    /// The recipient's endpoint took it.
    Delivered,
    /// It waits in the outbox for the recipient's hub, durably.
    Queued,
    /// It was accepted before; nothing was done.
    Duplicate,
}

impl Sent {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Delivered => "delivered",
            Self::Queued => "queued",
            Self::Duplicate => "duplicate",
        }
    }

    /// The HTTP status of spec §5: 202 while the message is still on its way, else 200.
    pub fn http_status(self) -> u16 {
        match self {
            Self::Stored | Self::Queued => 202,
            Self::Delivered | Self::Duplicate => 200,
        }
    }
}

/// The answer to an accepted envelope (spec §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submission {
    /// The envelope's id.
    pub id: Uuid,
    /// What happened.
    pub status: Sent,
    /// Which way it went; of a duplicate, which way the first one went.
    pub route: Route,
    /// Its place in the mailbox or the outbox, if it has one; of a duplicate, that of the first one.
    pub seq: Option<u64>,
}

/// The object of spec §5: `{"id", "status", "route", "seq"?}`. Every door answers with it.
impl Serialize for Submission {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(
            "id",
            self.id.hyphenated().encode_lower(&mut Uuid::encode_buffer()),
        )?;
        map.serialize_entry("status", self.status.as_str())?;
        map.serialize_entry("route", self.route.as_str())?;
        if let Some(seq) = self.seq {
            map.serialize_entry("seq", &seq)?;
        }
        map.end()
    }
}

/// Why there is no [`Submission`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The envelope was refused and left no record.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Identities could not be read; nothing was done.
    #[error("identities cannot be read")]
    Identities(#[from] SourceError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The process is ending; whether the message was stored is not known.
    #[error("the delivery was interrupted")]
    Interrupted,
}

impl SendError {
    /// The code of spec §7 that the sender reads.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused(refusal) => refusal.code,
            Self::Identities(_) => ErrorCode::Unavailable,
            Self::Store(error) => error.code(),
            Self::Interrupted => ErrorCode::OutcomeUnknown,
        }
    }
}

/// The answer to one envelope of several.
#[derive(Debug)]
pub struct BatchItem {
    /// The envelope's id, where it could be read.
    pub id: Option<Uuid>,
    /// What happened to it.
    pub result: Result<Submission, SendError>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_has_the_members_of_the_specification() {
        let id = Uuid::from_u128(0x6f8f_3f5e_2a52_4e0b_9a5f_6f0c_6f1d_7c11);
        let stored = Submission {
            id,
            status: Sent::Stored,
            route: Route::Mailbox,
            seq: Some(17),
        };
        let expected = json!({
            "id": "6f8f3f5e-2a52-4e0b-9a5f-6f0c6f1d7c11", "status": "stored", "route": "mailbox", "seq": 17
        });
        assert_eq!(serde_json::to_value(stored).unwrap(), expected);
        let delivered = Submission {
            status: Sent::Delivered,
            route: Route::Direct,
            seq: None,
            ..stored
        };
        let expected = json!({
            "id": "6f8f3f5e-2a52-4e0b-9a5f-6f0c6f1d7c11", "status": "delivered", "route": "direct"
        });
        assert_eq!(serde_json::to_value(delivered).unwrap(), expected);
        let queued = Submission {
            status: Sent::Queued,
            route: Route::Peer,
            ..stored
        };
        let expected = json!({
            "id": "6f8f3f5e-2a52-4e0b-9a5f-6f0c6f1d7c11", "status": "queued", "route": "peer", "seq": 17
        });
        assert_eq!(serde_json::to_value(queued).unwrap(), expected);
        assert_eq!(Sent::Queued.http_status(), 202);
    }
}
