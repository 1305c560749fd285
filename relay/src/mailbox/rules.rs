//! What append, ack and their like do to the records of a store, whatever holds them.
//!
//! Invariants, for every mailbox: `floor` is one less than the lowest pending sequence number (or than
//! `next_seq` when nothing is pending); `pending` and `bytes` count the records of the family `message`; each
//! message has exactly one entry in `expiry`; a sender's count is absent when it is zero.

use std::collections::BTreeSet;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use bytes::Bytes;
use uuid::Uuid;

use super::attempts::Count;
use super::error::StoreError;
use super::keys::{self, Ends, Expiry, meta};
use super::outcomes::{AckOutcome, Acked, AppendOutcome, Full, Settled, Status, StatusRecord};
use super::records::{self, MailboxRecord, MessageRecord};
use super::types::{Append, MailboxId, Quota, Route};
use super::view::{Family, Txn, View};
use crate::dedup::{Remember, Seen, book};
use crate::limits;

pub(crate) mod dead;
pub(crate) mod outbox;
pub(crate) mod read;
pub(crate) mod status;
pub(crate) mod sweep;

/// Whom a message concerns, hashed: of an append by the caller, so that the writer need not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parties {
    /// Where it waits.
    pub(crate) mailbox: MailboxId,
    pub(crate) sender: MailboxId,
    /// For whom it is: the mailbox itself, unless that is an outbox.
    pub(crate) recipient: MailboxId,
}

impl Parties {
    pub(crate) fn of(append: &Append) -> Self {
        let recipient = MailboxId::of(&append.recipient);
        Self {
            mailbox: match append.route {
                Route::Mailbox | Route::Direct => recipient,
                Route::Peer => append.mailbox(),
            },
            sender: MailboxId::of(&append.sender),
            recipient,
        }
    }

    /// Of a message that waits in `mailbox`.
    pub(crate) fn within(mailbox: &MailboxId, sender: &Did, recipient: &Did) -> Self {
        Self {
            mailbox: *mailbox,
            sender: MailboxId::of(sender),
            recipient: MailboxId::of(recipient),
        }
    }

    /// What its sender knows of it while it waits.
    pub(crate) fn waiting(&self) -> Status {
        if self.mailbox == self.recipient {
            Status::Stored
        } else {
            Status::Queued
        }
    }
}

/// A message without its envelope.
#[derive(Debug)]
pub(crate) struct Head {
    seq: u64,
    accepted_at: u64,
    expires_at: u64,
    id: Uuid,
    sender: Did,
    recipient: Did,
    wire_bytes: u64,
}

impl Head {
    fn of(seq: u64, record: &MessageRecord<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            seq,
            accepted_at: record.accepted_at,
            expires_at: record.expires_at,
            id: record.id,
            sender: records::did(record.sender)?,
            recipient: records::did(record.recipient)?,
            wire_bytes: record.wire.len() as u64,
        })
    }
}

/// See [`super::Mailboxes::append`].
pub(crate) fn append(
    txn: &mut Txn<'_>,
    parties: Parties,
    append: &Append,
) -> Result<AppendOutcome, StoreError> {
    match book::seen(txn, &append.dedup_key, &append.digest, append.accepted_at)? {
        Some(Seen::Duplicate { seq, route }) => return Ok(AppendOutcome::Duplicate { seq, route }),
        Some(Seen::Reused) => return Ok(AppendOutcome::Reused),
        None => {}
    }
    let seq = match append.route {
        Route::Direct => None,
        Route::Mailbox | Route::Peer => match store(txn, parties, append)? {
            Ok(seq) => Some(seq),
            Err(full) => return Ok(AppendOutcome::Full(full)),
        },
    };
    let Append {
        dedup_key: key,
        digest,
        remember_until: until,
        accepted_at: now,
        route,
        ..
    } = *append;
    book::note(
        txn,
        &Remember {
            key,
            digest,
            until,
            now,
            seq,
            route,
        },
    );
    let status = match append.route {
        Route::Direct => Status::Delivered,
        Route::Mailbox | Route::Peer => parties.waiting(),
    };
    let record = StatusRecord {
        to: append.recipient.clone(),
        status,
        code: None,
        accepted_at: now,
        at: now,
        seq,
    };
    let _written = status::put(txn, parties, append.id, &record);
    tick(txn, now)?;
    Ok(AppendOutcome::Stored { seq })
}

