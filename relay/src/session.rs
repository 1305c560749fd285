//! Delivery to connected agents (spec §6) as a pure machine: events in, effects out.
//!
//! One [`Delivery`] stands for one agent that is connected. It knows what was offered to which session and what the
//! agent said about it, never an envelope's bytes: effects name sequence numbers, whoever carries them out reads the
//! store. It has no clock (the time comes with each event) and does no I/O, so that every order of events can be
//! tried in a test. [`crate::presence`] carries the effects out.
//!
//! What holds after every event:
//!
//! * a session has at most its credit in flight, and at most 1 MiB (one message alone may be larger);
//! * a message is offered for the first time in mailbox order;
//! * a message leaves only by ack, reject or exhaustion; an ack is told (`acked`), and makes room for the next message,
//!   only when it is durable;
//! * an event of a session that has ended or was replaced changes nothing of its successor's;
//! * everything that the machine holds is bounded by [`crate::limits`].

use std::fmt;
use std::time::Duration;

use aip_protocol::error::ErrorCode;

pub use self::delivery::Delivery;
pub(crate) use self::delivery::{ATTEMPTS_EXHAUSTED, is_exhausted};
use crate::mailbox::Epoch;

mod acks;
mod delivery;
mod elapsed;
mod open;

/// Names one connection of one agent. Drawn at random; written as 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(u64);

impl SessionId {
    /// A session named by 64 random bits, which the caller draws.
    pub fn from_random(bits: u64) -> Self {
        Self(bits)
    }

    /// The number that the store counts sessions by.
    pub fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The state of the mailbox when a session begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The life of the store.
    pub epoch: Epoch,
    /// Everything up to here is settled.
    pub floor: u64,
    /// What the next message gets.
    pub next_seq: u64,
}

/// A message that a fetch has found, without its envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Its place in the mailbox.
    pub seq: u64,
    /// How often it was offered before.
    pub attempts: u32,
    /// In how many sessions.
    pub sessions: u32,
    /// The size of its envelope.
    pub bytes: u64,
}

/// What happens to an agent's deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An authenticated connection begins.
    Join {
        /// The new session.
        session: SessionId,
        /// Whether it asks to share the mailbox with other sessions.
        share: bool,
        /// How many messages it takes at a time; cut to [`crate::limits::CREDIT_MAX`].
        credit: u32,
        /// Read from the store after the agent was made known to [`crate::presence`], so that no message falls between.
        position: Position,
    },
    /// A connection has ended, however.
    Leave {
        /// The session.
        session: SessionId,
    },
    /// The session was woken, or its time has come ([`Delivery::next_due`]).
    Poll {
        /// The session.
        session: SessionId,
    },
    /// The agent has sent a frame.
    Said {
        /// The session.
        session: SessionId,
        /// The frame.
        frame: Said,
    },
    /// An effect was carried out.
    Done {
        /// The session whose effect it was.
        session: SessionId,
        /// What came of it.
        work: Done,
    },
    /// Something happened to the mailbox that is no session's doing.
    Elsewhere(Elsewhere),
}

/// What an agent says about messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The window has another size; cut to [`crate::limits::CREDIT_MAX`].
    Credit(u32),
    /// Messages are dealt with.
    Ack {
        /// The epoch that the numbers belong to, as the agent wrote it.
        epoch: String,
        /// Everything up to here; 0 for none.
        upto: u64,
        /// And these.
        also: Vec<u64>,
    },
    /// A message cannot be dealt with now.
    Nak {
        /// The epoch that the number belongs to.
        epoch: String,
        /// The message.
        seq: u64,
        /// When to offer it again; cut to [`crate::limits::NAK_SECS_MAX`].
        retry_after: Duration,
    },
    /// A message is never wanted again.
    Reject {
        /// The epoch that the number belongs to.
        epoch: String,
        /// The message.
        seq: u64,
        /// Why: 1 to 64 of `[a-z0-9_]`.
        code: String,
    },
}

/// What came of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// [`Effect::Fetch`] has found these, in sequence order.
    Fetched(Vec<Found>),
    /// The store could not answer [`Effect::Fetch`].
    FetchFailed,
    /// These messages of [`Effect::Deliver`] are on the wire.
    Sent(Vec<u64>),
    /// The store could not count the offers of [`Effect::Deliver`]: nothing was sent.
    OfferFailed(Vec<u64>),
    /// These messages of [`Effect::Deliver`] are in the hands of another process, for so long at most: they were not
    /// sent.
    Taken(Vec<(u64, Duration)>),
    /// [`Effect::Ack`] is durable; the mailbox's floor after it.
    Acked(u64),
    /// [`Effect::Ack`] failed, or may have.
    AckFailed,
}

/// What happens to a mailbox beside its sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elsewhere {
    /// A message was stored, here.
    Stored(u64),
    /// Messages may have been stored: nobody knows which.
    Unsure,
    /// Messages up to here were offered by another door (long poll, SSE), or were in the past, as the store remembers.
    Offered(u64),
    /// Another door settled messages, durably.
    Settled {
        /// Everything up to here.
        upto: u64,
        /// And these.
        also: Vec<u64>,
        /// The mailbox's floor after it.
        floor: u64,
    },
    /// This message is in the dead letters, durably, or there was nothing to bury.
    Buried(u64),
    /// Another process has given these messages back.
    Released(Vec<u64>),
    /// A newer connection to another process has replaced these sessions.
    TakenOver(Vec<SessionId>),
}

/// Which messages to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Those after this one.
    After(u64),
    /// These, in sequence order.
    Seqs(Vec<u64>),
}

/// What is to be done. Effects without a session are for the session whose event caused them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Read messages, answer with [`Done::Fetched`] or [`Done::FetchFailed`]. At most one at a time and session.
    Fetch {
        /// Which.
        wanted: Wanted,
        /// At most so many.
        max_messages: usize,
        /// At most so many bytes, but one message at least.
        max_bytes: u64,
    },
    /// Count the offers of these messages, just fetched, and send them in this order; answer with [`Done::Sent`] or
    /// [`Done::OfferFailed`]. For a session that shares its mailbox they are claimed first; what another process has is
    /// answered with [`Done::Taken`].
    Deliver {
        /// The messages.
        seqs: Vec<u64>,
    },
    /// Settle messages, answer with [`Done::Acked`] or [`Done::AckFailed`]. At most one at a time and agent.
    Ack {
        /// Everything up to here.
        upto: u64,
        /// And these, ascending.
        also: Vec<u64>,
    },
    /// Move a message to the dead letters, then tell [`Elsewhere::Buried`]. A failure needs no answer: the message
    /// comes up again.
    Bury {
        /// The message.
        seq: u64,
        /// Why.
        code: String,
    },
    /// Tell the agent that its acks are durable.
    Acked {
        /// The mailbox's floor.
        floor: u64,
    },
    /// Tell the agent that its last frame changed nothing.
    Refused {
        /// Why.
        code: ErrorCode,
        /// What to do about it.
        detail: &'static str,
    },
    /// Sessions of other processes may have these messages `after` so long, which this process has claimed.
    Release {
        /// The messages.
        seqs: Vec<u64>,
        /// When; zero for at once.
        after: Duration,
    },
    /// Let this session send [`Event::Poll`] soon.
    Wake(SessionId),
    /// This session was replaced by a newer connection: close it with 4409. It is no longer part of the machine.
    Replaced(SessionId),
}
