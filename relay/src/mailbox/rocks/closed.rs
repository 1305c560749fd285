//! A store that no process has open, for what an operator sets right: its epoch, and a clock that was far ahead.
//!
//! # Why the clock may be set back
//!
//! The hub's time is never before the latest one that the store was told, so that what was forgotten does not become
//! needed again. If the machine's clock was wrong and far ahead, that rule keeps the hub in a future that no sender
//! lives in. [`ClosedStore::reset_clock`] takes the store back, and everything in it that was written by the wrong time:
//!
//! - *Sequence numbers* do not depend on time. None is given out twice.
//! - *Dedup records* stay. Each ends at a time of its envelope, not of the hub: one of the future is met by a retry that
//!   is legal then, and its bucket is dropped when that time has come.
//! - *Missing* are the records that a sweep dropped too early. They are of envelopes from the last
//!   [`limits::DEDUP_LIFE_SECS`] before the clock went wrong, and a retry of one may be stored once more. That is what
//!   the new epoch is for: a recipient that meets another epoch recognises messages by their ids (spec §6).
//! - *Messages and dead letters* of the future begin their time now, and none outlives the retention. What a sweep by
//!   the wrong time has ended is gone, and its sender was told.
//! - *Statuses* of the future were never to be found by the right time; those of messages that wait are written anew.
//! - *How far was swept* is forgotten, so that sweeps look at everything once more. Otherwise messages would be kept,
//!   and buckets not dropped, until the wrong time has come.
//!
//! Each step is a batch, and the latest time is written with the last one: a reset that was broken off is run again.

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aip_protocol::time::Timestamp;
use bytes::Bytes;

use super::folder::{self, FolderLock};
use super::open_error::OpenError;
use crate::limits;
use crate::mailbox::error::StoreError;
use crate::mailbox::keys::{self, Bucket, Ends, Expiry, meta};
use crate::mailbox::outcomes::StatusRecord;
use crate::mailbox::records::{self, DeadRecord, MessageRecord};
use crate::mailbox::rules::{Parties, status};
use crate::mailbox::types::Epoch;
use crate::mailbox::view::{Family, Txn, View as _};
use crate::rocks::Engine;

const DAY_SECS: u64 = 86_400;

/// See the module. Nobody else opens the store while this lives.
pub struct ClosedStore {
    dir: PathBuf,
    // Closed before the lock.
    engine: Engine,
    _lock: FolderLock,
}

impl fmt::Debug for ClosedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClosedStore")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

/// What a reset of the clock has changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retimed {
    /// Messages that begin their time now, or end earlier.
    pub messages: u64,
    /// Dead letters, likewise.
    pub dead_letters: u64,
}

