//! The values that go into a mailbox store, and its names and cursors.

use std::fmt;

use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Domain separation of [`MailboxId::of`].
const MAILBOX_TAG: &[u8] = b"aip mailbox";
/// Domain separation of [`MailboxId::of_peer`].
const OUTBOX_TAG: &[u8] = b"aip outbox";

/// A mailbox, named by the first 16 bytes of a SHA-256 over its owner's DID.
///
/// The owner is hashed as a tuple of length-prefixed parts, tag first, so two different owners never share a key prefix,
/// and no agent's mailbox is a peer's outbox.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MailboxId([u8; 16]);

impl MailboxId {
    /// The mailbox of `owner`. Senders are named by the same function where a fixed-size key is needed.
    pub fn of(owner: &Did) -> Self {
        Self::named(MAILBOX_TAG, owner.as_str())
    }

    /// The outbox for the hub of `peer`: what our agents send to its agents waits there (spec §8).
    pub fn of_peer(peer: &Domain) -> Self {
        Self::named(OUTBOX_TAG, peer.as_str())
    }

    fn named(tag: &[u8], owner: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [tag, owner.as_bytes()] {
            hash.update(u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
            hash.update(part);
        }
        let mut id = [0; 16];
        id.iter_mut()
            .zip(hash.finalize())
            .for_each(|(to, from)| *to = from);
        Self(id)
    }

    /// From the bytes of a key.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes as they stand in a key.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for MailboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MailboxId({:032x})", u128::from_be_bytes(self.0))
    }
}

/// The life of a store: new whenever it was created or restored (spec §6). Text on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Epoch(Box<str>);

impl Epoch {
    /// An epoch from 64 random bits, which the caller draws.
    pub fn from_random(bits: u64) -> Self {
        Self(format!("{bits:016x}").into_boxed_str())
    }

    /// An epoch from its text; `None` unless it is 1 to 64 letters, digits, `-` or `_`.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        ((1..=64).contains(&text.len()) && text.bytes().all(plain)).then(|| Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A place in a mailbox; written `epoch:seq`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The life of the store that `seq` belongs to.
    pub epoch: Epoch,
    /// The last sequence number seen; 0 before the first.
    pub seq: u64,
}

impl Cursor {
    /// Reads `epoch:seq`; `None` when it has another form.
    pub fn parse(text: &str) -> Option<Self> {
        let (epoch, seq) = text.split_once(':')?;
        if seq.is_empty() || !seq.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Some(Self {
            epoch: Epoch::parse(epoch)?,
            seq: seq.parse().ok()?,
        })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch, self.seq)
    }
}

/// How a message reached its recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// It waits (or waited) in the mailbox.
    Mailbox,
    /// The recipient's own endpoint took it.
    Direct,
    /// It waits (or waited) in the outbox for the recipient's hub.
    Peer,
}

impl Route {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mailbox => "mailbox",
            Self::Direct => "direct",
            Self::Peer => "peer",
        }
    }
}

/// How much may wait. Zero means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Pending messages in one mailbox.
    pub mailbox_messages: u32,
    /// Bytes of pending envelopes in one mailbox.
    pub mailbox_bytes: u64,
    /// Pending messages of one sender in one mailbox.
    pub sender_messages: u32,
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            mailbox_messages: crate::limits::MAILBOX_MESSAGES_MAX,
            mailbox_bytes: crate::limits::MAILBOX_BYTES_MAX,
            sender_messages: crate::limits::SENDER_MESSAGES_MAX,
        }
    }
}

/// One admitted envelope on its way into a store.
#[derive(Clone)]
pub struct Append {
    /// For whom.
    pub recipient: Did,
    /// Who signed it.
    pub sender: Did,
    /// The envelope's id.
    pub id: Uuid,
    /// `Envelope::dedup_key` (spec §5).
    pub dedup_key: [u8; 16],
    /// SHA-256 of the envelope's JCS bytes.
    pub digest: [u8; 32],
    /// Inclusive: `created_at + W + S`, at most [`crate::limits::DEDUP_LIFE_SECS`] after `accepted_at`.
    pub remember_until: Timestamp,
    /// The hub's (monotone) clock.
    pub accepted_at: Timestamp,
    /// The earlier of the envelope's own expiry and the mailbox retention; at it, the message is no longer
    /// offered.
    pub expires_at: Timestamp,
    /// The envelope as received, trimmed.
    pub wire: Bytes,
    /// [`Route::Direct`] stores no message.
    pub route: Route,
    /// What the recipient may hold; of an outbox, what may wait for the peer, in all and of one sender.
    pub quota: Quota,
}

impl Append {
    /// Where it goes: the recipient's mailbox, or the outbox for its hub.
    pub fn mailbox(&self) -> MailboxId {
        match self.route {
            Route::Mailbox | Route::Direct => MailboxId::of(&self.recipient),
            Route::Peer => MailboxId::of_peer(&self.recipient.domain()),
        }
    }
}

impl fmt::Debug for Append {
    /// Without the envelope.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Append")
            .field("recipient", &self.recipient)
            .field("sender", &self.sender)
            .field("id", &self.id)
            .field("accepted_at", &self.accepted_at)
            .field("wire_bytes", &self.wire.len())
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

/// Which messages to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Select {
    /// All with a higher sequence number.
    After(u64),
    /// Just these; the answer is in sequence order.
    Seqs(Vec<u64>),
}

/// A bounded read of a mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// Which.
    pub select: Select,
    /// At most so many.
    pub max_messages: usize,
    /// At most so many bytes of envelopes, but one message at least.
    pub max_bytes: usize,
    /// What has expired by then is left out.
    pub now: Timestamp,
}

/// Which dead letter to offer again, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redrive {
    /// Its sequence number among the dead letters.
    pub seq: u64,
    /// The earlier of the envelope's own expiry (read it from the dead letter) and `now` plus the retention.
    pub expires_at: Timestamp,
    /// The hub's clock.
    pub now: Timestamp,
    /// The mailbox's part of it is applied, the sender's is not: it is the recipient who asks.
    pub quota: Quota,
}
