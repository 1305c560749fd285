//! The mailbox over plain HTTP: long poll, acknowledgement, dead letters (spec §6).

use std::time::Duration;

use aip_protocol::envelope::Envelope;
use aip_protocol::error::ErrorCode;
use aip_protocol::time::Timestamp;
use serde_json::{Value, json};

use super::{Client, Taken};
use crate::error::{Error, Result};
use crate::inbox::{Cursor, Inbox, MessageKey};
use crate::limits::{LONG_POLL_SLACK, REQUEST_TIMEOUT, THREAD_MESSAGES_MAX};
use crate::message::{Content, Draft, Incoming, KIND_RECEIPT};
use crate::opening::{Judged, UNREADABLE, judge, peek};
use crate::session::frame::Offered;
use crate::transport::Request;
use crate::wire::{DeadAnswer, DeadItem, InboxAnswer, cursor_text, encoded};

const DEAD: &str = "/api/v1/inbox/dead";

/// What a long poll brought.
#[derive(Debug)]
#[non_exhaustive]
pub struct InboxPage {
    /// The mailbox's epoch.
    pub epoch: String,
    /// Everything up to here is settled.
    pub floor: u64,
    /// Messages, verified and opened, in order.
    pub items: Vec<Incoming>,
    /// Messages that are not good, and why. They stay in the mailbox; a listener would send them to the dead letters.
    pub unreadable: Vec<Unreadable>,
}

/// A message that is not good.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unreadable {
    /// Its place in the mailbox.
    pub seq: u64,
    /// `unreadable`, `signature_invalid`, `sender_unknown`, `history_forked`, `recipient_mismatch`, or `unavailable`
    /// where the sender could not be looked up just now.
    pub code: String,
}

/// A page of dead letters.
#[derive(Debug)]
#[non_exhaustive]
pub struct DeadLetters {
    /// The letters.
    pub items: Vec<DeadLetter>,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
}

/// A message that could not be delivered.
#[derive(Debug)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Its place in the mailbox, to be named in [`Client::redrive`].
    pub seq: u64,
    /// Why.
    pub code: String,
    /// Since when.
    pub at: Timestamp,
    /// The envelope; `None` when it cannot be read.
    pub envelope: Option<Envelope>,
    /// What it says, when one of our keys opens it. Its sender is not verified.
    pub content: Option<Content>,
}

impl Client {
    /// Asks for messages and waits up to `wait` for the first. `after` skips what was seen already; each offer counts as
    /// an attempt, so what is taken is to be acknowledged.
    ///
    /// # Errors
    /// `epoch_changed` when `after` is of another epoch than the mailbox.
    pub async fn fetch_inbox(&self, after: Option<&Cursor>, limit: u32, wait: Duration) -> Result<InboxPage> {
        let mut path = format!("/api/v1/inbox?limit={limit}&wait_s={}", wait.as_secs());
        if let Some(Cursor { epoch, seq }) = after {
            path.push_str("&after=");
            path.push_str(&encoded(&format!("{epoch}:{seq}")));
        }
        self.fetch_page(path, wait).await
    }

    /// The same for the messages of one conversation; others are passed by, and no attempt of theirs is spent.
    pub(super) async fn fetch_thread(&self, thread: &str, wait: Duration) -> Result<InboxPage> {
        let (thread, wait_secs) = (encoded(thread), wait.as_secs());
        let path = format!("/api/v1/inbox?limit={THREAD_MESSAGES_MAX}&wait_s={wait_secs}&thread={thread}");
        self.fetch_page(path, wait).await
    }

    async fn fetch_page(&self, path: String, wait: Duration) -> Result<InboxPage> {
        let timeout = (wait + LONG_POLL_SLACK).max(REQUEST_TIMEOUT);
        let request = || Request::get("asking for messages", path.clone()).timeout(timeout);
        let InboxAnswer { epoch, floor, items } = self.call_with_token(request).await?.json()?;
        let mut page = InboxPage {
            epoch,
            floor,
            items: Vec::new(),
            unreadable: Vec::new(),
        };
        for item in items {
            let (seq, attempt, accepted_at) = (item.seq, item.attempt, item.accepted_at);
            let offered = Offered {
                epoch: page.epoch.clone(),
                seq,
                attempt,
                accepted_at,
                envelope: item.envelope,
            };
            match self.judge_offered(&offered).await? {
                Judged::Good(message) => page.items.push(*message),
                Judged::Bad(code) => page.unreadable.push(Unreadable {
                    seq,
                    code: code.to_owned(),
                }),
                Judged::Later(_) => page.unreadable.push(Unreadable {
                    seq,
                    code: "unavailable".to_owned(),
                }),
            }
        }
        Ok(page)
    }

    pub(crate) async fn judge_offered(&self, offered: &Offered) -> Result<Judged> {
        match Envelope::parse(offered.envelope.get().as_bytes()) {
            Ok(envelope) => judge(self, offered, envelope).await,
            Err(_) => Ok(Judged::Bad(UNREADABLE)),
        }
    }

