//! Putting an entry at the end of a mailbox.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::time::Timestamp;
use aip_relay::dedup::Seen;
use aip_relay::limits::DEDUP_LIFE_SECS;
use aip_relay::mailbox::{Append, AppendOutcome, Full, Quota, Route, StoreError};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join;
use tokio::sync::MutexGuard;
use tokio::time::timeout;

use super::Mailbox;
use super::heads::Size;
use super::tail::Tail;
use crate::cursor::Cursor;
use crate::entry::{Entry, Kind, Reuse};
use crate::limits;
use crate::live::SEQ_HEADER;
use crate::nats::{Published, expecting_in, named};

/// Whose turn it is at the end of a mailbox.
type Turn<'a> = MutexGuard<'a, Option<Tail>>;

/// An entry on its way: what depends on its predecessor is filled in for each try.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) entry: Entry,
    /// The id that the stream knows it by.
    pub(super) id: String,
    /// The id was used before, by an envelope whose time is over.
    pub(super) reused: bool,
    pub(super) quota: Quota,
    pub(super) now: Timestamp,
}

/// How it ended.
#[derive(Debug)]
pub(super) enum Landed {
    /// Stored, and it was this publish that stored it.
    Stored(Entry),
    /// The stream has this one, under the same id.
    Known(Entry),
    /// Known to other processes, under the same dedup key.
    Seen(Seen),
    /// Nothing was stored.
    Full(Full),
}

/// What a stream's `duplicate` turns out to be.
enum Twin {
    Mine(Entry),
    Known(Entry),
    /// It counts no more; the id may be used again.
    Over,
}

impl Mailbox {
    /// See [`aip_relay::mailbox::Mailboxes::append`].
    pub(crate) async fn append(self: &Arc<Self>, append: Append) -> Result<AppendOutcome, StoreError> {
        let (key, digest, now) = (append.dedup_key, append.digest, append.accepted_at);
        let seen = async {
            if is_fresh(&append) {
                return Ok(None);
            }
            self.room.window.seen(key, digest, now).await
        };
        // The turn is asked for before anything is waited for: whoever calls first is stored first.
        let (turn, seen) = join(self.turn(), seen).await;
        if let Some(seen) = seen? {
            return Ok(outcome(seen));
        }
        let landed = match self.store_at(turn?, self.draft(append)).await {
            Ok(landed) => landed,
            Err(error) => {
                // The stream cannot be asked; perhaps this process can tell.
                let seen = self.room.seen(key, &digest, now).await;
                return seen.ok().flatten().map(outcome).ok_or(error);
            }
        };
        match landed {
            Landed::Stored(entry) => {
                self.room.stored(self.id, &entry, now);
                let (seq, _) = entry.answer();
                Ok(AppendOutcome::Stored { seq })
            }
            Landed::Known(entry) => {
                self.room.remember(&entry, now);
                Ok(if entry.digest == digest {
                    let (seq, route) = entry.answer();
                    AppendOutcome::Duplicate { seq, route }
                } else {
                    AppendOutcome::Reused
                })
            }
            Landed::Seen(seen) => Ok(outcome(seen)),
            Landed::Full(full) => Ok(AppendOutcome::Full(full)),
        }
    }

    fn draft(&self, append: Append) -> Draft {
        let kind = match append.route {
            Route::Mailbox => Kind::Message,
            Route::Direct => Kind::Direct,
            Route::Peer => Kind::Peer,
        };
        Draft {
            id: URL_SAFE_NO_PAD.encode(append.dedup_key),
            reused: false,
            quota: append.quota,
            now: append.accepted_at,
            entry: Entry {
                kind,
                seq: 0,
                total_bytes: 0,
                stamp: self.room.stamps.next(),
                reuse: Reuse::NONE,
                accepted_at: append.accepted_at,
                expires_at: append.expires_at,
                until: append.remember_until,
                dedup_key: append.dedup_key,
                digest: append.digest,
                id: append.id,
                sender: append.sender,
                recipient: append.recipient,
                wire: if kind.waits() {
                    append.wire
                } else {
                    bytes::Bytes::new()
                },
            },
        }
    }

