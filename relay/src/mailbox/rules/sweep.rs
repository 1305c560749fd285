//! What time ends: messages, dead letters, statuses, dedup records.

use std::ops::ControlFlow;

use aip_protocol::time::Timestamp;

use super::super::error::StoreError;
use super::super::keys::{self, Bucket, Ends, Expiry, meta};
use super::super::outcomes::{Settled, Status, Swept};
use super::super::records::{self, MessageRecord};
use super::super::view::{Family, Txn, View};
use super::{Head, dead, load, raise_floor, save, settle, tick};
use crate::dedup::book;
use crate::limits;

/// See [`super::super::Upkeep::sweep`].
pub(crate) fn sweep(txn: &mut Txn<'_>, now: Timestamp) -> Result<Swept, StoreError> {
    let at = keys::nanos(now);
    let from = records::meta_number(txn.get(Family::Meta, &meta::swept())?)?;
    let mut due = Vec::new();
    txn.scan(Family::Expiry, &Expiry::span(from, at), &mut |key, _| {
        due.extend(Expiry::parse(key));
        if due.len() > limits::SWEEP_ENTRIES_MAX {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    let more = due.len() > limits::SWEEP_ENTRIES_MAX;
    due.truncate(limits::SWEEP_ENTRIES_MAX);
    let mut swept = Swept {
        more,
        ..Swept::default()
    };
    for entry in &due {
        match entry.ends {
            Ends::Message => swept.expired.extend(expire(txn, entry, now)?),
            Ends::DeadLetter => {
                let mut record = load(txn, &entry.mailbox)?;
                dead::drop_letter(txn, &entry.mailbox, &mut record, entry.seq)?;
                save(txn, &entry.mailbox, &record);
                swept.dead_letters += 1;
            }
        }
        txn.delete(Family::Expiry, entry.key());
    }
    let reached = if more {
        due.last().map_or(from, |entry| entry.at)
    } else {
        at
    };
    // Each put costs a sync, so an idle sweep writes nothing.
    if !due.is_empty() && reached > from {
        txn.put(Family::Meta, meta::swept(), reached.to_be_bytes().to_vec());
        tick(txn, now)?;
    }
    book::sweep(txn, at)?;
    let kept = keys::secs(limits::STATUS_SECS + limits::CLOCK_SLACK_SECS);
    book::drop_buckets(
        txn,
        Family::Status,
        meta::status_bucket(),
        Bucket::status(at.saturating_sub(kept)),
    )?;
    Ok(swept)
}

fn expire(txn: &mut Txn<'_>, entry: &Expiry, now: Timestamp) -> Result<Option<Settled>, StoreError> {
    let Expiry { mailbox, seq, .. } = *entry;
    let Some(value) = txn.get(Family::Message, &keys::message(&mailbox, seq))? else {
        return Ok(None);
    };
    let head = Head::of(seq, &MessageRecord::decode(&value)?)?;
    let mut record = load(txn, &mailbox)?;
    let settled = settle(
        txn,
        &mailbox,
        &mut record,
        head,
        (Status::Expired, Some("expired")),
        now,
    )?;
    if seq == record.floor + 1 {
        raise_floor(txn, &mailbox, &mut record, seq)?;
    }
    save(txn, &mailbox, &record);
    Ok(Some(settled))
}