impl ClosedStore {
    /// The store in the folder `dir`, which must be there and not in use. Blocks, as all of this does.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        let (engine, lock) = folder::open_existing(dir)?;
        Ok(Self {
            dir: dir.to_owned(),
            engine,
            _lock: lock,
        })
    }

    /// The latest time that it was told, if there was one.
    pub fn clock_high_water(&self) -> Result<Option<Timestamp>, OpenError> {
        let read = self.engine.get(Family::Meta, &meta::clock());
        let nanos = read
            .and_then(records::meta_number)
            .map_err(|error| self.damaged(&error))?;
        Ok(Some(nanos).filter(|nanos| *nanos > 0).map(keys::moment))
    }

    /// Gives it another epoch: cursors into it no longer hold, and recipients recognise messages by their ids.
    pub fn renew_epoch(&self, epoch: &Epoch) -> Result<(), OpenError> {
        let mut txn = Txn::new(&self.engine);
        put_epoch(&mut txn, epoch);
        self.commit(txn)
    }

    /// Makes `now` the latest time that it was told, with another epoch; no message is kept for longer than
    /// `retention` from then on. See the module for why this is safe.
    pub fn reset_clock(
        &self,
        now: Timestamp,
        retention: Duration,
        epoch: &Epoch,
    ) -> Result<Retimed, OpenError> {
        let reset = Reset {
            now: keys::nanos(now),
            retention: keys::secs(retention.as_secs()),
        };
        let mut retimed = Retimed::default();
        let mut from = Vec::new();
        loop {
            let page = self.expiries_from(&from)?;
            let Some(last) = page.last() else { break };
            from = [last.key().as_slice(), &[0]].concat();
            let mut txn = Txn::new(&self.engine);
            for entry in &page {
                // What ends now lies before what is walked over: it is not met again.
                reset
                    .retime(&mut txn, entry, &mut retimed)
                    .map_err(|error| self.damaged(&error))?;
            }
            self.commit(txn)?;
        }
        let mut txn = Txn::new(&self.engine);
        reset.finish(&mut txn, epoch);
        self.commit(txn)?;
        Ok(retimed)
    }

    /// Some of what ends, in the order of its end.
    fn expiries_from(&self, from: &[u8]) -> Result<Vec<Expiry>, OpenError> {
        let mut page = Vec::new();
        let walked = self.engine.walk(Family::Expiry, from, &mut |key, _| {
            page.extend(Expiry::parse(key));
            if page.len() < limits::SWEEP_ENTRIES_MAX {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        walked.map_err(|error| folder::explain(&self.dir, error))?;
        Ok(page)
    }

    fn commit(&self, txn: Txn<'_>) -> Result<(), OpenError> {
        let (writes, drops) = txn.into_parts();
        let written = self.engine.write(&writes, &drops, true);
        written.map_err(|error| folder::explain(&self.dir, error))
    }

    fn damaged(&self, error: &StoreError) -> OpenError {
        folder::unreadable(&self.dir, error)
    }
}

fn put_epoch(txn: &mut Txn<'_>, epoch: &Epoch) {
    txn.put(
        Family::Meta,
        meta::epoch(),
        Bytes::copy_from_slice(epoch.as_str().as_bytes()),
    );
}

/// A reset, in nanoseconds.
#[derive(Clone, Copy)]
struct Reset {
    now: u64,
    retention: u64,
}

impl Reset {
    fn retime(self, txn: &mut Txn<'_>, entry: &Expiry, retimed: &mut Retimed) -> Result<(), StoreError> {
        let kind = match entry.ends {
            Ends::Message => Family::Message,
            Ends::DeadLetter => Family::Dead,
        };
        let key = keys::message(&entry.mailbox, entry.seq);
        let Some(value) = txn.get(kind, &key)? else {
            return Ok(());
        };
        let again = match entry.ends {
            Ends::Message => self.message(txn, entry, &value)?,
            Ends::DeadLetter => self.dead_letter(&value)?,
        };
        let Some((value, at)) = again else { return Ok(()) };
        txn.put(kind, key, value);
        txn.delete(Family::Expiry, entry.key());
        txn.put(Family::Expiry, Expiry { at, ..*entry }.key(), Bytes::new());
        match entry.ends {
            Ends::Message => retimed.messages += 1,
            Ends::DeadLetter => retimed.dead_letters += 1,
        }
        Ok(())
    }

    /// A message and its end by the right time, if they are others.
    fn message(
        self,
        txn: &mut Txn<'_>,
        entry: &Expiry,
        value: &Bytes,
    ) -> Result<Option<(Bytes, u64)>, StoreError> {
        let mut message = MessageRecord::decode(value)?;
        let ahead = message.accepted_at.saturating_sub(self.now);
        let last = self.now.saturating_add(self.retention);
        let expires_at = message.expires_at.saturating_sub(ahead).min(last);
        if expires_at == message.expires_at {
            return Ok(None);
        }
        message.expires_at = expires_at;
        if ahead > 0 {
            message.accepted_at = self.now;
            self.note_waiting(txn, entry, &message)?;
        }
        Ok(Some((message.encode(), expires_at)))
    }

    fn note_waiting(
        self,
        txn: &mut Txn<'_>,
        entry: &Expiry,
        message: &MessageRecord<'_>,
    ) -> Result<(), StoreError> {
        let recipient = records::did(message.recipient)?;
        let parties = Parties::within(&entry.mailbox, &records::did(message.sender)?, &recipient);
        let waiting = StatusRecord {
            to: recipient,
            status: parties.waiting(),
            code: None,
            accepted_at: keys::moment(self.now),
            at: keys::moment(self.now),
            seq: Some(entry.seq),
        };
        let _written = status::put(txn, parties, message.id, &waiting);
        Ok(())
    }

    fn dead_letter(self, value: &Bytes) -> Result<Option<(Bytes, u64)>, StoreError> {
        let mut letter = DeadRecord::decode(value)?;
        if letter.at <= self.now {
            return Ok(None);
        }
        letter.at = self.now;
        letter.message.accepted_at = letter.message.accepted_at.min(self.now);
        letter.until = self.now.saturating_add(keys::secs(limits::DEAD_LETTER_SECS));
        Ok(Some((letter.encode(), letter.until)))
    }

    /// What is written last: until then the store is as far ahead as it was.
    fn finish(self, txn: &mut Txn<'_>, epoch: &Epoch) {
        // From the day after tomorrow on: those of tomorrow are few, and are dropped in their time.
        let future = Bucket::status(self.now.saturating_add(keys::secs(2 * DAY_SECS)));
        txn.drop_span(Family::Status, future.span(Bucket::LAST));
        for progress in [meta::swept(), meta::dedup_bucket(), meta::status_bucket()] {
            txn.delete(Family::Meta, progress);
        }
        txn.put(Family::Meta, meta::clock(), self.now.to_be_bytes().to_vec());
        put_epoch(txn, epoch);
    }
}
