//! Dead letters: buried, and brought back.

use aip_protocol::time::Timestamp;
use bytes::Bytes;

use super::super::error::StoreError;
use super::super::keys::{self, Ends, Expiry};
use super::super::outcomes::{RedriveOutcome, Settled, Status, StatusRecord};
use super::super::records::{self, DeadRecord, MailboxRecord, MessageRecord};
use super::super::types::{MailboxId, Redrive};
use super::super::view::{Family, Txn, View};
use super::{Head, Parties, insert, load, mailbox_full, raise_floor, read, save, settle, status, tick};
use crate::limits;

/// See [`super::super::DeadLetters::bury`].
pub(crate) fn bury(
    txn: &mut Txn<'_>,
    mailbox: &MailboxId,
    seq: u64,
    code: &str,
    now: Timestamp,
) -> Result<Option<Settled>, StoreError> {
    let Some(value) = txn.get(Family::Message, &keys::message(mailbox, seq))? else {
        return Ok(None);
    };
    let message = MessageRecord::decode(&value)?;
    let code = code
        .get(..code.floor_char_boundary(limits::CODE_BYTES_MAX))
        .unwrap_or_default();
    let mut record = load(txn, mailbox)?;
    let settled = settle(
        txn,
        mailbox,
        &mut record,
        Head::of(seq, &message)?,
        (Status::Dead, Some(code)),
        now,
    )?;
    if seq == record.floor + 1 {
        raise_floor(txn, mailbox, &mut record, seq)?;
    }
    let at = keys::nanos(now);
    let until = at.saturating_add(keys::secs(limits::DEAD_LETTER_SECS));
    txn.put(
        Family::Dead,
        keys::message(mailbox, seq),
        DeadRecord {
            at,
            until,
            code,
            message,
        }
        .encode(),
    );
    let expiry = Expiry {
        at: until,
        ends: Ends::DeadLetter,
        mailbox: *mailbox,
        seq,
    };
    txn.put(Family::Expiry, expiry.key(), Bytes::new());
    record.dead += 1;
    while record.dead > limits::DEAD_LETTERS_MAX {
        drop_first(txn, mailbox, &mut record)?;
    }
    save(txn, mailbox, &record);
    tick(txn, now)?;
    Ok(Some(settled))
}

/// Drops the dead letter with the lowest sequence number.
fn drop_first(txn: &mut Txn<'_>, mailbox: &MailboxId, record: &mut MailboxRecord) -> Result<(), StoreError> {
    if let Some(seq) = read::first_seq(txn, Family::Dead, &keys::messages_from(mailbox, 0))? {
        return drop_letter(txn, mailbox, record, seq);
    }
    record.dead = 0;
    Ok(())
}

/// Drops a dead letter, if it is there.
pub(super) fn drop_letter(
    txn: &mut Txn<'_>,
    mailbox: &MailboxId,
    record: &mut MailboxRecord,
    seq: u64,
) -> Result<(), StoreError> {
    let key = keys::message(mailbox, seq);
    if let Some(value) = txn.get(Family::Dead, &key)? {
        let expiry = Expiry {
            at: DeadRecord::decode(&value)?.until,
            ends: Ends::DeadLetter,
            mailbox: *mailbox,
            seq,
        };
        txn.delete(Family::Expiry, expiry.key());
        txn.delete(Family::Dead, key);
        record.dead = record.dead.saturating_sub(1);
    }
    Ok(())
}

/// See [`super::super::DeadLetters::redrive`].
pub(crate) fn redrive(
    txn: &mut Txn<'_>,
    mailbox: &MailboxId,
    redrive: &Redrive,
) -> Result<RedriveOutcome, StoreError> {
    let Some(value) = txn.get(Family::Dead, &keys::message(mailbox, redrive.seq))? else {
        return Ok(RedriveOutcome::NotFound);
    };
    let mut message = DeadRecord::decode(&value)?.message;
    let mut record = load(txn, mailbox)?;
    if let Some(full) = mailbox_full(&record, message.wire.len(), &redrive.quota) {
        return Ok(RedriveOutcome::Full(full));
    }
    drop_letter(txn, mailbox, &mut record, redrive.seq)?;
    message.expires_at = keys::nanos(redrive.expires_at);
    let recipient = records::did(message.recipient)?;
    let parties = Parties::within(mailbox, &records::did(message.sender)?, &recipient);
    let seq = insert(txn, parties, record, message)?;
    let again = StatusRecord {
        to: recipient,
        status: parties.waiting(),
        code: None,
        accepted_at: keys::moment(message.accepted_at),
        at: redrive.now,
        seq: Some(seq),
    };
    let _written = status::put(txn, parties, message.id, &again);
    tick(txn, redrive.now)?;
    Ok(RedriveOutcome::Redriven { seq })
}
