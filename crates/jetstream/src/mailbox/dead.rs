//! Dead letters: buried, shown, and brought back.
//!
//! A dead letter is first written into its own stream and then into the cursor, and the other way round when it is
//! brought back: what happens between the two leaves a record that nobody is shown, or a message that comes twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::time::Timestamp;
use aip_relay::limits::{CODE_BYTES_MAX, DEAD_LETTER_SECS, FETCH_MESSAGES_MAX};
use aip_relay::mailbox::{DeadLetter, Redrive, RedriveOutcome, Settled, StoreError};
use async_nats::HeaderMap;
use bytes::Bytes;

use super::append::{Draft, Landed};
use super::{Change, Mailbox};
use crate::cursor::DeadPlace;
use crate::entry::{DeadEntry, Entry, Kind};
use crate::limits;
use crate::nats::{Published, named};

impl Mailbox {
    /// See [`aip_relay::mailbox::DeadLetters::bury`].
    pub(crate) async fn bury(
        self: &Arc<Self>,
        seq: u64,
        code: &str,
        now: Timestamp,
    ) -> Result<Option<Settled>, StoreError> {
        if self.recent_cursor().await?.is_settled(seq) {
            return Ok(None);
        }
        let Some(entry) = self.entries(vec![seq]).await?.remove(&seq) else {
            return Ok(None);
        };
        let code = code
            .get(..code.floor_char_boundary(CODE_BYTES_MAX))
            .unwrap_or_default();
        let dead = DeadEntry {
            code: code.to_owned(),
            at: now,
            entry,
        };
        let place = DeadPlace {
            stream_seq: self.lay_down(&dead).await?,
            until: now + Duration::from_secs(DEAD_LETTER_SECS),
        };
        let code = dead.code;
        let bury = Change::Bury {
            seq,
            code,
            place,
            now,
        };
        Ok(self.change(bury).await?.settled.into_iter().next())
    }

    /// Writes a dead letter into its stream, once.
    async fn lay_down(&self, dead: &DeadEntry) -> Result<u64, StoreError> {
        let id = format!("dead.{}.{}", self.place.token, dead.entry.seq);
        let headers = named(HeaderMap::new(), &id);
        let subject = &self.place.dead_subject;
        match self.room.nats.publish(subject, headers, dead.encode()).await? {
            Published::Stored { stream_seq } | Published::Duplicate { stream_seq } => Ok(stream_seq),
            Published::WrongLast { .. } | Published::Full | Published::Elsewhere => Err(
                StoreError::Unavailable("the stream of dead letters takes none".into()),
            ),
        }
    }

    /// See [`aip_relay::mailbox::DeadLetters::dead`].
    pub(crate) async fn dead(&self, after_seq: u64, limit: usize) -> Result<Vec<DeadLetter>, StoreError> {
        let cursor = self.newest_cursor().await?;
        let above = cursor.dead().iter().filter(|(seq, _)| **seq > after_seq);
        let wanted: BTreeMap<u64, u64> = above
            .take(limit.min(FETCH_MESSAGES_MAX))
            .map(|(seq, place)| (place.stream_seq, *seq))
            .collect();
        let mut letters: BTreeMap<u64, DeadEntry> = BTreeMap::new();
        let mut next = wanted.keys().next().copied().unwrap_or(0);
        let end = wanted.keys().next_back().copied().unwrap_or(0);
        while next <= end && letters.len() < wanted.len() {
            let batch = self.dead_batch(next).await?;
            for stored in &batch.messages {
                next = stored.stream_seq.saturating_add(1);
                if let Some(seq) = wanted.get(&stored.stream_seq) {
                    letters.insert(*seq, DeadEntry::decode(&stored.payload)?);
                }
            }
            if !batch.more {
                break;
            }
        }
        // The copy that answered may lag.
        for (stream_seq, seq) in &wanted {
            if !letters.contains_key(seq)
                && let Some(dead) = self.dead_at(*stream_seq).await?
            {
                letters.insert(*seq, dead);
            }
        }
        Ok(letters.into_iter().map(|(seq, dead)| dead.shown(seq)).collect())
    }

    async fn dead_batch(&self, from_stream_seq: u64) -> Result<crate::nats::Batch, StoreError> {
        self.room
            .nats
            .batch(
                &self.room.layout.dead,
                &self.place.dead_subject,
                from_stream_seq,
                limits::BATCH_MESSAGES_MAX,
                limits::BATCH_BYTES_MAX,
            )
            .await
    }

    async fn dead_at(&self, stream_seq: u64) -> Result<Option<DeadEntry>, StoreError> {
        let stored = self.room.nats.at(&self.room.layout.dead, stream_seq).await?;
        stored
            .map(|stored| DeadEntry::decode(&stored.payload))
            .transpose()
    }

    /// See [`aip_relay::mailbox::DeadLetters::redrive`].
    pub(crate) async fn redrive(self: &Arc<Self>, redrive: Redrive) -> Result<RedriveOutcome, StoreError> {
        let cursor = self.newest_cursor().await?;
        let Some(place) = cursor.dead().get(&redrive.seq).copied() else {
            return Ok(RedriveOutcome::NotFound);
        };
        let Some(dead) = self.dead_at(place.stream_seq).await? else {
            return Ok(RedriveOutcome::NotFound);
        };
        let (entry, mine) = match self.store(self.again(dead.entry, place, &redrive)).await? {
            Landed::Stored(entry) => (entry, true),
            Landed::Known(entry) => (entry, false),
            Landed::Full(full) => return Ok(RedriveOutcome::Full(full)),
            // Of dedup keys only, and a dead letter has none.
            Landed::Seen(_) => return Ok(RedriveOutcome::NotFound),
        };
        let seq = redrive.seq;
        let taken = self.change(Change::Unbury { seq, place }).await?.dropped > 0;
        if !mine && !taken {
            return Ok(RedriveOutcome::NotFound);
        }
        self.room.redriven(self.id, &entry, redrive.now);
        Ok(RedriveOutcome::Redriven { seq: entry.seq })
    }

    /// The entry of a dead letter as a new one. The stream knows it by the place of the dead letter: it comes back
    /// once, whoever asks.
    fn again(&self, entry: Entry, place: DeadPlace, redrive: &Redrive) -> Draft {
        Draft {
            id: format!("redrive.{}.{}", self.place.token, place.stream_seq),
            reused: false,
            quota: redrive.quota,
            now: redrive.now,
            entry: Entry {
                kind: Kind::Redriven,
                stamp: self.room.stamps.next(),
                expires_at: redrive.expires_at,
                until: Timestamp::MAX,
                ..entry
            },
        }
    }
}

impl DeadEntry {
    fn shown(self, seq: u64) -> DeadLetter {
        DeadLetter {
            seq,
            code: self.code,
            at: self.at,
            sender: self.entry.sender,
            id: self.entry.id,
            wire: Bytes::clone(&self.entry.wire),
        }
    }
}
