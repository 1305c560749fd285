//! Reading the entries of a mailbox.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use aip_relay::mailbox::StoreError;

use super::Mailbox;
use crate::entry::{Entry, Head};
use crate::limits;
use crate::nats::{Batch, Stored};

/// What is done with each entry and its stream sequence.
type Visit<'a> = dyn FnMut(Entry, u64) -> ControlFlow<()> + Send + 'a;

/// How much one read brings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) messages: usize,
    pub(super) bytes: usize,
}

impl Size {
    /// For a search.
    pub(super) const LARGE: Self = Self {
        messages: limits::HEADS_BATCH_MESSAGES,
        bytes: limits::BATCH_BYTES_MAX,
    };
}

impl Mailbox {
    /// One read, from any copy.
    pub(super) async fn batch(&self, from_stream_seq: u64, size: Size) -> Result<Batch, StoreError> {
        let (stream, subject) = (&self.place.stream, &self.place.entry_subject);
        self.room
            .nats
            .batch(stream, subject, from_stream_seq, size.messages, size.bytes)
            .await
    }

    /// Visits all entries from `from_stream_seq` on, in order, until `visit` breaks; `first` is the read that begins
    /// there.
    ///
    /// A copy may lag: what this process knows to be there and the copy has not is asked of the leader.
    pub(super) async fn scan(
        &self,
        first: Batch,
        from_stream_seq: u64,
        size: Size,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        let end = self.memory().end();
        let (mut batch, mut next) = (first, from_stream_seq);
        loop {
            let more = batch.more && !batch.messages.is_empty();
            for stored in batch.messages {
                let stream_seq = stored.stream_seq;
                next = next.max(stream_seq.saturating_add(1));
                if visit(self.read(&stored)?, stream_seq).is_break() {
                    return Ok(());
                }
            }
            batch = if more {
                self.batch(next, size).await?
            } else if self.memory().is_past(end, next) {
                return Ok(());
            } else {
                let (stream, subject) = (&self.place.stream, &self.place.entry_subject);
                let Some(stored) = self.room.nats.next_of(stream, subject, next).await? else {
                    self.memory().all_met(end.seq);
                    self.room.follower.suspect();
                    return Ok(());
                };
                Batch {
                    messages: vec![stored],
                    more: true,
                }
            };
        }
    }

    /// The entry in a stored message.
    pub(super) fn read(&self, stored: &Stored) -> Result<Entry, StoreError> {
        let entry = Entry::of(stored)?;
        self.memory().met(&entry, stored.stream_seq);
        Ok(entry)
    }

    /// The heads of these messages; those that are gone from the stream are left out.
    pub(super) async fn heads_of(&self, seqs: Vec<u64>) -> Result<BTreeMap<u64, Head>, StoreError> {
        let mut search = Search::default();
        {
            let memory = self.memory();
            for seq in seqs {
                match memory.head(seq) {
                    Some(head) => drop(search.found.insert(seq, head.clone())),
                    None => drop(search.missing.insert(seq)),
                }
            }
        }
        self.look_for(&mut search).await?;
        if !search.missing.is_empty() {
            // Gone, or beyond what the copy that answered has: the leader tells how far the mailbox goes.
            self.read_last().await?;
            self.look_for(&mut search).await?;
        }
        if !search.missing.is_empty() {
            self.still_here().await?;
        }
        Ok(search.found)
    }

    async fn look_for(&self, search: &mut Search) -> Result<(), StoreError> {
        let (Some(lowest), Some(highest)) = (search.missing.first(), search.missing.last()) else {
            return Ok(());
        };
        let (from, highest) = (self.memory().start_after(lowest.saturating_sub(1)), *highest);
        let size = Size::LARGE;
        let first = self.batch(from, size).await?;
        self.scan(first, from, size, &mut |entry, stream_seq| {
            if entry.kind.waits() && search.missing.remove(&entry.seq) {
                search.found.insert(entry.seq, entry.head(stream_seq));
            }
            if entry.seq >= highest || search.missing.is_empty() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
        .await
    }
}

#[derive(Debug, Default)]
struct Search {
    found: BTreeMap<u64, Head>,
    missing: BTreeSet<u64>,
}
