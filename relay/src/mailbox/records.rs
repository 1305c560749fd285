//! The values of a store, as bytes: fixed-width big-endian numbers and length-prefixed text.
//!
//! Each begins with a version byte, so that a later layout can be told apart. What does not read back is
//! [`StoreError::Corrupt`], never a guess.

use aip_protocol::name::Did;
use bytes::Bytes;
use uuid::Uuid;

use super::error::StoreError;
use super::keys::{self, Bucket};
use super::outcomes::{Status, StatusRecord};
use super::types::Route;
use crate::limits;

/// The layout written today.
const VERSION: u8 = 1;

/// Puts the parts of a value together.
struct Encoder(Vec<u8>);

impl Encoder {
    fn new(room: usize) -> Self {
        let mut bytes = Vec::with_capacity(room);
        bytes.push(VERSION);
        Self(bytes)
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn number(self, value: u64) -> Self {
        self.raw(&value.to_be_bytes())
    }

    /// Text of at most 65,535 bytes; DIDs and codes are far shorter.
    fn text(self, text: &str) -> Self {
        self.raw(&u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes())
            .raw(text.as_bytes())
    }

    fn optional(self, value: Option<u64>) -> Self {
        self.number(value.unwrap_or_default())
    }

    fn finish(self) -> Bytes {
        self.0.into()
    }
}

/// A number that may be missing, in a record that is there.
struct Optional(Option<u64>);

/// Takes a value apart. `None` means: not what was written.
struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first()?;
        (*version == VERSION).then_some(Self(rest))
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        let len = usize::from(u16::from_be_bytes(self.array()?));
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    /// A mailbox's sequence numbers start at 1, so 0 stands for none.
    fn optional(&mut self) -> Option<Optional> {
        self.number().map(|value| Optional((value > 0).then_some(value)))
    }

    fn rest(self) -> &'a [u8] {
        self.0
    }

    fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

fn readable<T>(value: Option<T>, what: &'static str) -> Result<T, StoreError> {
    value.ok_or(StoreError::Corrupt(what.into()))
}

/// A DID that a record holds.
pub(crate) fn did(text: &str) -> Result<Did, StoreError> {
    readable(Did::parse(text).ok(), "a record holds no DID where one is due")
}

/// A number in the family `meta`, 0 where it is absent.
pub(crate) fn meta_number(value: Option<Bytes>) -> Result<u64, StoreError> {
    let Some(value) = value else { return Ok(0) };
    readable(
        value.as_ref().try_into().ok().map(u64::from_be_bytes),
        "a meta record is unreadable",
    )
}

/// A bucket in the family `meta`, the first where it is absent.
pub(crate) fn meta_bucket(value: Option<Bytes>) -> Result<Bucket, StoreError> {
    let Some(value) = value else {
        return Ok(Bucket::FIRST);
    };
    readable(
        value.as_ref().try_into().ok().map(Bucket::from_bytes),
        "a meta record is unreadable",
    )
}

/// Counters of a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MailboxRecord {
    pub(crate) next_seq: u64,
    pub(crate) floor: u64,
    pub(crate) pending: u64,
    pub(crate) bytes: u64,
    pub(crate) dead: u64,
}

impl MailboxRecord {
    /// A mailbox that nobody has written to.
    pub(crate) const EMPTY: Self = Self {
        next_seq: 1,
        floor: 0,
        pending: 0,
        bytes: 0,
        dead: 0,
    };

    pub(crate) fn encode(&self) -> Bytes {
        [self.next_seq, self.floor, self.pending, self.bytes, self.dead]
            .into_iter()
            .fold(Encoder::new(41), Encoder::number)
            .finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        let read = || {
            let mut from = Decoder::new(bytes)?;
            let record = Self {
                next_seq: from.number()?,
                floor: from.number()?,
                pending: from.number()?,
                bytes: from.number()?,
                dead: from.number()?,
            };
            from.end(record)
        };
        readable(read(), "the counters of a mailbox are unreadable")
    }
}

/// A message, borrowed from its record. Times are nanoseconds, see [`keys::nanos`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageRecord<'a> {
    pub(crate) accepted_at: u64,
    pub(crate) expires_at: u64,
    pub(crate) id: Uuid,
    pub(crate) sender: &'a str,
    pub(crate) recipient: &'a str,
    pub(crate) wire: &'a [u8],
}

impl<'a> MessageRecord<'a> {
    pub(crate) fn encode(&self) -> Bytes {
        self.append_to(Encoder::new(
            64 + self.sender.len() + self.recipient.len() + self.wire.len(),
        ))
        .finish()
    }

    fn append_to(&self, to: Encoder) -> Encoder {
        to.number(self.accepted_at)
            .number(self.expires_at)
            .raw(self.id.as_bytes())
            .text(self.sender)
            .text(self.recipient)
            .raw(self.wire)
    }

    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, StoreError> {
        readable(
            Decoder::new(bytes).and_then(Self::read),
            "a message is unreadable",
        )
    }

    fn read(mut from: Decoder<'a>) -> Option<Self> {
        Some(Self {
            accepted_at: from.number()?,
            expires_at: from.number()?,
            id: Uuid::from_bytes(from.array()?),
            sender: from.text()?,
            recipient: from.text()?,
            wire: from.rest(),
        })
    }
}

