//! What became of messages: one record per change, in buckets, and the newest one counts.
//!
//! A bucket is a subject, `<prefix>.st.<hh>.<bbb>`: twenty bits of a keyed hash over sender and message id. A
//! look-up reads the one bucket that can hold the answer.

use std::collections::HashMap;
use std::sync::Arc;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_relay::mailbox::{MailboxId, Status, StatusRecord, StoreError};
use async_nats::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::background::{Background, Record};
use crate::codec::{Reader, Writer, readable};
use crate::limits;
use crate::nats::{Nats, Published};
use crate::streams::Layout;

/// The layout of a record.
const VERSION: u8 = 1;
/// Domain separation of buckets.
const BUCKET_TAG: &[u8] = b"aip status bucket";

/// Reads and writes statuses.
#[derive(Debug)]
pub(crate) struct Statuses {
    nats: Nats,
    layout: Arc<Layout>,
    background: Arc<Background>,
}

/// One record as written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Written {
    sender: MailboxId,
    id: Uuid,
    record: StatusRecord,
}

impl Statuses {
    pub(crate) fn new(nats: Nats, layout: Arc<Layout>, background: Arc<Background>) -> Self {
        Self {
            nats,
            layout,
            background,
        }
    }

    /// Writes a status soon; never blocks.
    pub(crate) fn note(&self, sender: &Did, id: Uuid, record: StatusRecord) {
        self.background
            .put(self.packed(MailboxId::of(sender), id, record));
    }

    /// Writes statuses, each with its sender, hashed; durable when it returns. One that is written twice says no more
    /// than once.
    pub(crate) async fn write(
        &self,
        statuses: Vec<(MailboxId, Uuid, StatusRecord)>,
    ) -> Result<(), StoreError> {
        let records = statuses
            .into_iter()
            .map(|(sender, id, record)| self.packed(sender, id, record));
        stream::iter(records)
            .map(|record| async move {
                let Record { subject, payload, .. } = record;
                match self.nats.publish(&subject, HeaderMap::new(), payload).await? {
                    Published::Stored { .. } | Published::Duplicate { .. } => Ok(()),
                    Published::WrongLast { .. } | Published::Full | Published::Elsewhere => Err(
                        StoreError::Unavailable("the stream of statuses takes none".into()),
                    ),
                }
            })
            .buffer_unordered(limits::BACKGROUND_AT_ONCE)
            .try_for_each(|()| async { Ok(()) })
            .await
    }

    /// The newest status of this sender's `id` for each recipient (or the one `to`), in the order of acceptance.
    /// Messages accepted before `accepted_from` are forgotten.
    pub(crate) async fn look_up(
        &self,
        sender: &Did,
        id: Uuid,
        to: Option<&Did>,
        accepted_from: Timestamp,
    ) -> Result<Vec<StatusRecord>, StoreError> {
        // What this process has queued, it has told: best effort, the servers may be slow.
        self.background.flush(limits::BACKGROUND_FLUSH).await;
        let owner = MailboxId::of(sender);
        let subject = self.bucket(owner, id);
        let mut newest: HashMap<Did, StatusRecord> = HashMap::new();
        let (mut from, mut read) = (1, 0);
        while read < limits::STATUS_RECORDS_MAX {
            let batch = self
                .nats
                .batch(
                    &self.layout.statuses,
                    &subject,
                    from,
                    limits::BATCH_MESSAGES_MAX,
                    limits::STATUS_BATCH_BYTES,
                )
                .await?;
            let Some(last) = batch.messages.last() else { break };
            from = last.stream_seq.saturating_add(1);
            read += batch.messages.len();
            for stored in &batch.messages {
                let written = unpack(&stored.payload)?;
                let asked = written.sender == owner && written.id == id;
                if asked && to.is_none_or(|to| *to == written.record.to) {
                    keep_newest(&mut newest, written.record);
                }
            }
            if !batch.more {
                break;
            }
        }
        let mut records: Vec<StatusRecord> = newest.into_values().collect();
        records.retain(|record| record.accepted_at >= accepted_from);
        records.sort_by(|a, b| (a.accepted_at, a.to.as_str()).cmp(&(b.accepted_at, b.to.as_str())));
        Ok(records)
    }

    fn bucket(&self, sender: MailboxId, id: Uuid) -> String {
        let hash = self
            .layout
            .keyed_hash(BUCKET_TAG, &[sender.as_bytes(), id.as_bytes()]);
        let [a, b, c, d, ..] = hash;
        let number = u32::from_be_bytes([a, b, c, d]) >> (u32::BITS - limits::STATUS_BUCKET_BITS);
        let prefix = self.layout.names.prefix();
        format!("{prefix}.st.{:02x}.{:03x}", number >> 12, number & 0xfff)
    }

    /// A status as it is written; `sender` is hashed.
    pub(crate) fn packed(&self, sender: MailboxId, id: Uuid, record: StatusRecord) -> Record {
        let payload = pack(&Written { sender, id, record });
        Record {
            subject: self.bucket(sender, id),
            id: format!("st.{}", URL_SAFE_NO_PAD.encode(Sha256::digest(&payload))),
            payload,
        }
    }
}

/// Records may arrive in another order than they happened in; this tells which one is newer. A redriven message
/// has a higher place than its dead letter; what is final comes after what is not.
fn age(record: &StatusRecord) -> (Timestamp, u64, u8) {
    let rank = match record.status {
        Status::Queued => 0,
        Status::Stored => 1,
        Status::Delivered => 2,
        Status::Acked | Status::Expired | Status::Refused | Status::Dead => 3,
    };
    (record.at, record.seq.unwrap_or(0), rank)
}

fn keep_newest(newest: &mut HashMap<Did, StatusRecord>, record: StatusRecord) {
    match newest.get_mut(&record.to) {
        Some(known) if age(known) >= age(&record) => {}
        Some(known) => *known = record,
        None => {
            newest.insert(record.to.clone(), record);
        }
    }
}

fn pack(written: &Written) -> Bytes {
    let Written { sender, id, record } = written;
    let status = Status::ALL.iter().position(|status| *status == record.status);
    let mut to = Writer::new(VERSION, 128);
    to.raw(sender.as_bytes())
        .raw(id.as_bytes())
        .byte(
            status
                .and_then(|place| u8::try_from(place).ok())
                .unwrap_or(u8::MAX),
        )
        .time(record.accepted_at)
        .time(record.at)
        // Places start at 1.
        .number(record.seq.unwrap_or(0))
        .text(record.to.as_str())
        .text(record.code.as_deref().unwrap_or_default());
    to.finish()
}

fn unpack(bytes: &[u8]) -> Result<Written, StoreError> {
    let read = || {
        let mut from = Reader::new(VERSION, bytes)?;
        let (sender, id) = (
            MailboxId::from_bytes(from.array()?),
            Uuid::from_bytes(from.array()?),
        );
        let status = *Status::ALL.get(usize::from(from.byte()?))?;
        let (accepted_at, at) = (from.time()?, from.time()?);
        let seq = Some(from.number()?).filter(|seq| *seq > 0);
        let to = from.did()?;
        let code = Some(from.text()?)
            .filter(|code| !code.is_empty())
            .map(ToOwned::to_owned);
        let record = StatusRecord {
            to,
            status,
            code,
            accepted_at,
            at,
            seq,
        };
        from.end(Written { sender, id, record })
    };
    readable(read(), "a status is unreadable")
}

#[cfg(test)]
mod tests;
