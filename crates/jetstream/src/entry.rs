//! What a mailbox's subject holds: one binary record per message, and one per direct delivery.
//!
//! An entry carries what its successor needs to know of all entries before it (the sequence number, the bytes
//! so far, the latest reused id), so the last entry of a subject is all that an append has to read.

use std::fmt;
use std::time::Duration;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_relay::limits::CLOCK_SLACK_SECS;
use aip_relay::mailbox::{MailboxId, Route, StoreError, StoredMessage};
use bytes::Bytes;
use uuid::Uuid;

use crate::codec::{Reader, Writer, readable};
use crate::nats::Stored;

/// The layout written today.
const VERSION: u8 = 1;
/// What an entry takes besides its names and its envelope, about.
const HEAD_BYTES: usize = 160;

/// What an entry stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A message that waits for its recipient.
    Message,
    /// A message that the recipient's endpoint has taken: only remembered, it repeats the last sequence number.
    Direct,
    /// A dead letter that waits again.
    Redriven,
    /// A message that waits for the recipient's hub: its mailbox is the outbox for that.
    Peer,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Message, Self::Direct, Self::Redriven, Self::Peer];

    /// Whether there is something to deliver.
    pub(crate) fn waits(self) -> bool {
        self != Self::Direct
    }

    fn to_byte(self) -> u8 {
        match self {
            Self::Message => 0,
            Self::Direct => 1,
            Self::Redriven => 2,
            Self::Peer => 3,
        }
    }
}

/// Entries whose id was used before, within the time that the stream knows ids: the stream does not find them by
/// their plain id any more once it has forgotten the first use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reuse {
    /// All of them that still count lie at this stream sequence or after it; 0 where there is none.
    pub(crate) from_stream_seq: u64,
    /// The last moment at which one of them counts.
    pub(crate) until: Timestamp,
}

impl Reuse {
    /// No id was used twice.
    pub(crate) const NONE: Self = Self {
        from_stream_seq: 0,
        until: Timestamp::UNIX_EPOCH,
    };

    /// Whether an entry of a reused id may still count at `now`, by the clock of any process.
    pub(crate) fn counts(&self, now: Timestamp) -> bool {
        let slack = Duration::from_secs(CLOCK_SLACK_SECS);
        self.from_stream_seq > 0 && self.until + slack >= now
    }

    /// With one more, which will lie after `last_stream_seq` and count up to `until`.
    pub(crate) fn with(self, last_stream_seq: u64, until: Timestamp, now: Timestamp) -> Self {
        let start = last_stream_seq.saturating_add(1);
        if self.counts(now) {
            Self {
                from_stream_seq: self.from_stream_seq,
                until: self.until.max(until),
            }
        } else {
            Self {
                from_stream_seq: start,
                until,
            }
        }
    }
}

/// One entry.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    /// Its place in the mailbox; for [`Kind::Direct`] the place of the last message before it.
    pub(crate) seq: u64,
    /// Bytes of all envelopes that ever came into the mailbox, this one included.
    pub(crate) total_bytes: u64,
    /// Random: tells whoever published it that it was this publish.
    pub(crate) stamp: u64,
    pub(crate) reuse: Reuse,
    pub(crate) accepted_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    /// The last moment at which the dedup key counts.
    pub(crate) until: Timestamp,
    pub(crate) dedup_key: [u8; 16],
    /// SHA-256 of the envelope's JCS bytes.
    pub(crate) digest: [u8; 32],
    pub(crate) id: Uuid,
    pub(crate) sender: Did,
    pub(crate) recipient: Did,
    /// The envelope; empty for [`Kind::Direct`].
    pub(crate) wire: Bytes,
}

impl fmt::Debug for Entry {
    /// Without the envelope.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("kind", &self.kind)
            .field("seq", &self.seq)
            .field("id", &self.id)
            .field("wire_bytes", &self.wire.len())
            .finish_non_exhaustive()
    }
}

impl Entry {
    pub(crate) fn encode(&self) -> Bytes {
        let (sender, recipient) = (self.sender.as_str(), self.recipient.as_str());
        let room = HEAD_BYTES + sender.len() + recipient.len() + self.wire.len();
        let mut to = Writer::new(VERSION, room);
        self.write(&mut to);
        to.finish()
    }

