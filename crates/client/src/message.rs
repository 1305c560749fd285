//! What agents write and read: a draft before it is sealed, the sealed envelope, and the opened message.

mod content;

use std::fmt;
use std::time::Duration;

use aip_protocol::envelope::{Envelope, EnvelopeDraft};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::Object;
use aip_protocol::limits::ENVELOPE_BYTES_MAX;
use aip_protocol::multikey::SealingKey;
use aip_protocol::name::{Did, Handle};
use aip_protocol::time::Timestamp;
use bytes::Bytes;
use uuid::Uuid;

use crate::entropy::Entropy;
use crate::error::Result;
use crate::inbox::{Cursor, MessageKey};
use crate::keys::AgentKeys;

pub use content::{Body, Content};

/// The type of a message that is nothing more special (spec §11).
pub const KIND_DEFAULT: &str = "aip.message";
/// The type of a receipt (spec §11).
pub const KIND_RECEIPT: &str = "aip.receipt";
/// The type of a hub's word that a message could not be delivered.
pub const KIND_BOUNCE: &str = "aip.bounce";

/// Reads who is meant: a handle (`alice#aigentix.org`, also with `%23`) or a DID.
///
/// # Errors
/// The refusals of `aip_protocol::name`.
pub fn parse_agent(text: &str) -> Result<Did, Refusal> {
    if text.starts_with("did:") {
        Did::parse_input(text)
    } else {
        Handle::parse(text).map(|handle| handle.did())
    }
}

/// A message before it is sealed.
#[derive(Clone)]
pub struct Draft {
    to: String,
    kind: String,
    content: Content,
    thread: Option<String>,
    reply_to: Option<String>,
    expires_in: Option<Duration>,
    id: Option<Uuid>,
    extra: Object,
    asks_receipt: bool,
}

impl Draft {
    /// A message to an agent, named by handle or DID.
    pub fn new(to: impl fmt::Display, content: Content) -> Self {
        Self {
            to: to.to_string(),
            kind: KIND_DEFAULT.to_owned(),
            content,
            thread: None,
            reply_to: None,
            expires_in: None,
            id: None,
            extra: Object::new(),
            asks_receipt: false,
        }
    }

    /// Plain text.
    pub fn text(to: impl fmt::Display, text: impl Into<String>) -> Self {
        Self::new(to, Content::text(text))
    }

    /// JSON.
    pub fn json(to: impl fmt::Display, value: impl Into<serde_json::Value>) -> Self {
        Self::new(to, Content::json(value))
    }

    /// An answer: to its sender, in its thread.
    pub fn reply(to: &Incoming, content: Content) -> Self {
        let mut draft = Self::new(&to.from, content);
        draft.thread.clone_from(&to.thread);
        draft.reply_to = Some(to.id.to_string());
        draft
    }

