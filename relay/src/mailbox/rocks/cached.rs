//! The engine as the writer reads it.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;

use super::super::error::StoreError;
use super::super::generations::Generations;
use super::super::records::MailboxRecord;
use super::super::types::MailboxId;
use super::super::view::{Family, Key, Span, View, Visit, Writes};
use crate::limits;
use crate::rocks::{self, Engine};

/// The engine with a memory for the small records that every operation needs.
pub(super) struct CachedEngine {
    engine: Arc<Engine>,
    known: RefCell<Generations<(Family, Key), Option<Bytes>>>,
}

impl CachedEngine {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self {
            engine,
            known: RefCell::new(Generations::new(limits::WRITER_CACHE_MAX)),
        }
    }

    fn keeps(family: Family) -> bool {
        matches!(family, Family::Meta | Family::Mailbox | Family::Sender)
    }

    /// Takes over what was just committed.
    pub(super) fn absorb(&self, writes: Writes) {
        let mut known = self.known.borrow_mut();
        for (place, value) in writes {
            if Self::keeps(place.0) {
                known.insert(place, value);
            }
        }
    }

    /// The counters of a mailbox as stored, checked against its messages: a sequence number is never given
    /// out twice, even if a log was damaged in a way that nothing else has noticed.
    fn counters(&self, key: &Key) -> Result<Option<Bytes>, StoreError> {
        let stored = self.engine.get(Family::Mailbox, key)?;
        let Ok(mailbox) = key.as_slice().try_into().map(MailboxId::from_bytes) else {
            return Ok(stored);
        };
        let Some(last) = rocks::last_seq(&self.engine, &mailbox)? else {
            return Ok(stored);
        };
        let mut record = match &stored {
            Some(bytes) => MailboxRecord::decode(bytes)?,
            None => MailboxRecord::EMPTY,
        };
        if last < record.next_seq {
            return Ok(stored);
        }
        tracing::error!(
            ?mailbox,
            last,
            next = record.next_seq,
            "the counters of a mailbox lag behind its messages"
        );
        record.next_seq = last + 1;
        Ok(Some(record.encode()))
    }
}

impl View for CachedEngine {
    fn get(&self, family: Family, key: &Key) -> Result<Option<Bytes>, StoreError> {
        if !Self::keeps(family) {
            return self.engine.get(family, key);
        }
        if let Some(known) = self.known.borrow_mut().get(&(family, *key)) {
            return Ok(known);
        }
        let value = match family {
            Family::Mailbox => self.counters(key)?,
            _ => self.engine.get(family, key)?,
        };
        self.known.borrow_mut().insert((family, *key), value.clone());
        Ok(value)
    }

    fn exists(&self, family: Family, key: &Key) -> Result<bool, StoreError> {
        self.engine.exists(family, key)
    }

    fn scan(&self, family: Family, span: &Span, visit: Visit<'_>) -> Result<(), StoreError> {
        self.engine.scan(family, span, visit)
    }
}
