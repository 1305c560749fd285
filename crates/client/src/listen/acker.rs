//! Settling messages: recorded first, acknowledged after.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::answering::Answer;
use crate::backoff::nak_secs;
use crate::client::Client;
use crate::error::{Error, Result};
use crate::inbox::{Cursor, Inbox, MessageKey};
use crate::limits::{NAK_SECS_MAX, SOCKET_SEND_TIMEOUT};
use crate::message::{Incoming, SealedEnvelope};
use crate::session::frame::Offered;
use crate::session::pump::Command;
use crate::wire::Sent;

/// Settles the messages of one listener. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Acker {
    pub(super) client: Client,
    pub(super) inbox: Arc<dyn Inbox>,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) answers: mpsc::Sender<Answer>,
    /// Messages that the application works on: by id, where each was offered last.
    pub(super) open: Arc<Mutex<HashMap<[u8; 16], Cursor>>>,
}

impl Acker {
    /// The message is processed: records it in the inbox, then tells the hub. When this returns, it will not be handed over
    /// again, even if the hub never hears of it. A sender that asks for a receipt gets one, unless this client gives none
    /// ([`crate::ClientBuilder::answer_receipts`]) or too many wait to be sent: nothing here waits for them.
    ///
    /// # Errors
    /// A broken inbox. Then the hub was not told.
    pub async fn ack(&self, message: &Incoming) -> Result<()> {
        self.ack_all(std::slice::from_ref(message)).await
    }

    /// The same for several at once, with one write.
    pub async fn ack_all(&self, messages: &[Incoming]) -> Result<()> {
        let keys: Vec<MessageKey> = messages
            .iter()
            .map(|message| self.newest_place(message))
            .collect();
        self.inbox.record(&keys, self.client.now()).await?;
        for key in &keys {
            self.close(&key.id);
            self.ack_place(key).await?;
        }
        // Whoever asks for a receipt and is slow to be found then must not hold up what is acknowledged.
        let receipts = self.client.answers_for(messages);
        let left_out = receipts
            .filter_map(|receipt| self.answers.try_send(Answer::Receipt(Box::new(receipt))).err())
            .count();
        if left_out > 0 {
            tracing::warn!(
                left_out,
                "receipts are not given: too many wait, or the listener is closed"
            );
        }
        Ok(())
    }

    /// The message could not be processed just now: it comes again after 5 s, doubling with each attempt to 5 minutes.
    pub async fn nak(&self, message: &Incoming) -> Result<()> {
        self.nak_after(message, nak_secs(message.attempt)).await
    }

    /// The same with a pause of the caller's own, at most 5 minutes.
    pub async fn nak_after(&self, message: &Incoming, retry_after_secs: u64) -> Result<()> {
        let key = self.newest_place(message);
        self.close(&key.id);
        self.nak_place(&key, retry_after_secs.min(NAK_SECS_MAX)).await
    }

    /// The message never can be processed: to the dead letters, with this code, and the sender learns it.
    pub async fn reject(&self, message: &Incoming, code: &str) -> Result<()> {
        let key = self.newest_place(message);
        self.close(&key.id);
        let (epoch, seq) = (key.cursor.epoch, key.cursor.seq);
        self.tell(Command::Reject {
            epoch,
            seq,
            code: code.to_owned(),
        })
        .await
    }

