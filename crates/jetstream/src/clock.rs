//! The latest time that the store was told, and when it was last swept: over restarts, in all processes.
//!
//! The latest time is kept in memory at once and written down now and then: a hub's clock that starts a few seconds
//! early is one that every other process of the hub may have, too.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use aip_protocol::time::Timestamp;
use aip_relay::mailbox::StoreError;
use async_nats::HeaderMap;

use crate::codec::{Reader, Writer, readable};
use crate::limits;
use crate::nats::Nats;
use crate::streams::Names;

/// The record's name among those of the store.
const CLOCK: &str = "clock";
/// The layout of the record.
const VERSION: u8 = 1;

/// Times as in the record: nanoseconds since 1970, 0 before the first.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    latest: u64,
    attended: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Clock {
    nats: Nats,
    subject: String,
    latest: AtomicU64,
    written_latest: AtomicU64,
    written_attended: AtomicU64,
}

impl Clock {
    /// Reads what was written last.
    pub(crate) async fn load(nats: Nats, names: &Names) -> Result<Self, StoreError> {
        let subject = names.meta_subject(CLOCK);
        let times = match nats.last_of(&names.meta(), &subject).await? {
            None => Times::default(),
            Some(stored) => readable(
                Times::decode(&stored.payload),
                "the record of the latest time is unreadable",
            )?,
        };
        Ok(Self {
            nats,
            subject,
            latest: AtomicU64::new(times.latest),
            written_latest: AtomicU64::new(times.latest),
            written_attended: AtomicU64::new(times.attended),
        })
    }

    /// Takes note of a time.
    pub(crate) fn tick(&self, now: Timestamp) {
        self.latest.fetch_max(nanos(now), Relaxed);
    }

    /// The latest time, if there was one.
    pub(crate) fn latest(&self) -> Option<Timestamp> {
        moment(self.latest.load(Relaxed))
    }

    /// Since when nobody has swept, if that is so long at `now` that a stream may have let go of what no sweep has
    /// seen.
    pub(crate) fn neglected(&self, now: Timestamp) -> Option<Timestamp> {
        let attended = moment(self.written_attended.load(Relaxed))?;
        let spared = limits::RETENTION_SLACK.saturating_sub(2 * limits::ATTENDED_EVERY);
        (now > attended + spared).then_some(attended)
    }

    /// Somebody sweeps at `now`; writes down what has changed.
    pub(crate) async fn attend(&self, now: Timestamp) -> Result<(), StoreError> {
        let attended = self.written_attended.load(Relaxed);
        let due = moment(attended).is_none_or(|attended| now >= attended + limits::ATTENDED_EVERY);
        let attended = if due { nanos(now) } else { attended };
        self.write(attended).await
    }

    /// Writes down the latest time, if it has changed.
    pub(crate) async fn save(&self) -> Result<(), StoreError> {
        self.write(self.written_attended.load(Relaxed)).await
    }

    async fn write(&self, attended: u64) -> Result<(), StoreError> {
        let latest = self.latest.load(Relaxed);
        let (before, told) = (
            self.written_latest.load(Relaxed),
            self.written_attended.load(Relaxed),
        );
        if latest > before || attended > told {
            let record = Times { latest, attended }.encode();
            self.nats.publish(&self.subject, HeaderMap::new(), record).await?;
            self.written_latest.fetch_max(latest, Relaxed);
            self.written_attended.fetch_max(attended, Relaxed);
        }
        Ok(())
    }
}

impl Times {
    fn encode(self) -> bytes::Bytes {
        let mut to = Writer::new(VERSION, 17);
        to.fixed(self.latest).fixed(self.attended);
        to.finish()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::new(VERSION, bytes)?;
        let times = Self {
            latest: from.fixed()?,
            attended: from.fixed()?,
        };
        from.end(times)
    }
}

fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.unix_nanos().max(0)).unwrap_or(u64::MAX)
}

fn moment(nanos: u64) -> Option<Timestamp> {
    (nanos > 0).then(|| Timestamp::from_unix_nanos(i128::from(nanos)))
}
