//! The dedup window over a store: look up, note down, drop whole buckets.

use aip_protocol::time::Timestamp;

use super::{Remember, Seen};
use crate::limits;
use crate::mailbox::StoreError;
use crate::mailbox::keys::{self, Bucket, meta};
use crate::mailbox::records::{self, DedupRecord};
use crate::mailbox::view::{Family, Txn, View};

/// The record of `key` that is alive at `now`.
///
/// A record accepted at `t` ends in `[t, t + life]`, and a bucket is as long as `life`: the record of a retry
/// lies in the bucket of `now` or in the next one. The one before is not looked at, its records have ended.
pub(crate) fn record(
    view: &dyn View,
    key: &[u8; 16],
    now: Timestamp,
) -> Result<Option<DedupRecord>, StoreError> {
    let now = keys::nanos(now);
    let life = keys::secs(limits::DEDUP_LIFE_SECS + limits::CLOCK_SLACK_SECS);
    for bucket in Bucket::dedup(now).through(Bucket::dedup(now.saturating_add(life))) {
        let Some(bytes) = view.get(Family::Dedup, &keys::dedup(bucket, key))? else {
            continue;
        };
        let record = DedupRecord::decode(&bytes)?;
        if record.until >= now {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// What is known of `key` at `now`.
pub(crate) fn seen(
    view: &dyn View,
    key: &[u8; 16],
    digest: &[u8; 32],
    now: Timestamp,
) -> Result<Option<Seen>, StoreError> {
    let record = record(view, key, now)?;
    Ok(record.map(|record| {
        if record.digest != *digest {
            return Seen::Reused;
        }
        Seen::Duplicate {
            seq: record.seq,
            route: record.route,
        }
    }))
}

/// Notes an accepted envelope; the caller has looked it up in the same batch.
pub(crate) fn note(txn: &mut Txn<'_>, remember: &Remember) {
    let until = keys::nanos(remember.until);
    let record = DedupRecord {
        until,
        digest: remember.digest,
        route: remember.route,
        seq: remember.seq,
    };
    txn.put(
        Family::Dedup,
        keys::dedup(Bucket::dedup(until), &remember.key),
        record.encode(),
    );
}

/// Looks up and notes in one step.
pub(crate) fn remember(txn: &mut Txn<'_>, remember: &Remember) -> Result<Option<Seen>, StoreError> {
    let seen = seen(txn, &remember.key, &remember.digest, remember.now)?;
    if seen.is_none() {
        note(txn, remember);
    }
    Ok(seen)
}

/// Drops the buckets that ended before `now`, with some slack for calls that are still under way.
pub(crate) fn sweep(txn: &mut Txn<'_>, now: u64) -> Result<(), StoreError> {
    let slack = keys::secs(limits::CLOCK_SLACK_SECS);
    drop_buckets(
        txn,
        Family::Dedup,
        meta::dedup_bucket(),
        Bucket::dedup(now.saturating_sub(slack)),
    )
}

/// Drops all buckets of `family` before `end`, once; `progress` is where it is noted how far.
pub(crate) fn drop_buckets(
    txn: &mut Txn<'_>,
    family: Family,
    progress: crate::mailbox::view::Key,
    end: Bucket,
) -> Result<(), StoreError> {
    let done = records::meta_bucket(txn.get(Family::Meta, &progress)?)?;
    if done < end {
        txn.drop_span(family, done.span(end));
        txn.put(Family::Meta, progress, end.to_bytes().to_vec());
    }
    Ok(())
}
