//! The last entry of a mailbox: what the next one continues.

use std::sync::Arc;

use aip_relay::mailbox::StoreError;

use super::Mailbox;
use super::changes::Change;
use crate::cursor::Cursor;
use crate::entry::{Entry, Reuse};

/// What an append needs to know of all entries before its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tail {
    /// Where the last entry lies; 0 when there is none.
    pub(super) stream_seq: u64,
    /// The last sequence number given out.
    pub(super) seq: u64,
    /// Bytes of all envelopes that ever came.
    pub(super) total_bytes: u64,
    pub(super) reuse: Reuse,
    /// Of the last entry; 0 when there is none.
    pub(super) stamp: u64,
}

impl Tail {
    /// After this entry.
    pub(super) fn after(entry: &Entry, stream_seq: u64) -> Self {
        Self {
            stream_seq,
            seq: entry.seq,
            total_bytes: entry.total_bytes,
            reuse: entry.reuse,
            stamp: entry.stamp,
        }
    }
}

impl Mailbox {
    /// The last entry as the leader knows it.
    pub(super) async fn read_last(&self) -> Result<Option<Tail>, StoreError> {
        let last = self
            .room
            .nats
            .last_of(&self.place.stream, &self.place.entry_subject)
            .await?;
        let Some(stored) = last else { return Ok(None) };
        let entry = Entry::of(&stored)?;
        self.memory().met(&entry, stored.stream_seq);
        Ok(Some(Tail::after(&entry, stored.stream_seq)))
    }

    /// What the next append continues, read from the leader; then the cursor is known too.
    pub(super) async fn catch_up(self: &Arc<Self>) -> Result<Tail, StoreError> {
        let cold = self.memory().known().is_none();
        if cold {
            let (last, cursor) = tokio::try_join!(self.read_last(), self.newest_cursor())?;
            return match last {
                Some(tail) => Ok(tail),
                None => self.start_over(&cursor).await,
            };
        }
        match self.read_last().await? {
            Some(tail) => Ok(tail),
            None => self.start_over(&*self.newest_cursor().await?).await,
        }
    }

    /// No entry is left, or there never was one: the cursor knows how far the mailbox was. What it has for
    /// pending is gone with the stream's age limit.
    async fn start_over(self: &Arc<Self>, cursor: &Cursor) -> Result<Tail, StoreError> {
        let seq = cursor.next_seq().saturating_sub(1);
        if cursor.pending(cursor.next_seq()) > 0 {
            self.still_here().await?;
            self.enqueue(Change::Lost { upto: seq })?;
        }
        Ok(Tail {
            stream_seq: 0,
            seq,
            total_bytes: cursor.settled_bytes(),
            reuse: Reuse::NONE,
            stamp: 0,
        })
    }
}
