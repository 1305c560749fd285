//! Whose turn it is, to sweep or to move shards: a record that its holder renews.
//!
//! Clocks may be apart and pauses long, so there may be two for a while: that must do no harm.

use std::time::Duration;

use aip_protocol::time::Timestamp;
use aip_relay::mailbox::StoreError;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::nats::{Nats, Published, expecting};
use crate::streams::Names;

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    holder: u64,
    until_millis: i64,
}

/// A lease as this process knows it.
#[derive(Debug)]
pub(crate) struct Lease {
    nats: Nats,
    stream: String,
    subject: String,
    holder: u64,
    known: Option<Held>,
}

impl Lease {
    /// `what` is the record's name among those of the store; `holder` tells this process from all others.
    pub(crate) fn new(nats: Nats, names: &Names, what: &str, holder: u64) -> Self {
        Self {
            nats,
            stream: names.meta(),
            subject: names.meta_subject(what),
            holder,
            known: None,
        }
    }

    /// Whether it is ours at `now`; takes it if it is free, and renews it in good time.
    pub(crate) async fn hold(&mut self, now: Timestamp) -> Result<bool, StoreError> {
        let half = Duration::from_secs(limits::LEASE_SECS / 2);
        match self.known {
            Some(held) if held.holder == self.holder && held.until_millis > (now + half).unix_millis() => {
                return Ok(true);
            }
            Some(held) if held.holder != self.holder && held.is_on(now) => return Ok(false),
            _ => {}
        }
        self.known = None;
        let found = self.nats.last_of(&self.stream, &self.subject).await?;
        let last = found.as_ref().map_or(0, |stored| stored.stream_seq);
        // An unreadable lease is nobody's.
        let held: Option<Held> = found.and_then(|stored| serde_json::from_slice(&stored.payload).ok());
        match held {
            Some(held) if held.holder != self.holder && held.is_on(now) => {
                self.known = Some(held);
                Ok(false)
            }
            _ => self.take(last, now).await,
        }
    }

    /// Whether we were first.
    async fn take(&mut self, last: u64, now: Timestamp) -> Result<bool, StoreError> {
        let until = now + Duration::from_secs(limits::LEASE_SECS);
        let held = Held {
            holder: self.holder,
            until_millis: until.unix_millis(),
        };
        let taken = self.write(last, held).await?;
        self.known = taken.then_some(held);
        Ok(taken)
    }

    /// Gives it back, if it is ours. Best effort.
    pub(crate) async fn release(&mut self) {
        if self.known.take().is_none_or(|held| held.holder != self.holder) {
            return;
        }
        let Ok(Some(stored)) = self.nats.last_of(&self.stream, &self.subject).await else {
            return;
        };
        let free = Held {
            holder: self.holder,
            until_millis: 0,
        };
        if let Err(error) = self.write(stored.stream_seq, free).await {
            tracing::debug!(%error, "a lease is not given back");
        }
    }

    async fn write(&self, last: u64, held: Held) -> Result<bool, StoreError> {
        let body = serde_json::to_vec(&held)
            .map_err(|error| StoreError::Corrupt(format!("the lease cannot be written: {error}").into()))?;
        let published = self
            .nats
            .publish(&self.subject, expecting(last), body.into())
            .await?;
        Ok(matches!(published, Published::Stored { .. }))
    }
}

impl Held {
    fn is_on(self, now: Timestamp) -> bool {
        self.until_millis > now.unix_millis()
    }
}
