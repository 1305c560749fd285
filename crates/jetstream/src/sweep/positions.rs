//! How far each stream was swept, kept over restarts and changes of the sweeping process.

use std::collections::HashMap;

use aip_protocol::time::Timestamp;
use aip_relay::mailbox::StoreError;
use async_nats::HeaderMap;

use crate::nats::Nats;
use crate::streams::Layout;

/// The record's name among those of the store.
const SWEPT: &str = "swept";

/// The next message to look at, by stream.
#[derive(Debug)]
pub(super) struct Positions {
    nats: Nats,
    stream: String,
    subject: String,
    /// Known since we hold the lease.
    next: Option<HashMap<String, u64>>,
    /// When the next message of a stream ends, as last seen: no look before that.
    waits: HashMap<String, Timestamp>,
    changed: bool,
}

impl Positions {
    pub(super) fn new(nats: Nats, layout: &Layout) -> Self {
        Self {
            nats,
            stream: layout.names.meta(),
            subject: layout.names.meta_subject(SWEPT),
            next: None,
            waits: HashMap::new(),
            changed: false,
        }
    }

    /// Another process goes on from here.
    pub(super) fn forget(&mut self) {
        self.next = None;
        self.waits.clear();
    }

    /// Reads them, unless they are known. An unreadable record starts from the beginning: more work, no harm.
    pub(super) async fn load(&mut self) -> Result<(), StoreError> {
        if self.next.is_none() {
            let found = self.nats.last_of(&self.stream, &self.subject).await?;
            let next = found.and_then(|stored| serde_json::from_slice(&stored.payload).ok());
            self.next = Some(next.unwrap_or_default());
        }
        Ok(())
    }

    /// Where to go on in `stream`.
    pub(super) fn of(&self, stream: &str) -> u64 {
        self.next
            .as_ref()
            .and_then(|next| next.get(stream).copied())
            .unwrap_or(1)
    }

    /// Whether something may have ended in `stream`.
    pub(super) fn is_due(&self, stream: &str, now: Timestamp) -> bool {
        self.waits.get(stream).is_none_or(|end| *end <= now)
    }

    /// Everything below `position` is done; what lies there ends at `waits`, if that is known.
    pub(super) fn advance(&mut self, stream: &str, position: u64, waits: Option<Timestamp>) {
        match waits {
            Some(end) => self.waits.insert(stream.to_owned(), end),
            None => self.waits.remove(stream),
        };
        if position > self.of(stream) {
            self.next
                .get_or_insert_default()
                .insert(stream.to_owned(), position);
            self.changed = true;
        }
    }

    /// Writes them, if they have changed. Losing the race against a new holder does no harm.
    pub(super) async fn save(&mut self) -> Result<(), StoreError> {
        let Some(next) = self.next.as_ref().filter(|_| self.changed) else {
            return Ok(());
        };
        let body = serde_json::to_vec(next)
            .map_err(|error| StoreError::Corrupt(format!("positions cannot be written: {error}").into()))?;
        self.nats
            .publish(&self.subject, HeaderMap::new(), body.into())
            .await?;
        self.changed = false;
        Ok(())
    }
}
