//! Reading by cursor: what long poll and SSE have in common.

use std::borrow::Cow;
use std::sync::Arc;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use bytes::Bytes;
use serde::Deserialize;

use super::Inbox;
use crate::limits::{DELIVERY_MESSAGES_MAX, READER_BYTES_MAX};
use crate::mailbox::{Epoch, Fetch, MailboxId, Select, Status, StoreError, StoredMessage};
use crate::presence::Reading;
use crate::session::{SessionId, is_exhausted};

/// A message offered to a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its place in the mailbox.
    pub seq: u64,
    /// Which offer this is, from 1.
    pub attempt: u32,
    /// When the hub accepted it.
    pub accepted_at: Timestamp,
    /// The envelope as received.
    pub wire: Bytes,
}

/// What one look into the mailbox found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The life of the store.
    pub epoch: Epoch,
    /// Everything up to here is settled.
    pub floor: u64,
    /// New messages; each counts as offered.
    pub items: Vec<Item>,
}

/// Reads a mailbox forward from a cursor, each message once. What it offers is not in any session's window: the reader
/// takes as much as it asks for.
#[derive(Debug)]
pub struct Reader {
    inbox: Inbox,
    reading: Reading,
    owner: Arc<Did>,
    session: SessionId,
    after: u64,
    /// The only conversation that is read.
    thread: Option<String>,
}

impl Reader {
    pub(super) fn new(inbox: Inbox, reading: Reading, owner: Did, session: SessionId, after: u64) -> Self {
        Self {
            inbox,
            reading,
            owner: Arc::new(owner),
            session,
            after,
            thread: None,
        }
    }

    /// Reads the messages of one conversation only. Others are passed by: not offered, and no attempt is counted.
    #[must_use]
    pub fn of_thread(mut self, thread: String) -> Self {
        self.thread = Some(thread);
        self
    }

    /// Whose mailbox it is.
    pub fn owner(&self) -> &Did {
        &self.owner
    }

    /// The messages after the last ones, at most `limit` and about 1 MiB; none if there are none yet.
    pub async fn read(&mut self, limit: usize) -> Result<Page, StoreError> {
        self.reading.look();
        let limit = limit.min(DELIVERY_MESSAGES_MAX);
        // Of one conversation there may be few among many.
        let max_messages = self.thread.as_ref().map_or(limit, |_| DELIVERY_MESSAGES_MAX);
        loop {
            let fetch = Fetch {
                select: Select::After(self.after),
                max_messages,
                max_bytes: READER_BYTES_MAX,
                now: self.inbox.clock.now(),
            };
            let mut found = self.inbox.store.fetch(self.mailbox(), fetch).await?;
            let mut last = found.last().map(|message| message.seq);
            if let Some(thread) = &self.thread {
                found.retain(|message| is_of(thread, &message.wire));
                if found.len() > limit {
                    found.truncate(limit);
                    last = found.last().map(|message| message.seq);
                }
            }
            let items = self.offer(found).await?;
            if let Some(last) = last {
                self.after = last;
                if items.is_empty() {
                    continue;
                }
            }
            let state = self.inbox.store.state(self.mailbox()).await?;
            return Ok(Page {
                epoch: state.epoch,
                floor: state.floor,
                items,
            });
        }
    }

    /// Waits until there may be more than [`Self::read`] found last, or the wait was ended.
    pub async fn changed(&self) {
        self.reading.changed().await;
    }

    /// Whether the hub wants the reader to end: the agent or its key is no longer good, or the hub goes away.
    pub fn is_closed(&self) -> bool {
        self.reading.is_closed()
    }

    fn mailbox(&self) -> &MailboxId {
        self.reading.attached().mailbox()
    }

    /// Counts an offer of each message; those that have had their chances go to the dead letters instead.
    async fn offer(&self, found: Vec<StoredMessage>) -> Result<Vec<Item>, StoreError> {
        let (exhausted, fresh): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|message| is_exhausted(message.attempts, message.sessions));
        for message in exhausted {
            self.inbox
                .bury(self.mailbox(), message.seq, crate::session::ATTEMPTS_EXHAUSTED)
                .await?;
        }
        let Some(last) = fresh.last().map(|message| message.seq) else {
            return Ok(Vec::new());
        };
        let seqs: Vec<u64> = fresh.iter().map(|message| message.seq).collect();
        let attempts = self
            .inbox
            .store
            .offer(self.mailbox(), &seqs, self.session.as_u64())
            .await?;
        // Of one conversation it says nothing of what lies before it.
        if self.thread.is_none() {
            let presence = &self.inbox.presence;
            presence.offered(self.mailbox(), last, self.inbox.clock.now());
        }
        let items = fresh.into_iter().zip(attempts).map(|(message, attempt)| Item {
            seq: message.seq,
            attempt: attempt.attempt,
            accepted_at: message.accepted_at,
            wire: message.wire,
        });
        Ok(items.collect())
    }
}

/// Whether an envelope, which was checked when it came, belongs to this conversation.
fn is_of(thread: &str, wire: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow, default)]
        thread: Option<Cow<'a, str>>,
    }
    serde_json::from_slice::<Head<'_>>(wire).is_ok_and(|head| head.thread.as_deref() == Some(thread))
}

impl Inbox {
    /// To the dead letters, and the sender learns it.
    pub(super) async fn bury(&self, mailbox: &MailboxId, seq: u64, code: &str) -> Result<(), StoreError> {
        let now = self.clock.now();
        let settled = self.store.bury(mailbox, seq, code, now).await?;
        self.presence.buried(mailbox, seq, now);
        self.presence
            .statuses(settled.into_iter().collect(), Status::Dead, Some(code), now);
        Ok(())
    }
}