    /// The type, such as `aip.commerce.offer.request`: at least two parts, readable by hubs.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = kind.into();
        self
    }

    /// The conversation it belongs to, 1 to 128 bytes.
    #[must_use]
    pub fn thread(mut self, thread: impl Into<String>) -> Self {
        self.thread = Some(thread.into());
        self
    }

    /// What it answers, 1 to 128 bytes.
    #[must_use]
    pub fn reply_to(mut self, reply_to: impl Into<String>) -> Self {
        self.reply_to = Some(reply_to.into());
        self
    }

    /// How long it is worth delivering.
    #[must_use]
    pub fn expires_in(mut self, life: Duration) -> Self {
        self.expires_in = Some(life);
        self
    }

    /// An id of the caller's own (UUID v4), such as one that was written down before sending.
    #[must_use]
    pub fn id(mut self, id: Uuid) -> Self {
        self.id = Some(id);
        self
    }

    /// Asks the recipient for a receipt: its own signed word that it has this very message. The wish lies in the sealed
    /// body, so that no hub learns of it; the type of the receipt itself is in the clear, as that of every message. A
    /// recipient may decline, and its library may be too old to know of receipts.
    #[must_use]
    pub fn ask_receipt(mut self) -> Self {
        self.asks_receipt = true;
        self
    }

    /// Whether a receipt is asked for. Never for a receipt.
    pub(crate) fn asks_receipt(&self) -> bool {
        self.asks_receipt && self.kind != KIND_RECEIPT
    }

    /// Further header members: signed, and readable by hubs.
    #[must_use]
    pub fn extra(mut self, extra: Object) -> Self {
        self.extra = extra;
        self
    }

    /// Who it is for.
    pub fn recipient(&self) -> Result<Did, Refusal> {
        parse_agent(&self.to)
    }

    /// Fixes the id, so that sealing again is the same message to everyone.
    pub(crate) fn with_fixed_id(mut self, entropy: &Entropy) -> Self {
        self.id.get_or_insert_with(|| entropy.message_id());
        self
    }

    /// Fixes what an answer is recognised by: the id, and a conversation, of its own where it has none. What nobody waits
    /// for any more need not be answered.
    pub(crate) fn into_request(self, entropy: &Entropy, wait: Duration) -> (Self, Uuid, String) {
        let id = self.id.unwrap_or_else(|| entropy.message_id());
        let thread = self.thread.clone().unwrap_or_else(|| id.hyphenated().to_string());
        let draft = Self {
            id: Some(id),
            thread: Some(thread.clone()),
            expires_in: self.expires_in.or(Some(wait)),
            ..self
        };
        (draft, id, thread)
    }

    pub(crate) fn seal(
        &self,
        keys: &AgentKeys,
        recipient: (&Did, &SealingKey),
        now: Timestamp,
        entropy: &Entropy,
    ) -> Result<SealedEnvelope> {
        let id = self.id.unwrap_or_else(|| entropy.message_id());
        let (to, sealing_key) = recipient;
        let mut draft = EnvelopeDraft::new(id, keys.did().clone(), to.clone(), self.kind.as_str(), now);
        draft.expires_at = self.expires_in.map(|life| now + life);
        draft.thread.clone_from(&self.thread);
        draft.reply_to.clone_from(&self.reply_to);
        draft.extra = self.extra.clone();
        let mut plaintext = self.content.to_plaintext();
        plaintext.ask_receipt = self.asks_receipt();
        let plaintext = plaintext.to_bytes();
        let envelope =
            entropy.with(|mut rng| draft.seal(&keys.signing, sealing_key, &plaintext, &mut rng))?;
        SealedEnvelope::new(envelope)
    }
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft")
            .field("to", &self.to)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// A sealed and signed message with the very bytes that go out. Every attempt sends these; write them down before the
/// first one, and a restart can go on where it stopped.
#[derive(Debug, Clone)]
pub struct SealedEnvelope {
    envelope: Envelope,
    wire: Bytes,
}

impl SealedEnvelope {
    fn new(envelope: Envelope) -> Result<Self> {
        let wire = Bytes::from(envelope.to_wire());
        if wire.len() > ENVELOPE_BYTES_MAX {
            let detail = format!(
                "the sealed message has {} bytes, the limit is {ENVELOPE_BYTES_MAX}",
                wire.len()
            );
            let refusal = Refusal::new(ErrorCode::EnvelopeTooLarge, detail).with("limit", ENVELOPE_BYTES_MAX);
            return Err(refusal.into());
        }
        Ok(Self { envelope, wire })
    }

    /// What was written down.
    ///
    /// # Errors
    /// When the bytes are not an envelope.
    pub fn from_wire(wire: impl Into<Bytes>) -> Result<Self> {
        let wire = wire.into();
        Ok(Self {
            envelope: Envelope::parse(&wire)?,
            wire,
        })
    }

    /// The id of the message.
    pub fn id(&self) -> Uuid {
        self.envelope.id
    }

    /// The envelope.
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// The bytes that go out.
    pub fn wire(&self) -> &Bytes {
        &self.wire
    }
}

/// A message that was offered, verified and opened.
#[derive(Clone)]
#[non_exhaustive]
pub struct Incoming {
    /// The mailbox's epoch.
    pub epoch: String,
    /// Its place in the mailbox.
    pub seq: u64,
    /// Counts the times it was offered, from 1.
    pub attempt: u32,
    /// When the first hub took it.
    pub accepted_at: Timestamp,
    /// Who signed it. Verified against the sender's identity history.
    pub from: Did,
    /// Its id.
    pub id: Uuid,
    /// Its type.
    pub kind: String,
    /// The conversation it belongs to.
    pub thread: Option<String>,
    /// What it answers.
    pub reply_to: Option<String>,
    /// What it says.
    pub content: Content,
    /// Whether its sender asks for a receipt.
    pub asks_receipt: bool,
    /// The envelope as it came.
    pub envelope: Envelope,
}

impl Incoming {
    /// What an [`crate::inbox::Inbox`] knows it by.
    pub fn key(&self) -> MessageKey {
        let cursor = Cursor {
            epoch: self.epoch.clone(),
            seq: self.seq,
        };
        MessageKey {
            cursor,
            id: self.envelope.dedup_key(),
        }
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("epoch", &self.epoch)
            .field("seq", &self.seq)
            .field("attempt", &self.attempt)
            .field("from", &self.from)
            .field("id", &self.id)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
