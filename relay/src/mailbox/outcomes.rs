//! The values that come out of a mailbox store.

use std::fmt;

use aip_federation::outbox::Fate;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use bytes::Bytes;
use uuid::Uuid;

use super::types::{Epoch, Route};
use crate::limits::CODE_BYTES_MAX;

/// Which quota was full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// Too many messages in the mailbox.
    MailboxMessages,
    /// Too many bytes in the mailbox.
    MailboxBytes,
    /// Too many messages of this sender in the mailbox.
    Sender,
}

impl Full {
    /// `mailbox` or `sender`, for the answer's `scope` member.
    pub fn scope(self) -> &'static str {
        match self {
            Self::MailboxMessages | Self::MailboxBytes => "mailbox",
            Self::Sender => "sender",
        }
    }
}

/// What [`super::Mailboxes::append`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOutcome {
    /// Durable. `seq` is `None` for [`Route::Direct`].
    Stored {
        /// The message's place in its mailbox.
        seq: Option<u64>,
    },
    /// The same envelope was accepted before.
    Duplicate {
        /// What the first answer said.
        seq: Option<u64>,
        /// What the first answer said.
        route: Route,
    },
    /// Another envelope was accepted under the same sender, recipient and id.
    Reused,
    /// A quota is used up; nothing was recorded.
    Full(Full),
}

/// Counters of a mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailboxState {
    /// The life of the store.
    pub epoch: Epoch,
    /// Everything up to here is settled.
    pub floor: u64,
    /// What the next message gets.
    pub next_seq: u64,
    /// Messages not settled (expired ones count until they are swept).
    pub pending: u64,
    /// Bytes of their envelopes.
    pub bytes: u64,
    /// Dead letters.
    pub dead: u64,
}

/// A pending message.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// Its place in the mailbox.
    pub seq: u64,
    /// When the hub accepted it.
    pub accepted_at: Timestamp,
    /// When it will no longer be offered.
    pub expires_at: Timestamp,
    /// How often it was offered so far.
    pub attempts: u32,
    /// In how many different sessions (counted up to [`crate::limits::SESSIONS_COUNTED_MAX`]).
    pub sessions: u32,
    /// Who signed it.
    pub sender: Did,
    /// For whom it is: the owner of the mailbox, or, in an outbox, an agent of the peer.
    pub recipient: Did,
    /// The envelope's id.
    pub id: Uuid,
    /// The envelope as received.
    pub wire: Bytes,
}

impl fmt::Debug for StoredMessage {
    /// Without the envelope.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredMessage")
            .field("seq", &self.seq)
            .field("attempts", &self.attempts)
            .field("sender", &self.sender)
            .field("id", &self.id)
            .field("wire_bytes", &self.wire.len())
            .finish_non_exhaustive()
    }
}

/// How often a message was offered, this time included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// The message.
    pub seq: u64,
    /// From 1.
    pub attempt: u32,
    /// Different sessions so far (counted up to [`crate::limits::SESSIONS_COUNTED_MAX`]).
    pub sessions: u32,
}

/// A message that has left the mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The place it had.
    pub seq: u64,
    /// Who sent it, and may be told.
    pub sender: Did,
    /// For whom it was.
    pub recipient: Did,
    /// The envelope's id.
    pub id: Uuid,
}

/// What an ack changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acked {
    /// The floor afterwards.
    pub floor: u64,
    /// The messages that this very ack settled; empty when all were settled before.
    pub messages: Vec<Settled>,
}

/// What [`super::Mailboxes::ack`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AckOutcome {
    /// Durable.
    Acked(Acked),
    /// It names a sequence number that was never given out; nothing was changed.
    BeyondEnd,
    /// More than [`crate::limits::ACK_ALSO_MAX`] single sequence numbers; nothing was changed.
    TooMany,
}

/// A message that was given up.
#[derive(Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The place it had.
    pub seq: u64,
    /// Why.
    pub code: String,
    /// When it was buried.
    pub at: Timestamp,
    /// Who sent it.
    pub sender: Did,
    /// The envelope's id.
    pub id: Uuid,
    /// The envelope as received.
    pub wire: Bytes,
}

impl fmt::Debug for DeadLetter {
    /// Without the envelope.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetter")
            .field("seq", &self.seq)
            .field("code", &self.code)
            .field("sender", &self.sender)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// What [`super::DeadLetters::redrive`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedriveOutcome {
    /// Pending again.
    Redriven {
        /// Its new place.
        seq: u64,
    },
    /// No such dead letter.
    NotFound,
    /// The mailbox is full; the dead letter stays.
    Full(Full),
}