/// A dead letter, borrowed from its record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeadRecord<'a> {
    pub(crate) at: u64,
    /// When it is dropped.
    pub(crate) until: u64,
    pub(crate) code: &'a str,
    pub(crate) message: MessageRecord<'a>,
}

impl<'a> DeadRecord<'a> {
    pub(crate) fn encode(&self) -> Bytes {
        let head = Encoder::new(128 + self.message.wire.len())
            .number(self.at)
            .number(self.until)
            .text(self.code);
        self.message.append_to(head).finish()
    }

    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, StoreError> {
        let read = || {
            let mut from = Decoder::new(bytes)?;
            let (at, until, code) = (from.number()?, from.number()?, from.text()?);
            Some(Self {
                at,
                until,
                code,
                message: MessageRecord::read(from)?,
            })
        };
        readable(read(), "a dead letter is unreadable")
    }
}

/// Attempts of a message, and the sessions it was offered in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AttemptRecord {
    pub(crate) attempts: u32,
    sessions: [u64; limits::SESSIONS_COUNTED_MAX],
    counted: usize,
}

impl AttemptRecord {
    /// Different sessions, up to the bound.
    pub(crate) fn sessions(&self) -> u32 {
        u32::try_from(self.counted).unwrap_or(u32::MAX)
    }

    /// One attempt more, in `session`.
    pub(crate) fn raise(&mut self, session: u64) {
        self.attempts = self.attempts.saturating_add(1);
        if self
            .sessions
            .iter()
            .take(self.counted)
            .any(|known| *known == session)
        {
            return;
        }
        if let Some(free) = self.sessions.get_mut(self.counted) {
            *free = session;
            self.counted += 1;
        }
    }

    pub(crate) fn encode(&self) -> Bytes {
        let head = Encoder::new(40).number(u64::from(self.attempts));
        self.sessions
            .iter()
            .take(self.counted)
            .fold(head, |to, session| to.number(*session))
            .finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        let read = || {
            let mut from = Decoder::new(bytes)?;
            let mut record = Self {
                attempts: u32::try_from(from.number()?).ok()?,
                ..Self::default()
            };
            while !from.0.is_empty() {
                *record.sessions.get_mut(record.counted)? = from.number()?;
                record.counted += 1;
            }
            Some(record)
        };
        readable(read(), "the attempts of a message are unreadable")
    }
}

/// An accepted envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DedupRecord {
    pub(crate) until: u64,
    pub(crate) digest: [u8; 32],
    pub(crate) route: Route,
    pub(crate) seq: Option<u64>,
}

impl DedupRecord {
    pub(crate) fn encode(&self) -> Bytes {
        let route = match self.route {
            Route::Mailbox => 0,
            Route::Direct => 1,
            Route::Peer => 2,
        };
        Encoder::new(51)
            .number(self.until)
            .raw(&self.digest)
            .raw(&[route])
            .optional(self.seq)
            .finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        let read = || {
            let mut from = Decoder::new(bytes)?;
            let (until, digest) = (from.number()?, from.array()?);
            let route = match from.byte()? {
                0 => Route::Mailbox,
                1 => Route::Direct,
                2 => Route::Peer,
                _ => return None,
            };
            let Optional(seq) = from.optional()?;
            from.end(Self {
                until,
                digest,
                route,
                seq,
            })
        };
        readable(read(), "a dedup record is unreadable")
    }
}

/// Writes a status.
pub(crate) fn encode_status(record: &StatusRecord) -> Bytes {
    let status = Status::ALL.iter().position(|status| *status == record.status);
    let status = status
        .and_then(|place| u8::try_from(place).ok())
        .unwrap_or(u8::MAX);
    Encoder::new(128)
        .raw(&[status])
        .number(keys::nanos(record.accepted_at))
        .number(keys::nanos(record.at))
        .optional(record.seq)
        .text(record.to.as_str())
        .text(record.code.as_deref().unwrap_or_default())
        .finish()
}

/// Reads a status.
pub(crate) fn decode_status(bytes: &[u8]) -> Result<StatusRecord, StoreError> {
    let read = || {
        let mut from = Decoder::new(bytes)?;
        let status = *Status::ALL.get(usize::from(from.byte()?))?;
        let (accepted_at, at) = (keys::moment(from.number()?), keys::moment(from.number()?));
        let Optional(seq) = from.optional()?;
        let to = Did::parse(from.text()?).ok()?;
        let code = Some(from.text()?)
            .filter(|code| !code.is_empty())
            .map(ToOwned::to_owned);
        from.end(StatusRecord {
            to,
            status,
            code,
            accepted_at,
            at,
            seq,
        })
    };
    readable(read(), "a status is unreadable")
}

/// A count that stands alone.
pub(crate) fn encode_count(count: u64) -> Bytes {
    Encoder::new(9).number(count).finish()
}

/// A count that stands alone, 0 where it is absent.
pub(crate) fn decode_count(bytes: Option<Bytes>) -> Result<u64, StoreError> {
    let Some(bytes) = bytes else { return Ok(0) };
    let read = || {
        let mut from = Decoder::new(&bytes)?;
        let count = from.number()?;
        from.end(count)
    };
    readable(read(), "a sender's count is unreadable")
}

#[cfg(test)]
mod tests;
