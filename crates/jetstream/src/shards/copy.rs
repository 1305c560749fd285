//! Whether what the servers copy is what there was: message by message, in order.

use std::collections::VecDeque;

use aip_relay::mailbox::{MailboxId, StoreError};
use async_nats::HeaderMap;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::time::sleep;

use super::MoveError;
use super::bindings::Bindings;
use crate::entry::{Entry, Kind};
use crate::expiry::{Early, is_early};
use crate::limits;
use crate::nats::{Nats, Stored, named};
use crate::streams::Names;

/// A copy in the new stream.
#[derive(Debug)]
struct Twin {
    /// The place of what it is a copy of.
    origin: u64,
    payload: Bytes,
}

/// How far a shard's copy was compared.
#[derive(Debug)]
pub(super) struct Copy<'a> {
    nats: &'a Nats,
    names: &'a Names,
    bindings: &'a Bindings<'a>,
    retention_secs: u64,
    /// The next place to look at in the old stream.
    next: u64,
    /// The next place to look at in the new one.
    next_twin: u64,
    /// Copies that were read, and not compared yet.
    twins: VecDeque<Twin>,
    pub(super) compared: u64,
}

impl<'a> Copy<'a> {
    pub(super) fn new(
        nats: &'a Nats,
        names: &'a Names,
        bindings: &'a Bindings<'a>,
        retention_secs: u64,
    ) -> Self {
        Self {
            nats,
            names,
            bindings,
            retention_secs,
            next: 1,
            next_twin: 1,
            twins: VecDeque::new(),
            compared: 0,
        }
    }

    /// Compares the next messages up to the place `last`; tells whether there may be more.
    pub(super) async fn go_on(&mut self, last: u64) -> Result<bool, MoveError> {
        if self.next > last {
            return Ok(false);
        }
        let messages = self.originals(last).await?;
        for original in &messages {
            self.find(original).await?;
            self.next = original.stream_seq.saturating_add(1);
            self.compared += 1;
        }
        if messages.is_empty() {
            self.next = last.saturating_add(1);
        }
        self.index(&messages).await?;
        Ok(self.next <= last)
    }

    /// Messages of the old stream, up to the place `last`; none: there are no more.
    async fn originals(&self, last: u64) -> Result<Vec<Stored>, MoveError> {
        let (stream, subject) = (&self.bindings.old, &self.bindings.subject);
        let mut messages = self.read(stream, self.next).await?;
        if messages.is_empty() {
            // The copy that answered may lag.
            messages.extend(self.nats.next_of(stream, subject, self.next).await?);
        }
        messages.retain(|message| message.stream_seq <= last);
        Ok(messages)
    }

    /// Waits for the twin of a message, and compares.
    async fn find(&mut self, original: &Stored) -> Result<(), MoveError> {
        let place = original.stream_seq;
        let mut polls = 0;
        while polls < limits::MOVE_POLLS_MAX {
            // Earlier ones are copies of what was purged meanwhile.
            while self.twins.front().is_some_and(|twin| twin.origin < place) {
                self.twins.pop_front();
            }
            match self.twins.front() {
                Some(twin) if twin.origin == place && twin.payload == original.payload => {
                    self.twins.pop_front();
                    return Ok(());
                }
                Some(_) if self.is_there(place).await? => {
                    return Err(MoveError::Incomplete {
                        stream: self.bindings.old.clone(),
                        place,
                    });
                }
                Some(_) => return Ok(()),
                None => {}
            }
            if self.read_twins().await? {
                continue;
            }
            if !self.is_there(place).await? {
                return Ok(());
            }
            polls += 1;
            sleep(limits::MOVE_POLL).await;
        }
        Err(MoveError::Stalled {
            stream: self.bindings.old.clone(),
        })
    }

    /// Whether the old stream still has it: settled messages are purged all the time.
    async fn is_there(&self, place: u64) -> Result<bool, MoveError> {
        let (stream, subject) = (&self.bindings.old, &self.bindings.subject);
        let next = self.nats.next_of(stream, subject, place).await?;
        Ok(next.is_some_and(|next| next.stream_seq == place))
    }

    async fn read_twins(&mut self) -> Result<bool, MoveError> {
        let read = self.read(&self.bindings.new, self.next_twin).await?;
        for stored in &read {
            self.next_twin = stored.stream_seq.saturating_add(1);
            self.twins.extend(stored.origin().map(|origin| Twin {
                origin,
                payload: stored.payload.clone(),
            }));
        }
        Ok(!read.is_empty())
    }

    async fn read(&self, stream: &str, from: u64) -> Result<Vec<Stored>, MoveError> {
        let batch = self.nats.batch(
            stream,
            &self.bindings.subject,
            from,
            limits::BATCH_MESSAGES_MAX,
            limits::BATCH_BYTES_MAX,
        );
        Ok(batch.await?.messages)
    }

    /// The sweep walks a stream in the order of acceptance, which copies are not in: like other messages that end
    /// out of turn they go into the index.
    async fn index(&self, messages: &[Stored]) -> Result<(), MoveError> {
        let early = messages.iter().filter_map(|message| self.ends(message));
        let written = early.map(|early| self.write(early)).collect::<Vec<_>>();
        stream::iter(written)
            .buffer_unordered(limits::BACKGROUND_AT_ONCE)
            .try_for_each(|()| async { Ok(()) })
            .await?;
        Ok(())
    }

    async fn write(&self, early: Early) -> Result<(), StoreError> {
        let record = early.record(self.names);
        let headers = named(HeaderMap::new(), &record.id);
        self.nats
            .publish(&record.subject, headers, record.payload)
            .await
            .map(drop)
    }

    /// When a message ends, unless it never waits or the index has it already.
    fn ends(&self, message: &Stored) -> Option<Early> {
        let entry = Entry::decode(&message.payload).ok()?;
        let known = is_early(entry.accepted_at, entry.expires_at, self.retention_secs);
        (entry.kind == Kind::Message && !known).then(|| Early {
            mailbox: MailboxId::of(&entry.recipient),
            seq: entry.seq,
            expires_at: entry.expires_at,
        })
    }
}