/// The message itself, if the quota allows it.
fn store(txn: &mut Txn<'_>, parties: Parties, append: &Append) -> Result<Result<u64, Full>, StoreError> {
    let record = load(txn, &parties.mailbox)?;
    let from_sender =
        records::decode_count(txn.get(Family::Sender, &keys::sender(&parties.mailbox, &parties.sender))?)?;
    if let Some(full) = mailbox_full(&record, append.wire.len(), &append.quota) {
        return Ok(Err(full));
    }
    if from_sender >= u64::from(append.quota.sender_messages) {
        return Ok(Err(Full::Sender));
    }
    let message = MessageRecord {
        accepted_at: keys::nanos(append.accepted_at),
        expires_at: keys::nanos(append.expires_at),
        id: append.id,
        sender: append.sender.as_str(),
        recipient: append.recipient.as_str(),
        wire: &append.wire,
    };
    insert(txn, parties, record, message).map(Ok)
}

fn mailbox_full(record: &MailboxRecord, wire_bytes: usize, quota: &Quota) -> Option<Full> {
    let bytes = record.bytes.saturating_add(wire_bytes as u64);
    if record.pending >= u64::from(quota.mailbox_messages) {
        Some(Full::MailboxMessages)
    } else if bytes > quota.mailbox_bytes {
        Some(Full::MailboxBytes)
    } else {
        None
    }
}

/// Puts a message at the end of its mailbox.
fn insert(
    txn: &mut Txn<'_>,
    parties: Parties,
    mut record: MailboxRecord,
    mut message: MessageRecord<'_>,
) -> Result<u64, StoreError> {
    let mailbox = parties.mailbox;
    let seq = record.next_seq;
    // A sweep does not look back: what ended before the last one is met by the next one.
    message.expires_at = message
        .expires_at
        .max(records::meta_number(txn.get(Family::Meta, &meta::swept())?)?);
    txn.put(Family::Message, keys::message(&mailbox, seq), message.encode());
    let expiry = Expiry {
        at: message.expires_at,
        ends: Ends::Message,
        mailbox,
        seq,
    };
    txn.put(Family::Expiry, expiry.key(), Bytes::new());
    record.next_seq += 1;
    record.pending += 1;
    record.bytes += message.wire.len() as u64;
    save(txn, &mailbox, &record);
    count_sender(txn, parties, |count| count + 1)?;
    Ok(seq)
}

/// See [`super::Mailboxes::ack`].
pub(crate) fn ack(
    txn: &mut Txn<'_>,
    mailbox: &MailboxId,
    upto: u64,
    also: &[u64],
    now: Timestamp,
) -> Result<AckOutcome, StoreError> {
    let mut record = load(txn, mailbox)?;
    if also.len() > limits::ACK_ALSO_MAX {
        return Ok(AckOutcome::TooMany);
    }
    if also.iter().chain([&upto]).any(|seq| *seq >= record.next_seq) {
        return Ok(AckOutcome::BeyondEnd);
    }
    let mut heads = Vec::new();
    if upto > record.floor {
        let mut span = keys::messages_from(mailbox, record.floor + 1);
        span.until = keys::message(mailbox, upto + 1);
        heads = read::heads(txn, &span)?;
    }
    for seq in also
        .iter()
        .copied()
        .filter(|seq| *seq > upto)
        .collect::<BTreeSet<_>>()
    {
        if let Some(value) = txn.get(Family::Message, &keys::message(mailbox, seq))? {
            heads.push(Head::of(seq, &MessageRecord::decode(&value)?)?);
        }
    }
    let mut messages = Vec::with_capacity(heads.len());
    for head in heads {
        messages.push(settle(
            txn,
            mailbox,
            &mut record,
            head,
            (Status::Acked, None),
            now,
        )?);
    }
    if !messages.is_empty() {
        let past = record.floor.max(upto);
        raise_floor(txn, mailbox, &mut record, past)?;
        save(txn, mailbox, &record);
        tick(txn, now)?;
    }
    Ok(AckOutcome::Acked(Acked {
        floor: record.floor,
        messages,
    }))
}

