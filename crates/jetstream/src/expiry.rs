//! The index of what ends early: messages whose own expiry comes before the mailbox's retention.
//!
//! One subject a minute, `<prefix>.ex.<minute>`. All other messages end in the order they came in, which the
//! streams of mailboxes keep by themselves. The index is written in the background: a lost record costs a late
//! `expired` status, never an offer, because a reader checks the time itself.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aip_protocol::time::Timestamp;
use aip_relay::mailbox::{MailboxId, StoreError};

use crate::background::{Background, Record};
use crate::codec::{Reader, Writer, readable};
use crate::limits;
use crate::nats::{Nats, Stored};
use crate::streams::{Layout, Names};

/// The layout of a record.
const VERSION: u8 = 1;
/// No minute.
const NEVER: u64 = u64::MAX;
const MINUTE_NANOS: i128 = 60 * 1_000_000_000;

/// Whether a message ends before its mailbox's retention does, and therefore belongs into the index.
pub(crate) fn is_early(accepted_at: Timestamp, expires_at: Timestamp, retention_secs: u64) -> bool {
    expires_at < accepted_at + Duration::from_secs(retention_secs)
}

/// A message that ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Early {
    pub(crate) mailbox: MailboxId,
    pub(crate) seq: u64,
    pub(crate) expires_at: Timestamp,
}

/// Reads and writes the index.
#[derive(Debug)]
pub(crate) struct Expiries {
    nats: Nats,
    layout: Arc<Layout>,
    background: Arc<Background>,
    /// The minute in which the index was listed last.
    listed: AtomicU64,
    /// What was found then and is not done yet.
    past: Mutex<BTreeSet<u64>>,
}

impl Expiries {
    pub(crate) fn new(nats: Nats, layout: Arc<Layout>, background: Arc<Background>) -> Self {
        Self {
            nats,
            layout,
            background,
            listed: AtomicU64::new(NEVER),
            past: Mutex::default(),
        }
    }

    /// Writes a message into the index, soon; never blocks. Call it after the message is stored.
    pub(crate) fn note(&self, early: Early) {
        if minute(early.expires_at).saturating_add(1) < self.listed.load(Ordering::Relaxed) {
            self.list_again();
        }
        self.background.put(early.record(&self.layout.names));
    }

    /// The minutes of the index that have begun at `now`, oldest first.
    ///
    /// They are listed once a minute; what other processes add to the past in between is found with the next list.
    pub(crate) async fn begun(&self, now: Timestamp) -> Result<Vec<u64>, StoreError> {
        self.background.flush(limits::BACKGROUND_FLUSH).await;
        let current = minute(now);
        if self.listed.swap(current, Ordering::Relaxed) != current {
            match self.list(current).await {
                Ok(minutes) => *locked(&self.past) = minutes,
                Err(error) => {
                    self.list_again();
                    return Err(error);
                }
            }
        }
        let mut minutes = locked(&self.past).clone();
        minutes.extend([current.saturating_sub(1), current]);
        Ok(minutes.into_iter().collect())
    }

    async fn list(&self, current: u64) -> Result<BTreeSet<u64>, StoreError> {
        let prefix = subject(&self.layout.names, "");
        let subjects = self
            .nats
            .subjects(&self.layout.expiries, &format!("{prefix}*"))
            .await?;
        Ok(subjects
            .iter()
            .filter_map(|subject| subject.strip_prefix(&prefix)?.parse().ok())
            .filter(|minute| *minute <= current)
            .collect())
    }

    fn list_again(&self) {
        self.listed.store(NEVER, Ordering::Relaxed);
    }

    /// At most `max` messages of one minute, from stream sequence `from_stream_seq` on, and whether there are more.
    pub(crate) async fn of_minute(
        &self,
        minute: u64,
        from_stream_seq: u64,
        max: usize,
    ) -> Result<(Vec<(u64, Early)>, bool), StoreError> {
        let batch = self
            .nats
            .batch(
                &self.layout.expiries,
                &self.subject(minute),
                from_stream_seq,
                max,
                limits::SWEEP_BATCH_BYTES,
            )
            .await?;
        let early = batch.messages.iter().map(read).collect::<Result<_, _>>()?;
        Ok((early, batch.more))
    }

    /// Forgets what lies below `below_stream_seq` in a minute, and the minute if that was `all` of it.
    pub(crate) async fn forget(
        &self,
        minute: u64,
        below_stream_seq: u64,
        all: bool,
    ) -> Result<(), StoreError> {
        self.nats
            .purge(&self.layout.expiries, &self.subject(minute), below_stream_seq)
            .await?;
        if all {
            locked(&self.past).remove(&minute);
        }
        Ok(())
    }

    fn subject(&self, minute: u64) -> String {
        subject(&self.layout.names, minute)
    }
}

impl Early {
    /// What the index has for it.
    pub(crate) fn record(&self, names: &Names) -> Record {
        let Self {
            mailbox,
            seq,
            expires_at,
        } = self;
        let mut to = Writer::new(VERSION, 40);
        to.raw(mailbox.as_bytes()).number(*seq).time(*expires_at);
        Record {
            subject: subject(names, minute(*expires_at)),
            id: format!("ex.{mailbox:?}.{seq}"),
            payload: to.finish(),
        }
    }
}

fn subject(names: &Names, minute: impl fmt::Display) -> String {
    format!("{}.ex.{minute}", names.prefix())
}

fn locked(past: &Mutex<BTreeSet<u64>>) -> MutexGuard<'_, BTreeSet<u64>> {
    // The set is whole between any two of its operations.
    past.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whole minutes since 1970.
fn minute(at: Timestamp) -> u64 {
    u64::try_from(at.unix_nanos().max(0) / MINUTE_NANOS).unwrap_or(0)
}

fn read(stored: &Stored) -> Result<(u64, Early), StoreError> {
    let read = || {
        let mut from = Reader::new(VERSION, &stored.payload)?;
        let early = Early {
            mailbox: MailboxId::from_bytes(from.array()?),
            seq: from.number()?,
            expires_at: from.time()?,
        };
        from.end((stored.stream_seq, early))
    };
    readable(read(), "a record of the expiry index is unreadable")
}