    /// The end of the mailbox, one at a time in this process, in the order in which they ask.
    async fn turn(&self) -> Result<Turn<'_>, StoreError> {
        let patience = self.room.nats.options().publish_deadline;
        let turn = timeout(patience, self.tail.lock()).await;
        turn.map_err(|_elapsed| StoreError::Unavailable("others write to this mailbox".into()))
    }

    /// Publishes right after the last entry, again and again until nobody else was faster.
    pub(super) async fn store(self: &Arc<Self>, draft: Draft) -> Result<Landed, StoreError> {
        self.store_at(self.turn().await?, draft).await
    }

    async fn store_at(self: &Arc<Self>, mut tail: Turn<'_>, mut draft: Draft) -> Result<Landed, StoreError> {
        let (mut races, mut reuses) = (0, 0);
        while races < limits::APPEND_TRIES_MAX && reuses < limits::REUSES_MAX {
            // Forgotten first: whatever happens to this call, the next one is not misled.
            let (last, warm) = match tail.take() {
                Some(last) => (last, true),
                None => (self.catch_up().await?, false),
            };
            if let Some(known) = self.reused(last, &draft).await? {
                *tail = Some(last);
                return Ok(known);
            }
            match self.full(last, &draft).await? {
                None => {}
                // Another process may have added to it: what exactly is full is told by the last entry.
                Some(_) if warm => continue,
                Some(full) => {
                    *tail = Some(last);
                    return Ok(self.known(&draft).await?.unwrap_or(Landed::Full(full)));
                }
            }
            draft.follow(last);
            match self.publish(last, &draft).await? {
                Published::Stored { stream_seq } => {
                    self.memory().met(&draft.entry, stream_seq);
                    *tail = Some(Tail::after(&draft.entry, stream_seq));
                    return Ok(Landed::Stored(draft.entry));
                }
                Published::Duplicate { stream_seq } => match self.twin(stream_seq, &draft).await? {
                    Twin::Mine(entry) => return Ok(Landed::Stored(entry)),
                    Twin::Known(entry) => {
                        *tail = Some(last);
                        return Ok(Landed::Known(entry));
                    }
                    Twin::Over => {
                        *tail = Some(last);
                        draft.use_again(stream_seq);
                        reuses += 1;
                    }
                },
                Published::Elsewhere => return Err(self.elsewhere().await),
                Published::WrongLast { .. } => {
                    races += 1;
                    self.pause(races).await;
                }
                Published::Full => {
                    *tail = Some(last);
                    return Ok(Landed::Full(Full::MailboxMessages));
                }
            }
        }
        Err(StoreError::Unavailable(
            "too many processes write to this mailbox at once".into(),
        ))
    }

    async fn publish(&self, last: Tail, draft: &Draft) -> Result<Published, StoreError> {
        let mut headers = named(expecting_in(&self.place.stream, last.stream_seq), &draft.id);
        if draft.entry.kind.waits() {
            headers.insert(SEQ_HEADER, draft.entry.seq.to_string());
        }
        let subject = &self.place.entry_subject;
        let published = self
            .room
            .nats
            .publish(subject, headers, draft.entry.encode())
            .await;
        if published.is_err() {
            self.room.follower.suspect();
        }
        published
    }

    /// Whether the draft is stored already, asked without publishing it: a retry of what is stored is a duplicate,
    /// also when the mailbox is full.
    async fn known(&self, draft: &Draft) -> Result<Option<Landed>, StoreError> {
        let (key, digest) = (draft.entry.dedup_key, &draft.entry.digest);
        if draft.entry.kind != Kind::Redriven
            && let Some(seen) = self.room.seen(key, digest, draft.now).await?
        {
            return Ok(Some(Landed::Seen(seen)));
        }
        let mut id = draft.id.clone();
        for _ in 0..limits::REUSES_MAX {
            let Some(stream_seq) = self.known_under(&id).await? else {
                return Ok(None);
            };
            match self.twin(stream_seq, draft).await? {
                Twin::Mine(entry) => return Ok(Some(Landed::Stored(entry))),
                Twin::Known(entry) => return Ok(Some(Landed::Known(entry))),
                Twin::Over => id = draft.id_after(stream_seq),
            }
        }
        Ok(None)
    }

    async fn known_under(&self, id: &str) -> Result<Option<u64>, StoreError> {
        let (stream, subject) = (&self.place.stream, &self.place.entry_subject);
        self.room.nats.known(stream, subject, id).await
    }

    /// Another stream has refused a publish: the mailbox has moved, and nothing was stored; or it has not, and two
    /// streams answered, which must not be.
    async fn elsewhere(&self) -> StoreError {
        match self.still_here().await {
            Err(moved) => moved,
            Ok(()) => StoreError::OutcomeUnknown("two streams answer for one mailbox".into()),
        }
    }

    /// What is full. Told only by the leader's cursor: an older one takes too much for pending, never too little.
    async fn full(&self, last: Tail, draft: &Draft) -> Result<Option<Full>, StoreError> {
        if !draft.entry.kind.waits() {
            return Ok(None);
        }
        let known = self.memory().known().map(|known| Arc::clone(&known.cursor));
        if let Some(cursor) = known
            && self.full_by(&cursor, last, draft).await?.is_none()
        {
            return Ok(None);
        }
        let cursor = self.newest_cursor().await?;
        self.full_by(&cursor, last, draft).await
    }

    async fn full_by(&self, cursor: &Cursor, last: Tail, draft: &Draft) -> Result<Option<Full>, StoreError> {
        let (quota, entry) = (&draft.quota, &draft.entry);
        let pending = cursor.pending(last.seq.saturating_add(1));
        let bytes = last.total_bytes.saturating_sub(cursor.settled_bytes());
        if pending >= u64::from(quota.mailbox_messages) {
            return Ok(Some(Full::MailboxMessages));
        }
        if bytes.saturating_add(entry.wire.len() as u64) > quota.mailbox_bytes {
            return Ok(Some(Full::MailboxBytes));
        }
        // It is the recipient who asks for a dead letter again.
        let room = u64::from(quota.sender_messages);
        if entry.kind == Kind::Redriven || pending < room {
            return Ok(None);
        }
        let known = self.memory().count_from(cursor, last.seq, &entry.sender);
        let count = if let Some(count) = known {
            count
        } else {
            let heads = self.heads_of(cursor.unsettled(last.seq).collect()).await?;
            let same = heads.values().filter(|head| head.sender == entry.sender);
            same.count() as u64
        };
        Ok((count >= room).then_some(Full::Sender))
    }

    /// The entry of a reused id that still counts, if there is one: the stream may have forgotten the first use, and
    /// would not find the second by the plain id then.
    async fn reused(&self, last: Tail, draft: &Draft) -> Result<Option<Landed>, StoreError> {
        if draft.entry.kind == Kind::Redriven || !last.reuse.counts(draft.now) {
            return Ok(None);
        }
        let (from, size) = (last.reuse.from_stream_seq, Size::LARGE);
        let (key, mut newest) = (draft.entry.dedup_key, None);
        let first = self.batch(from, size).await?;
        self.scan(first, from, size, &mut |entry, _| {
            if entry.dedup_key == key && entry.kind != Kind::Redriven {
                newest = Some(entry);
            }
            ControlFlow::Continue(())
        })
        .await?;
        Ok(newest
            .filter(|entry: &Entry| entry.until >= draft.now)
            .map(|entry| {
                if entry.stamp == draft.entry.stamp {
                    Landed::Stored(entry)
                } else {
                    Landed::Known(entry)
                }
            }))
    }

    /// What lies at `stream_seq`, under the draft's id.
    async fn twin(&self, stream_seq: u64, draft: &Draft) -> Result<Twin, StoreError> {
        let Some(stored) = self.room.nats.at(&self.place.stream, stream_seq).await? else {
            return self.gone(stream_seq).await;
        };
        let entry = self.read(&stored)?;
        if entry.stamp == draft.entry.stamp {
            Ok(Twin::Mine(entry))
        } else if entry.until < draft.now {
            Ok(Twin::Over)
        } else {
            Ok(Twin::Known(entry))
        }
    }

    /// The stream knows the id and has no message: purged, which happens only to what counts no more. But then there
    /// is a later one; else the leader has changed and is not ready.
    async fn gone(&self, stream_seq: u64) -> Result<Twin, StoreError> {
        match self.read_last().await? {
            Some(last) if last.stream_seq > stream_seq => Ok(Twin::Over),
            _ => Err(StoreError::Unavailable(
                "the stream knows a message that it does not show".into(),
            )),
        }
    }
}

