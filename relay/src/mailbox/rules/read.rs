//! Reads: they work on what is committed, or on a batch in the making.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use aip_protocol::name::Did;
use bytes::Bytes;
use uuid::Uuid;

use super::super::attempts::AttemptBook;
use super::super::error::StoreError;
use super::super::keys::{self, Bucket, meta};
use super::super::outcomes::{DeadLetter, MailboxState, StatusRecord, StoredMessage};
use super::super::records::{self, DeadRecord, MessageRecord};
use super::super::types::{Epoch, Fetch, MailboxId, Select};
use super::super::view::{Family, Span, View};
use super::{Head, load};
use crate::limits;

/// The lowest sequence number in the span of one mailbox.
pub(super) fn first_seq(view: &dyn View, family: Family, span: &Span) -> Result<Option<u64>, StoreError> {
    let mut first = None;
    view.scan(family, span, &mut |key, _| {
        first = keys::seq_of(key);
        ControlFlow::Break(())
    })?;
    Ok(first)
}

/// All pending messages in the span of one mailbox.
pub(super) fn heads(view: &dyn View, span: &Span) -> Result<Vec<Head>, StoreError> {
    let mut heads = Vec::new();
    view.scan(Family::Message, span, &mut |key, value| {
        let head = |seq| MessageRecord::decode(value).and_then(|record| Head::of(seq, &record));
        heads.extend(keys::seq_of(key).map(head));
        ControlFlow::Continue(())
    })?;
    heads.into_iter().collect()
}

/// See [`super::super::Mailboxes::state`].
pub(crate) fn state(view: &dyn View, mailbox: &MailboxId, epoch: Epoch) -> Result<MailboxState, StoreError> {
    let record = load(view, mailbox)?;
    Ok(MailboxState {
        epoch,
        floor: record.floor,
        next_seq: record.next_seq,
        pending: record.pending,
        bytes: record.bytes,
        dead: record.dead,
    })
}

/// Collects the messages of one fetch within its bounds.
struct Page<'a> {
    fetch: &'a Fetch,
    bytes: usize,
    messages: Vec<StoredMessage>,
    /// Of the last message: the next one is often by the same, and for the same.
    sender: Option<Did>,
    recipient: Option<Did>,
    failed: Option<StoreError>,
}