/// Takes a pending message out of its mailbox and notes its fate. The caller raises the floor and saves
/// `record`.
fn settle(
    txn: &mut Txn<'_>,
    mailbox: &MailboxId,
    record: &mut MailboxRecord,
    head: Head,
    (status, code): (Status, Option<&str>),
    now: Timestamp,
) -> Result<Settled, StoreError> {
    let Head {
        seq,
        accepted_at,
        expires_at,
        id,
        sender,
        recipient,
        wire_bytes,
    } = head;
    let parties = Parties::within(mailbox, &sender, &recipient);
    let key = keys::message(mailbox, seq);
    txn.delete(Family::Message, key);
    txn.delete(Family::Attempt, key);
    let expiry = Expiry {
        at: expires_at,
        ends: Ends::Message,
        mailbox: *mailbox,
        seq,
    };
    txn.delete(Family::Expiry, expiry.key());
    record.pending = record.pending.saturating_sub(1);
    record.bytes = record.bytes.saturating_sub(wire_bytes);
    count_sender(txn, parties, |count| count.saturating_sub(1))?;
    let fate = StatusRecord {
        to: recipient.clone(),
        status,
        code: code.map(ToOwned::to_owned),
        accepted_at: keys::moment(accepted_at),
        at: now,
        seq: Some(seq),
    };
    let _written = status::put(txn, parties, id, &fate);
    Ok(Settled {
        seq,
        sender,
        recipient,
        id,
    })
}

/// Moves the floor to just below the lowest pending message, all of which lie above `past`.
fn raise_floor(
    txn: &Txn<'_>,
    mailbox: &MailboxId,
    record: &mut MailboxRecord,
    past: u64,
) -> Result<(), StoreError> {
    let lowest = read::first_seq(txn, Family::Message, &keys::messages_from(mailbox, past + 1))?;
    record.floor = lowest.unwrap_or(record.next_seq) - 1;
    Ok(())
}

fn count_sender(txn: &mut Txn<'_>, parties: Parties, change: fn(u64) -> u64) -> Result<(), StoreError> {
    let key = keys::sender(&parties.mailbox, &parties.sender);
    match change(records::decode_count(txn.get(Family::Sender, &key)?)?) {
        0 => txn.delete(Family::Sender, key),
        count => txn.put(Family::Sender, key, records::encode_count(count)),
    }
    Ok(())
}

/// The counters of a mailbox.
pub(crate) fn load(view: &dyn View, mailbox: &MailboxId) -> Result<MailboxRecord, StoreError> {
    match view.get(Family::Mailbox, &keys::mailbox(mailbox))? {
        Some(bytes) => MailboxRecord::decode(&bytes),
        None => Ok(MailboxRecord::EMPTY),
    }
}

fn save(txn: &mut Txn<'_>, mailbox: &MailboxId, record: &MailboxRecord) {
    txn.put(Family::Mailbox, keys::mailbox(mailbox), record.encode());
}

/// Notes the latest time seen.
fn tick(txn: &mut Txn<'_>, now: Timestamp) -> Result<(), StoreError> {
    let now = keys::nanos(now);
    if records::meta_number(txn.get(Family::Meta, &meta::clock())?)? < now {
        txn.put(Family::Meta, meta::clock(), now.to_be_bytes().to_vec());
    }
    Ok(())
}

/// See [`super::Mailboxes::offer`]: writes down counts that were raised in memory, unless the message is
/// settled.
pub(crate) fn note_attempts(txn: &mut Txn<'_>, counts: &[Count]) -> Result<(), StoreError> {
    for ((mailbox, seq), attempts) in counts {
        let key = keys::message(mailbox, *seq);
        if txn.exists(Family::Message, &key)? {
            txn.put(Family::Attempt, key, attempts.encode());
        }
    }
    Ok(())
}