    /// Acknowledges everything up to `upto`, and the messages in `also`. Durable when it returns.
    ///
    /// # Errors
    /// `cursor_invalid` for what was never offered.
    pub async fn ack_inbox(&self, epoch: &str, upto: u64, also: &[u64]) -> Result<()> {
        let body = json!({"epoch": epoch, "upto": upto, "also": also}).to_string();
        let request = || Request::post("acknowledging", "/api/v1/inbox/ack", body.clone());
        self.call_with_token(request).await.map(drop)
    }

    /// One long poll through an inbox: returns the messages that were not processed before, and acknowledges those that
    /// were. Receipts are not among them: they are checked, kept ([`Client::receipts`]) and acknowledged. When a message is
    /// processed, [`Client::settle`] it.
    pub async fn poll(&self, inbox: &dyn Inbox, limit: u32, wait: Duration) -> Result<Vec<Incoming>> {
        let page = self.fetch_inbox(None, limit, wait).await?;
        inbox.enter(&page.epoch, page.floor).await?;
        let (mut fresh, mut before) = (Vec::new(), Vec::new());
        for message in page.items {
            if inbox.seen(&message.key()).await? {
                before.push(message.seq);
            } else if message.kind == KIND_RECEIPT {
                match self.take_receipt(&message).await {
                    Ok(Taken::Bad(code)) => {
                        tracing::warn!(seq = message.seq, code, from = %message.from, "a receipt is not good");
                    }
                    Ok(Taken::Kept(_) | Taken::Done) => {}
                    // It stays in the mailbox, and holds up nothing else.
                    Err(error) => {
                        tracing::warn!(
                            seq = message.seq,
                            error = error.sentence(),
                            "a receipt cannot be kept just now"
                        );
                        continue;
                    }
                }
                inbox.record(&[message.key()], self.now()).await?;
                before.push(message.seq);
            } else {
                fresh.push(message);
            }
        }
        if !before.is_empty() {
            self.ack_recorded(&page.epoch, page.floor, &before).await?;
        }
        Ok(fresh)
    }

    /// Records messages as processed, then acknowledges them. Once recorded they are not given again by
    /// [`Client::poll`], also when this fails, or when the mailbox has got a new epoch meanwhile: the next poll
    /// acknowledges them where they lie then. A sender that asks for a receipt gets one, as from [`crate::Acker::ack`].
    pub async fn settle(&self, inbox: &dyn Inbox, messages: &[Incoming]) -> Result<()> {
        let Some(first) = messages.first() else {
            return Ok(());
        };
        let keys: Vec<MessageKey> = messages.iter().map(Incoming::key).collect();
        inbox.record(&keys, self.now()).await?;
        let also: Vec<u64> = messages
            .iter()
            .filter(|m| m.epoch == first.epoch)
            .map(|m| m.seq)
            .collect();
        self.ack_recorded(&first.epoch, 0, &also).await?;
        let receipts: Vec<Draft> = self.answers_for(messages).collect();
        if !receipts.is_empty() {
            self.send_receipts(&receipts).await;
        }
        Ok(())
    }

    /// What is recorded and cannot be acknowledged at this place any more comes again, is known, and is settled then.
    pub(super) async fn ack_recorded(&self, epoch: &str, upto: u64, also: &[u64]) -> Result<()> {
        let is_moved =
            |error: &Error| error.is_code(ErrorCode::EpochChanged) || error.is_code(ErrorCode::CursorInvalid);
        match self.ack_inbox(epoch, upto, also).await {
            Err(error) if is_moved(&error) => {
                tracing::debug!(%error, "recorded here, and to be settled later");
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Messages that could not be delivered, oldest first.
    pub async fn dead_letters(&self, cursor: Option<&str>) -> Result<DeadLetters> {
        let path = match cursor {
            Some(cursor) => format!("{DEAD}?cursor={}", encoded(cursor)),
            None => DEAD.to_owned(),
        };
        let request = || Request::get("asking for dead letters", path.clone());
        let answer: DeadAnswer = self.call_with_token(request).await?.json()?;
        let items = answer
            .items
            .into_iter()
            .map(|item| self.dead_letter(item))
            .collect();
        Ok(DeadLetters {
            items,
            next_cursor: answer.next_cursor.as_ref().and_then(cursor_text),
        })
    }

    fn dead_letter(&self, item: DeadItem) -> DeadLetter {
        let envelope = Envelope::parse(item.envelope.get().as_bytes()).ok();
        let content = envelope.as_ref().and_then(|envelope| peek(self, envelope));
        DeadLetter {
            seq: item.seq,
            code: item.code,
            at: item.at,
            envelope,
            content,
        }
    }

    /// Puts a dead letter back into the mailbox. Returns its new place, where the hub tells it.
    pub async fn redrive(&self, seq: u64) -> Result<Option<u64>> {
        let request = || Request::post("redriving", format!("{DEAD}/{seq}/redrive"), "{}");
        let answer = self.call_with_token(request).await?;
        if answer.body.is_empty() {
            return Ok(None);
        }
        let value: Value = answer.json()?;
        Ok(value.get("seq").and_then(Value::as_u64))
    }
}