impl Page<'_> {
    /// Takes one record; breaks when the page is full or the record is unreadable.
    fn take(&mut self, seq: u64, value: &[u8]) -> ControlFlow<()> {
        match MessageRecord::decode(value).and_then(|record| self.keep(seq, &record)) {
            Ok(flow) => flow,
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn keep(&mut self, seq: u64, record: &MessageRecord<'_>) -> Result<ControlFlow<()>, StoreError> {
        if record.expires_at <= keys::nanos(self.fetch.now) {
            return Ok(ControlFlow::Continue(()));
        }
        let bytes = self.bytes.saturating_add(record.wire.len());
        let room = self.messages.len() < self.fetch.max_messages.min(limits::FETCH_MESSAGES_MAX);
        if !room || (bytes > self.fetch.max_bytes && !self.messages.is_empty()) {
            return Ok(ControlFlow::Break(()));
        }
        self.bytes = bytes;
        let sender = like(&mut self.sender, record.sender)?;
        let recipient = like(&mut self.recipient, record.recipient)?;
        self.messages.push(StoredMessage {
            seq,
            accepted_at: keys::moment(record.accepted_at),
            expires_at: keys::moment(record.expires_at),
            attempts: 0,
            sessions: 0,
            sender,
            recipient,
            id: record.id,
            wire: Bytes::copy_from_slice(record.wire),
        });
        Ok(ControlFlow::Continue(()))
    }
}

/// The DID in a record, which is often that of the one before.
fn like(last: &mut Option<Did>, text: &str) -> Result<Did, StoreError> {
    let did = match last.take() {
        Some(did) if did.as_str() == text => did,
        _ => records::did(text)?,
    };
    Ok(last.insert(did).clone())
}

/// See [`super::super::Mailboxes::fetch`].
pub(crate) fn fetch(
    view: &dyn View,
    attempts: &AttemptBook,
    mailbox: &MailboxId,
    fetch: &Fetch,
) -> Result<Vec<StoredMessage>, StoreError> {
    let mut page = Page {
        fetch,
        bytes: 0,
        messages: Vec::new(),
        sender: None,
        recipient: None,
        failed: None,
    };
    match &fetch.select {
        Select::After(after) => {
            // From the floor on, so as not to walk over what was deleted below it.
            let from = load(view, mailbox)?.floor.max(*after).saturating_add(1);
            view.scan(
                Family::Message,
                &keys::messages_from(mailbox, from),
                &mut |key, value| {
                    keys::seq_of(key).map_or(ControlFlow::Continue(()), |seq| page.take(seq, value))
                },
            )?;
        }
        Select::Seqs(seqs) => {
            for seq in seqs.iter().copied().collect::<BTreeSet<_>>() {
                if let Some(value) = view.get(Family::Message, &keys::message(mailbox, seq))?
                    && page.take(seq, &value).is_break()
                {
                    break;
                }
            }
        }
    }
    if let Some(error) = page.failed {
        return Err(error);
    }
    let mut messages = page.messages;
    for message in &mut messages {
        let record = attempts.get(view, mailbox, message.seq)?;
        (message.attempts, message.sessions) = (record.attempts, record.sessions());
    }
    Ok(messages)
}

/// See [`super::super::DeadLetters::dead`].
pub(crate) fn dead(
    view: &dyn View,
    mailbox: &MailboxId,
    after_seq: u64,
    limit: usize,
) -> Result<Vec<DeadLetter>, StoreError> {
    let mut letters = Vec::new();
    let mut failed = None;
    view.scan(
        Family::Dead,
        &keys::messages_from(mailbox, after_seq.saturating_add(1)),
        &mut |key, value| {
            if letters.len() >= limit.min(limits::FETCH_MESSAGES_MAX) {
                return ControlFlow::Break(());
            }
            match keys::seq_of(key).map(|seq| dead_letter(seq, value)) {
                Some(Ok(letter)) => letters.push(letter),
                Some(Err(error)) => {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
                None => {}
            }
            ControlFlow::Continue(())
        },
    )?;
    failed.map_or(Ok(letters), Err)
}

fn dead_letter(seq: u64, value: &[u8]) -> Result<DeadLetter, StoreError> {
    let record = DeadRecord::decode(value)?;
    Ok(DeadLetter {
        seq,
        code: record.code.to_owned(),
        at: keys::moment(record.at),
        sender: records::did(record.message.sender)?,
        id: record.message.id,
        wire: Bytes::copy_from_slice(record.message.wire),
    })
}

/// See [`super::super::Statuses::status`]: the newest of each recipient. No record was accepted after the high-water mark.
pub(crate) fn status(
    view: &dyn View,
    sender: &Did,
    id: Uuid,
    to: Option<&Did>,
) -> Result<Vec<StatusRecord>, StoreError> {
    let sender = MailboxId::of(sender);
    let newest = records::meta_number(view.get(Family::Meta, &meta::clock())?)?;
    let last = Bucket::status(newest);
    let first = Bucket::status(newest.saturating_sub(keys::secs(limits::STATUS_SECS)));
    let mut found: Vec<StatusRecord> = Vec::new();
    let mut failed = None;
    for bucket in first.through(last) {
        let mut span = keys::statuses(bucket, &sender, id);
        if let Some(to) = to {
            span.from = keys::status(bucket, &sender, id, &MailboxId::of(to));
        }
        view.scan(Family::Status, &span, &mut |key, value| {
            if to.is_some() && key != span.from.as_slice() {
                return ControlFlow::Break(());
            }
            match records::decode_status(value) {
                Ok(record) => {
                    // A later bucket is the newer one: the id was used again.
                    found.retain(|older| older.to != record.to);
                    found.push(record);
                }
                Err(error) => failed = Some(error),
            }
            if found.len() < limits::FETCH_MESSAGES_MAX {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
    }
    failed.map_or(Ok(found), Err)
}