    fn write(&self, to: &mut Writer) {
        to.byte(self.kind.to_byte())
            .number(self.seq)
            .number(self.total_bytes)
            .fixed(self.stamp)
            .number(self.reuse.from_stream_seq)
            .time(self.reuse.until)
            .time(self.accepted_at)
            .time(self.expires_at)
            .time(self.until)
            .raw(&self.dedup_key)
            .raw(&self.digest)
            .raw(self.id.as_bytes())
            .text(self.sender.as_str())
            .text(self.recipient.as_str())
            .raw(&self.wire);
    }

    /// The entry in a message of a stream.
    ///
    /// One that the servers copied from another stream names places in that one: here they may be any.
    pub(crate) fn of(stored: &Stored) -> Result<Self, StoreError> {
        let mut entry = Self::decode(&stored.payload)?;
        if stored.origin().is_some() && entry.reuse.from_stream_seq > 0 {
            entry.reuse.from_stream_seq = 1;
        }
        Ok(entry)
    }

    /// Reads an entry; its envelope shares the memory of `bytes`.
    pub(crate) fn decode(bytes: &Bytes) -> Result<Self, StoreError> {
        readable(
            Reader::new(VERSION, bytes).and_then(|from| Self::read(from, bytes)),
            "an entry of a mailbox is unreadable",
        )
    }

    fn read(mut from: Reader<'_>, bytes: &Bytes) -> Option<Self> {
        Some(Self {
            kind: *Kind::ALL.get(usize::from(from.byte()?))?,
            seq: from.number()?,
            total_bytes: from.number()?,
            stamp: from.fixed()?,
            reuse: Reuse {
                from_stream_seq: from.number()?,
                until: from.time()?,
            },
            accepted_at: from.time()?,
            expires_at: from.time()?,
            until: from.time()?,
            dedup_key: from.array()?,
            digest: from.array()?,
            id: Uuid::from_bytes(from.array()?),
            sender: from.did()?,
            recipient: from.did()?,
            wire: bytes.slice_ref(from.rest()),
        })
    }

    /// The answer that the first sender of it got.
    pub(crate) fn answer(&self) -> (Option<u64>, Route) {
        match self.kind {
            Kind::Direct => (None, Route::Direct),
            Kind::Message | Kind::Redriven => (Some(self.seq), Route::Mailbox),
            Kind::Peer => (Some(self.seq), Route::Peer),
        }
    }

    /// Where it lies.
    pub(crate) fn mailbox(&self) -> MailboxId {
        match self.kind {
            Kind::Message | Kind::Direct | Kind::Redriven => MailboxId::of(&self.recipient),
            Kind::Peer => MailboxId::of_peer(&self.recipient.domain()),
        }
    }

    /// What is worth keeping in memory.
    pub(crate) fn head(&self, stream_seq: u64) -> Head {
        Head {
            seq: self.seq,
            stream_seq,
            accepted_at: self.accepted_at,
            expires_at: self.expires_at,
            id: self.id,
            sender: self.sender.clone(),
            recipient: self.recipient.clone(),
            wire_bytes: self.wire.len() as u64,
        }
    }

    /// As a fetch shows it.
    pub(crate) fn into_message(self, attempts: u32, sessions: u32) -> StoredMessage {
        StoredMessage {
            seq: self.seq,
            accepted_at: self.accepted_at,
            expires_at: self.expires_at,
            attempts,
            sessions,
            sender: self.sender,
            recipient: self.recipient,
            id: self.id,
            wire: self.wire,
        }
    }
}

/// A message without its envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) seq: u64,
    /// Where its entry lies.
    pub(crate) stream_seq: u64,
    pub(crate) accepted_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) id: Uuid,
    pub(crate) sender: Did,
    pub(crate) recipient: Did,
    pub(crate) wire_bytes: u64,
}

/// A dead letter, as its stream holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeadEntry {
    /// Why.
    pub(crate) code: String,
    /// When it was buried.
    pub(crate) at: Timestamp,
    /// The entry that it was.
    pub(crate) entry: Entry,
}

impl DeadEntry {
    pub(crate) fn encode(&self) -> Bytes {
        let mut to = Writer::new(VERSION, 2 * HEAD_BYTES + self.entry.wire.len());
        to.time(self.at).text(&self.code);
        self.entry.write(&mut to);
        to.finish()
    }

    pub(crate) fn decode(bytes: &Bytes) -> Result<Self, StoreError> {
        let read = || {
            let mut from = Reader::new(VERSION, bytes)?;
            let (at, code) = (from.time()?, from.text()?.to_owned());
            let entry = Entry::read(from, bytes)?;
            Some(Self { code, at, entry })
        };
        readable(read(), "a dead letter is unreadable")
    }
}

#[cfg(test)]
mod tests;