    pub(super) async fn submit(&self, sealed: &SealedEnvelope) -> Result<Sent> {
        // The wire bytes are canonical JSON, so they are UTF-8.
        let text =
            std::str::from_utf8(sealed.wire()).map_err(|error| Error::answer("sending a message", error))?;
        let (answer, answered) = oneshot::channel();
        self.tell(Command::Send {
            envelope: text.into(),
            answer,
        })
        .await?;
        match timeout(SOCKET_SEND_TIMEOUT, answered).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Error::Closed),
            Err(elapsed) => Err(Error::unreachable("sending over the session", elapsed)),
        }
    }

    /// Marks a message as worked on.
    pub(super) fn open(&self, key: &MessageKey) {
        self.worked_on().insert(key.id, key.cursor.clone());
    }

    /// Whether the message is worked on. If so, this is where it lies now: that is the place to settle.
    pub(super) fn still_open(&self, key: &MessageKey) -> bool {
        let mut worked_on = self.worked_on();
        let place = worked_on.get_mut(&key.id);
        place.map(|place| place.clone_from(&key.cursor)).is_some()
    }

    /// The message may have been offered anew since it was handed over: in a new epoch, or after a redrive.
    fn newest_place(&self, message: &Incoming) -> MessageKey {
        let mut key = message.key();
        if let Some(place) = self.worked_on().get(&key.id) {
            key.cursor.clone_from(place);
        }
        key
    }

    pub(super) fn close(&self, id: &[u8; 16]) {
        self.worked_on().remove(id);
    }

    fn worked_on(&self) -> MutexGuard<'_, HashMap<[u8; 16], Cursor>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn ack_place(&self, key: &MessageKey) -> Result<()> {
        self.tell(Command::Ack {
            epoch: key.cursor.epoch.clone(),
            seq: key.cursor.seq,
        })
        .await
    }

    pub(super) async fn nak_place(&self, key: &MessageKey, retry_after_secs: u64) -> Result<()> {
        let (epoch, seq) = (key.cursor.epoch.clone(), key.cursor.seq);
        self.tell(Command::Nak {
            epoch,
            seq,
            retry_after_secs,
        })
        .await
    }

    pub(super) async fn reject_place(&self, offered: &Offered, code: &str) -> Result<()> {
        let (epoch, seq) = (offered.epoch.clone(), offered.seq);
        self.tell(Command::Reject {
            epoch,
            seq,
            code: code.to_owned(),
        })
        .await
    }

    /// A pump that is gone has nothing to be told: what is recorded counts, and what is not is offered again.
    async fn tell(&self, command: Command) -> Result<()> {
        drop(self.commands.send(command).await);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use aip_protocol::name::Did;
    use aip_protocol::time::Timestamp;
    use futures_util::FutureExt as _;

    use super::*;
    use crate::entropy::Entropy;
    use crate::inbox::MemoryInbox;
    use crate::keys::AgentKeys;
    use crate::message::{Content, Draft};

    fn keys(did: &str) -> AgentKeys {
        AgentKeys::generate(Did::parse(did).unwrap(), &Entropy::system())
    }

    /// A stranger's message that asks for a receipt.
    fn asking(seq: u64, own: &AgentKeys) -> Incoming {
        let stranger = keys("did:aip:two.example:mallory");
        let now = Timestamp::from_unix_millis(1_800_000_000_000);
        let to = (own.did(), own.sealing[0].public());
        let draft = Draft::text(own.did(), "x").ask_receipt();
        let sealed = draft.seal(&stranger, to, now, &Entropy::system()).unwrap();
        let envelope = sealed.envelope().clone();
        Incoming {
            epoch: "e".to_owned(),
            seq,
            attempt: 1,
            accepted_at: now,
            from: envelope.from.clone(),
            id: envelope.id,
            kind: envelope.kind.clone(),
            thread: None,
            reply_to: None,
            content: Content::text("x"),
            asks_receipt: true,
            envelope,
        }
    }

    #[test]
    fn acknowledging_does_not_wait_for_those_who_ask() {
        let own = keys("did:aip:one.example:bob");
        let client = Client::builder("http://localhost:1").keys(own.clone());
        let (commands, mut told) = mpsc::channel(8);
        let (answers, mut waiting) = mpsc::channel(1);
        let acker = Acker {
            client: client.build().unwrap(),
            inbox: Arc::new(MemoryInbox::new()),
            commands,
            answers,
            open: Arc::default(),
        };
        let messages = [asking(1, &own), asking(2, &own)];
        let acked = acker.ack_all(&messages).now_or_never();
        acked.expect("it waits for nothing").unwrap();
        let acks = std::iter::from_fn(|| told.try_recv().ok());
        assert_eq!(acks.count(), 2);
        assert!(matches!(waiting.try_recv(), Ok(Answer::Receipt(_))));
        assert!(waiting.try_recv().is_err(), "there was no room for the other");
    }
}
