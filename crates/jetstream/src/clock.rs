//! The latest time that the store was told, over restarts and in all processes.
//!
//! Kept in memory at once and written down now and then: a hub's clock that starts a few seconds early is one that
//! every other process of the hub may have, too.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use aip_protocol::time::Timestamp;
use aip_relay::mailbox::StoreError;
use async_nats::HeaderMap;

use crate::codec::{Reader, Writer, readable};
use crate::nats::Nats;
use crate::streams::Names;

/// The record's name among those of the store.
const CLOCK: &str = "clock";
/// The layout of the record.
const VERSION: u8 = 1;

/// See the module.
#[derive(Debug)]
pub(crate) struct HighWater {
    nats: Nats,
    subject: String,
    /// Nanoseconds since 1970; 0 before the first.
    latest: AtomicU64,
    written: AtomicU64,
}

impl HighWater {
    /// Reads what was written last.
    pub(crate) async fn load(nats: Nats, names: &Names) -> Result<Self, StoreError> {
        let subject = names.meta_subject(CLOCK);
        let latest = match nats.last_of(&names.meta(), &subject).await? {
            None => 0,
            Some(stored) => {
                let read = || {
                    let mut from = Reader::new(VERSION, &stored.payload)?;
                    let latest = from.fixed()?;
                    from.end(latest)
                };
                readable(read(), "the record of the latest time is unreadable")?
            }
        };
        Ok(Self {
            nats,
            subject,
            latest: AtomicU64::new(latest),
            written: AtomicU64::new(latest),
        })
    }

    /// Takes note of a time.
    pub(crate) fn tick(&self, now: Timestamp) {
        let nanos = u64::try_from(now.unix_nanos().max(0)).unwrap_or(u64::MAX);
        self.latest.fetch_max(nanos, Relaxed);
    }

    /// The latest time, if there was one.
    pub(crate) fn latest(&self) -> Option<Timestamp> {
        let nanos = self.latest.load(Relaxed);
        (nanos > 0).then(|| Timestamp::from_unix_nanos(i128::from(nanos)))
    }

    /// Writes it down, if it has changed.
    pub(crate) async fn save(&self) -> Result<(), StoreError> {
        let latest = self.latest.load(Relaxed);
        if latest > self.written.load(Relaxed) {
            let mut to = Writer::new(VERSION, 9);
            to.fixed(latest);
            self.nats
                .publish(&self.subject, HeaderMap::new(), to.finish())
                .await?;
            self.written.fetch_max(latest, Relaxed);
        }
        Ok(())
    }
}
