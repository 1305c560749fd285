//! One mailbox, as this process knows it.
//!
//! Nothing here is needed to serve a mailbox: it can be read anew at any time, and other processes change it too.
//! What is remembered only saves reads. Two things keep several processes apart: an entry is published only right
//! after the entry that its publisher knew as the last (so sequence numbers are dense and used once), and the
//! cursor is replaced only by whoever knew it (so a message is settled once).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aip_protocol::time::Timestamp;
use aip_relay::limits::ACK_ALSO_MAX;
use aip_relay::mailbox::{AckOutcome, Acked, Attempt, MailboxId, MailboxState, Status, StoreError};
use tokio::time::sleep;

use self::memory::{Known, Memory};
use self::tail::Tail;
use crate::cursor::Cursor;
use crate::limits;
use crate::nats::Stored;
use crate::room::Room;
use crate::streams::Place;

mod append;
mod changes;
mod dead;
mod fetch;
mod heads;
mod memory;
mod outbox;
mod tail;

pub(crate) use self::changes::Change;

/// See the module.
#[derive(Debug)]
pub(crate) struct Mailbox {
    pub(crate) id: MailboxId,
    pub(crate) place: Place,
    pub(crate) room: Arc<Room>,
    /// The last entry, held by whoever appends; `None`: to be read.
    tail: tokio::sync::Mutex<Option<Tail>>,
    memory: Mutex<Memory>,
}

impl Mailbox {
    /// A mailbox that nothing is known of yet.
    pub(crate) fn new(id: MailboxId, room: Arc<Room>) -> Self {
        let place = room.layout.mailbox_place(&id);
        Self {
            id,
            memory: Mutex::new(Memory::new(Arc::clone(&room.heads), place.era)),
            place,
            tail: tokio::sync::Mutex::new(None),
            room,
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // Whatever a panic elsewhere left out is read again.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it still lies in the stream that this process knows: asked before anything is taken for gone. What is
    /// there is found without asking, because a shard's old stream is emptied only after everybody was told.
    async fn still_here(&self) -> Result<(), StoreError> {
        self.room.follower.still_holds(&self.place).await
    }

    /// The cursor as it is at the leader: nothing that was written before is missing.
    async fn newest_cursor(&self) -> Result<Arc<Cursor>, StoreError> {
        let stored = self
            .room
            .nats
            .last_of(&self.room.layout.cursors, &self.place.cursor_subject)
            .await?;
        Ok(self.memory().learn(known(stored)?).cursor)
    }

    /// The cursor as some copy has it, or as this process knows it, whichever is newer.
    async fn recent_cursor(&self) -> Result<Arc<Cursor>, StoreError> {
        let stored = self
            .room
            .nats
            .last_direct(&self.room.layout.cursors, &self.place.cursor_subject)
            .await?;
        Ok(self.memory().learn(known(stored)?).cursor)
    }

    /// See [`aip_relay::mailbox::Mailboxes::state`].
    pub(crate) async fn state(&self) -> Result<MailboxState, StoreError> {
        let (cursor, last) = tokio::try_join!(self.newest_cursor(), self.read_last())?;
        if last.is_none() && cursor.next_seq() > 1 {
            self.still_here().await?;
        }
        let next_seq = last.map_or(1, |last| last.seq + 1).max(cursor.next_seq());
        let total_bytes = last.map_or(cursor.settled_bytes(), |last| last.total_bytes);
        Ok(MailboxState {
            epoch: self.room.epoch.clone(),
            floor: cursor.floor(),
            next_seq,
            pending: cursor.pending(next_seq),
            bytes: total_bytes.saturating_sub(cursor.settled_bytes()),
            dead: cursor.dead().len() as u64,
        })
    }

    /// See [`aip_relay::mailbox::Mailboxes::ack`].
    pub(crate) async fn ack(
        self: &Arc<Self>,
        upto: u64,
        also: &[u64],
        now: Timestamp,
    ) -> Result<AckOutcome, StoreError> {
        if also.len() > ACK_ALSO_MAX {
            return Ok(AckOutcome::TooMany);
        }
        let highest = also.iter().copied().fold(upto, u64::max);
        if !self.is_given_out(highest).await? {
            return Ok(AckOutcome::BeyondEnd);
        }
        let also = also.to_vec();
        let applied = self.change(Change::Ack { upto, also, now }).await?;
        Ok(AckOutcome::Acked(Acked {
            floor: applied.floor,
            messages: applied.settled,
        }))
    }

    async fn is_given_out(&self, seq: u64) -> Result<bool, StoreError> {
        if seq > self.memory().last_seq() {
            tokio::try_join!(self.read_last(), self.newest_cursor())?;
        }
        if seq > self.memory().last_seq() {
            self.still_here().await?;
        }
        Ok(seq <= self.memory().last_seq())
    }

    /// See [`aip_relay::mailbox::Mailboxes::offer`]. The counts are written before it returns: an agent may be
    /// offered a message by one process and ack it at another.
    pub(crate) async fn offer(
        self: &Arc<Self>,
        seqs: &[u64],
        session: u64,
    ) -> Result<Vec<Attempt>, StoreError> {
        if seqs.is_empty() {
            return Ok(Vec::new());
        }
        let offer = Change::Offer {
            seqs: seqs.to_vec(),
            session,
        };
        let attempts = self.change(offer).await?.attempts;
        let counted = seqs.iter().zip(attempts);
        Ok(counted
            .map(|(seq, attempts)| Attempt {
                seq: *seq,
                attempt: attempts.count(),
                sessions: attempts.sessions(),
            })
            .collect())
    }

    /// Gives way to other processes after `lost` races: a few milliseconds, not the same for all.
    async fn pause(&self, lost: u32) {
        let longest = 1_u64 << lost.min(limits::RACE_PAUSE_DOUBLINGS);
        sleep(Duration::from_millis(self.room.stamps.next() % longest)).await;
    }

    /// Another process has stored `seq`.
    pub(crate) fn heard(&self, seq: u64) {
        self.memory().heard(seq);
    }

    /// What became of `seq`, as far as the mailbox itself can tell at `now`; `None`: it waits, or nobody knows.
    pub(crate) async fn fate(&self, seq: u64, now: Timestamp) -> Result<Option<Status>, StoreError> {
        let cursor = self.recent_cursor().await?;
        if !cursor.is_settled(seq) {
            return Ok(None);
        }
        if cursor.dead().contains_key(&seq) {
            return Ok(Some(Status::Dead));
        }
        // It left the mailbox while it was alive. Later it may as well have expired.
        let entry = self.kept_entry(seq).await?;
        Ok(entry
            .filter(|entry| entry.expires_at > now)
            .map(|_| Status::Acked))
    }
}

/// The cursor in a stored record; there is none before the first write.
fn known(stored: Option<Stored>) -> Result<Known, StoreError> {
    Ok(match stored {
        None => Known::default(),
        Some(stored) => Known {
            cursor: Arc::new(Cursor::decode(&stored.payload)?),
            revision: stored.stream_seq,
        },
    })
}
