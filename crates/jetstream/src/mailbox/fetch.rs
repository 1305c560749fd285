//! Reading what is pending.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use aip_relay::limits::FETCH_MESSAGES_MAX;
use aip_relay::mailbox::{Fetch, Select, StoreError, StoredMessage};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::Mailbox;
use super::heads::Size;
use crate::cursor::Cursor;
use crate::entry::Entry;
use crate::limits;

/// Collects the messages of one fetch within its bounds.
#[derive(Debug)]
struct Page<'a> {
    fetch: &'a Fetch,
    messages_max: usize,
    bytes: usize,
    messages: Vec<StoredMessage>,
}

impl<'a> Page<'a> {
    fn new(fetch: &'a Fetch) -> Self {
        Self {
            fetch,
            messages_max: fetch.max_messages.min(FETCH_MESSAGES_MAX),
            bytes: 0,
            messages: Vec::new(),
        }
    }

    /// Takes an entry if it is pending and alive; breaks when the page is full.
    fn take(&mut self, cursor: &Cursor, entry: Entry) -> ControlFlow<()> {
        let dead = entry.expires_at <= self.fetch.now;
        if !entry.kind.waits() || dead || cursor.is_settled(entry.seq) {
            return ControlFlow::Continue(());
        }
        let bytes = self.bytes.saturating_add(entry.wire.len());
        if bytes > self.fetch.max_bytes && !self.messages.is_empty() {
            return ControlFlow::Break(());
        }
        self.bytes = bytes;
        let attempts = cursor.attempts(entry.seq);
        self.messages
            .push(entry.into_message(attempts.count(), attempts.sessions()));
        if self.messages.len() >= self.messages_max || self.bytes >= self.fetch.max_bytes {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn size(&self) -> Size {
        Size {
            messages: self.messages_max,
            bytes: self
                .fetch
                .max_bytes
                .saturating_add(self.messages_max.saturating_mul(limits::ENTRY_BYTES)),
        }
    }
}

impl Mailbox {
    /// See [`aip_relay::mailbox::Mailboxes::fetch`].
    pub(crate) async fn fetch(&self, fetch: &Fetch) -> Result<Vec<StoredMessage>, StoreError> {
        let mut page = Page::new(fetch);
        if page.messages_max > 0 {
            match &fetch.select {
                Select::After(after) => self.fetch_after(*after, &mut page).await?,
                Select::Seqs(seqs) => self.fetch_seqs(seqs, &mut page).await?,
            }
        }
        Ok(page.messages)
    }

    /// The cursor and the first messages at the same time.
    async fn fetch_after(&self, after: u64, page: &mut Page<'_>) -> Result<(), StoreError> {
        let (from, size) = (self.memory().start_after(after), page.size());
        let (cursor, mut first) = tokio::try_join!(self.recent_cursor(), self.batch(from, size))?;
        let floor = cursor.read_from(self.place.era);
        if first.more && first.messages.last().is_some_and(|last| last.stream_seq < floor) {
            // All of them are settled: a mailbox that this process did not know.
            first = self.batch(floor, size).await?;
        }
        self.scan(first, from, size, &mut |entry, _| {
            if entry.seq <= after {
                return ControlFlow::Continue(());
            }
            page.take(&cursor, entry)
        })
        .await
    }

    /// Single messages. Asked for when a caller wants to know about them (were they offered, are they settled?), so
    /// the leader's cursor is read.
    async fn fetch_seqs(&self, seqs: &[u64], page: &mut Page<'_>) -> Result<(), StoreError> {
        let wanted: BTreeSet<u64> = seqs.iter().copied().collect();
        let cursor = self.newest_cursor().await?;
        let wanted: Vec<u64> = wanted
            .into_iter()
            .filter(|seq| !cursor.is_settled(*seq))
            .collect();
        for entry in self.entries(wanted).await?.into_values() {
            if page.take(&cursor, entry).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// These messages; those that are not in the stream are left out.
    pub(super) async fn entries(&self, seqs: Vec<u64>) -> Result<BTreeMap<u64, Entry>, StoreError> {
        let heads = self.heads_of(seqs).await?;
        let reads = heads.into_values().map(|head| async move {
            let stored = self.room.nats.at(&self.place.stream, head.stream_seq).await?;
            stored.map(|stored| self.read(&stored)).transpose()
        });
        stream::iter(reads)
            .buffered(limits::READS_AT_ONCE)
            .try_filter_map(|entry| async move { Ok(entry.map(|entry| (entry.seq, entry))) })
            .try_collect()
            .await
    }

    /// A message that is settled, while its entry is kept.
    pub(super) async fn kept_entry(&self, seq: u64) -> Result<Option<Entry>, StoreError> {
        let (size, mut found) = (Size::LARGE, None);
        let first = self.batch(0, size).await?;
        self.scan(first, 0, size, &mut |entry, _| {
            if entry.seq < seq {
                return ControlFlow::Continue(());
            }
            found = Some(entry).filter(|entry| entry.seq == seq && entry.kind.waits());
            ControlFlow::Break(())
        })
        .await?;
        Ok(found)
    }
}