/// The fate of a message (spec §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// In the outbox to a peer.
    Queued,
    /// In the mailbox.
    Stored,
    /// Taken by the recipient's endpoint, or by the recipient's hub.
    Delivered,
    /// Acknowledged by the recipient.
    Acked,
    /// Not delivered before its expiry.
    Expired,
    /// Refused by a peer.
    Refused,
    /// Given up.
    Dead,
}

impl Status {
    /// All, in wire order.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Stored,
        Self::Delivered,
        Self::Acked,
        Self::Expired,
        Self::Refused,
        Self::Dead,
    ];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Stored => "stored",
            Self::Delivered => "delivered",
            Self::Acked => "acked",
            Self::Expired => "expired",
            Self::Refused => "refused",
            Self::Dead => "dead",
        }
    }

    /// What the sender of a message that leaves an outbox learns, with the code cut to
    /// [`CODE_BYTES_MAX`](crate::limits::CODE_BYTES_MAX).
    pub fn of_fate(fate: &Fate) -> (Self, Option<&str>) {
        let cut = |code: &str| code.floor_char_boundary(CODE_BYTES_MAX);
        match fate {
            Fate::Delivered => (Self::Delivered, None),
            Fate::Refused(code) => (Self::Refused, code.get(..cut(code))),
            Fate::Dead(code) => (Self::Dead, code.get(..cut(code))),
            Fate::Expired => (Self::Expired, Some("expired")),
        }
    }
}

/// What became of one message to one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusRecord {
    /// The recipient.
    pub to: Did,
    /// The newest state.
    pub status: Status,
    /// Why, where there is a why.
    pub code: Option<String>,
    /// When the hub accepted the message.
    pub accepted_at: Timestamp,
    /// When `status` became so.
    pub at: Timestamp,
    /// Its place in the mailbox, if it has or had one (a redrive gives a new one).
    pub seq: Option<u64>,
}

impl StatusRecord {
    /// Whether what the recipient's hub tells is news: only of a message that it took, and that nothing final is known of.
    pub fn advances_to(&self, status: Status) -> bool {
        self.status == Status::Delivered && matches!(status, Status::Acked | Status::Expired | Status::Dead)
    }
}

/// What one call of [`super::Upkeep::sweep`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Messages that expired; their senders may be told.
    pub expired: Vec<Settled>,
    /// Dead letters past their 14 days.
    pub dead_letters: u64,
    /// There is more to do at this `now`.
    pub more: bool,
}

/// Whether a store takes messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Ready,
    /// It does not, for lack of space; reads and acks go on.
    DiskFull {
        /// What is left.
        free_bytes: u64,
    },
    /// A write failed: it takes nothing until it is opened again; reads go on.
    Poisoned {
        /// What the failed write said, for the operator.
        reason: String,
    },
    /// The engine that keeps the messages cannot be reached: nothing goes in or out until it can.
    Unreachable {
        /// What the last attempt said, for the operator.
        reason: String,
    },
}

/// Counts of a store since its start; of what was committed, not of what was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Messages stored (mailbox route).
    pub stored: u64,
    /// Messages stored in outboxes (peer route).
    pub queued: u64,
    /// Messages that left an outbox since the peer has them.
    pub handed_over: u64,
    /// Messages that left an outbox since the peer refused them.
    pub refused: u64,
    /// Messages recorded as delivered directly.
    pub direct: u64,
    /// Appends answered as duplicates.
    pub duplicates: u64,
    /// Appends refused since their id was used for other bytes.
    pub reused: u64,
    /// Appends refused by a quota.
    pub full: u64,
    /// Messages acked.
    pub acked: u64,
    /// Messages expired.
    pub expired: u64,
    /// Messages buried, or given up on their way to a peer.
    pub dead: u64,
    /// Dead letters redriven.
    pub redriven: u64,
    /// Batches written.
    pub batches: u64,
    /// Operations in them.
    pub batch_ops: u64,
    /// How many batches had at most 1, 2, 4 … 1,024 operations (each batch is counted once, in the first that
    /// fits).
    pub batch_sizes: [u64; 11],
    /// Operations waiting for the writer.
    pub queue_depth: u64,
    /// Free bytes on the store's disk when last looked at; `None` where there is no disk.
    pub disk_free_bytes: Option<u64>,
    /// A write has failed.
    pub poisoned: bool,
    /// Batches that were on the disk once and were missing when the store was opened. It has a new epoch
    /// then.
    pub lost_batches: u64,
}