impl Draft {
    /// Fills in what continues the last entry.
    fn follow(&mut self, last: Tail) {
        let entry = &mut self.entry;
        let more = u64::from(entry.kind.waits());
        entry.seq = last.seq.saturating_add(more);
        entry.total_bytes = last.total_bytes.saturating_add(entry.wire.len() as u64);
        entry.reuse = if self.reused {
            last.reuse.with(last.stream_seq, entry.until, self.now)
        } else if last.reuse.counts(self.now) {
            last.reuse
        } else {
            Reuse::NONE
        };
    }

    /// The id after the message at `stream_seq` had it.
    fn id_after(&self, stream_seq: u64) -> String {
        let plain = self.id.split('.').next().unwrap_or_default();
        format!("{plain}.{stream_seq}")
    }

    fn use_again(&mut self, stream_seq: u64) {
        self.id = self.id_after(stream_seq);
        self.reused = true;
    }
}

/// Whether the stream is sure to know the envelope if it was accepted before, so that it need not be looked for in this
/// process first. A dedup record lives at most [`DEDUP_LIFE_SECS`]; of this envelope's more than half is left, so it was
/// accepted within half of that time by the hub's clock, and by the servers' within all of it, since a clock that has to
/// wait for the right time goes at half speed.
fn is_fresh(append: &Append) -> bool {
    let half = Duration::from_secs(DEDUP_LIFE_SECS / 2);
    append.remember_until > append.accepted_at + half
}

fn outcome(seen: Seen) -> AppendOutcome {
    match seen {
        Seen::Duplicate { seq, route } => AppendOutcome::Duplicate { seq, route },
        Seen::Reused => AppendOutcome::Reused,
    }
}
