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
    sweep_from(txn, now, 0).map(|(swept, _)| swept)
}

/// The same from `looked` on (nanoseconds), before which the caller knows that nothing is due; also how far it has looked
/// now. What a sweep has deleted is walked over slowly, and one that finds nothing does not write down where it was.
pub(crate) fn sweep_from(txn: &mut Txn<'_>, now: Timestamp, looked: u64) -> Result<(Swept, u64), StoreError> {
    let at = keys::nanos(now);
    let noted = records::meta_number(txn.get(Family::Meta, &meta::swept())?)?;
    let from = noted.max(looked);
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
    if !due.is_empty() && reached > noted {
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
    Ok((swept, reached))
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use bytes::Bytes;

    use super::super::super::view::{Key, Span, Visit};
    use super::*;

    /// An empty store that says where the last walk over what ends began.
    #[derive(Default)]
    struct Empty(Cell<Option<Key>>);

    impl View for Empty {
        fn get(&self, _: Family, _: &Key) -> Result<Option<Bytes>, StoreError> {
            Ok(None)
        }

        fn scan(&self, family: Family, span: &Span, _: Visit<'_>) -> Result<(), StoreError> {
            assert_eq!(family, Family::Expiry);
            self.0.set(Some(span.from));
            Ok(())
        }
    }

    #[test]
    fn an_idle_sweep_begins_where_the_last_one_ended_and_writes_nothing() {
        let store = Empty::default();
        let mut looked = 0;
        let mut now = Timestamp::parse("2026-11-29T20:15:30Z").unwrap();
        for _ in 0..3 {
            let mut txn = Txn::new(&store);
            // The buckets of that time are dropped, once.
            let (swept, reached) = sweep_from(&mut txn, now, looked).unwrap();
            assert_eq!(
                (swept.more, swept.expired.len(), reached),
                (false, 0, keys::nanos(now))
            );
            assert!(!txn.into_parts().0.contains_key(&(Family::Meta, meta::swept())));
            assert_eq!(store.0.get(), Some(Expiry::span(looked, 0).from));
            looked = reached;
            now = now + std::time::Duration::from_secs(30);
        }
    }
}
