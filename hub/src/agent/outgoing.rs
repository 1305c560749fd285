//! Sending: sealed for its recipient, signed, and through the door of a local sender.

use aip_protocol::envelope::EnvelopeDraft;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_relay::admission::Door;
use aip_relay::relay::{SendError, Submission};
use bytes::Bytes;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};

use super::HubAgent;

/// Domain separation of [`message_id`].
const ID_TAG: &str = "aip/1 hub agent id";

/// A message of the hub's own agent.
#[derive(Clone)]
pub struct Outgoing {
    /// Who it is for.
    pub to: Did,
    /// The member `type`.
    pub kind: String,
    /// The conversation it belongs to.
    pub thread: Option<String>,
    /// What it answers.
    pub reply_to: Option<String>,
    /// After this moment it is no longer delivered.
    pub expires_at: Option<Timestamp>,
    /// Messages to one recipient, of one type and with one key are one message, over restarts, in all processes of the
    /// hub and for 14 days: only the first goes out. Without a key each is a message of its own.
    pub key: Option<String>,
    /// `{"content_type", "body"}`.
    plaintext: Vec<u8>,
}

impl Outgoing {
    /// A message whose body is JSON of this media type. The other members are to be set by name.
    ///
    /// # Errors
    /// The body does not print as JSON.
    pub fn json(
        to: Did,
        kind: impl Into<String>,
        content_type: &str,
        body: &impl Serialize,
    ) -> Result<Self, serde_json::Error> {
        #[derive(Serialize)]
        struct Plain<'a, B> {
            content_type: &'a str,
            body: &'a B,
        }
        Ok(Self {
            to,
            kind: kind.into(),
            thread: None,
            reply_to: None,
            expires_at: None,
            key: None,
            plaintext: serde_json::to_vec(&Plain { content_type, body })?,
        })
    }
}

impl std::fmt::Debug for Outgoing {
    /// Without what it says.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outgoing")
            .field("to", &self.to)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is on its way, durably.
    Sent(Submission),
    /// A message with this key went out before; nothing was done.
    Known,
}

/// The id of the message with this key: a UUID v4 by its form, the first 16 bytes of SHA-256 over tag, recipient, type
/// and key, each after its length as 4 bytes, big-endian.
pub fn message_id(to: &Did, kind: &str, key: &str) -> Uuid {
    let mut hash = Sha256::new();
    for part in [ID_TAG, to.as_str(), kind, key] {
        hash.update(u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
        hash.update(part);
    }
    let mut bytes = [0; 16];
    bytes
        .iter_mut()
        .zip(hash.finalize())
        .for_each(|(to, from)| *to = from);
    Builder::from_random_bytes(bytes).into_uuid()
}

impl HubAgent {
    /// Sends a message. It goes through the checks of an envelope of any local sender, but costs no rate. When this
    /// returns `Ok`, it is stored, delivered or queued durably, or was before.
    ///
    /// # Errors
    /// [`SendError::Refused`] with the code of the door (`mailbox_full`, `recipient_unknown`, …) and no record left;
    /// any other error is a failure, and the same call may succeed later.
    pub async fn send(&self, message: Outgoing) -> Result<Outcome, SendError> {
        let id = match &message.key {
            Some(key) => message_id(&message.to, &message.kind, key),
            None => self.with_rng(|mut rng| aip_protocol::envelope::new_id(&mut rng)),
        };
        let (is_keyed, to) = (message.key.is_some(), message.to.clone());
        // The dedup window is a matter of minutes, a status is kept for as long as a request may wait.
        if is_keyed && !self.relay.status(&self.did, id, Some(&to)).await?.is_empty() {
            return Ok(Outcome::Known);
        }
        let wire = self.seal(id, message).await?;
        let door = Door::Hub(self.did.clone());
        match self.relay.submit(wire, &door).await {
            Ok(submission) => {
                self.stats.count_sent();
                Ok(Outcome::Sent(submission))
            }
            // Sealed by another process, or before a crash: other bytes, the same message.
            Err(SendError::Refused(refusal)) if is_keyed && refusal.code == ErrorCode::IdReused => {
                Ok(Outcome::Known)
            }
            Err(error) => Err(error),
        }
    }

    async fn seal(&self, id: Uuid, message: Outgoing) -> Result<Bytes, SendError> {
        let recipient = self.recipients.identity(&message.to).await?;
        let Some(recipient) = recipient else {
            let detail = "No agent of that name is known here.";
            return Err(Refusal::new(ErrorCode::RecipientUnknown, detail).into());
        };
        let Some(key) = recipient.sealing_key().filter(|_| !recipient.is_deactivated()) else {
            let detail = "The recipient's identity was ended; it receives no more.";
            return Err(Refusal::new(ErrorCode::RecipientDeactivated, detail).into());
        };
        let now = self.now_of_key().await?;
        let mut draft = EnvelopeDraft::new(id, self.did.clone(), message.to, message.kind, now);
        draft.thread = message.thread;
        draft.reply_to = message.reply_to;
        draft.expires_at = message.expires_at;
        let sealed =
            self.with_rng(|mut rng| draft.seal(&self.keys.signing, key, &message.plaintext, &mut rng))?;
        Ok(sealed.to_wire().into())
    }

    /// Now, and not before the operation that lists the signing key, which another process with another clock may have
    /// made.
    async fn now_of_key(&self) -> Result<Timestamp, SendError> {
        let now = self.clock.now();
        let own = self.recipients.identity(&self.did).await?;
        Ok(own.map_or(now, |own| now.max(own.head().created_at)))
    }
}
