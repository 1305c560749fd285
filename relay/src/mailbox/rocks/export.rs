//! Reads a whole store from end to end, page by page: for moving what it holds into another one.
//!
//! What a mailbox holds is read with the traits ([`super::super::Mailboxes::fetch`], [`super::super::DeadLetters::dead`]);
//! here is what they do not tell: which mailboxes there are, all statuses, and what is still remembered of a key.

use std::ops::ControlFlow;

use aip_protocol::time::Timestamp;
use uuid::Uuid;

use super::RocksMailboxes;
use crate::dedup::{Accepted, book};
use crate::mailbox::error::StoreError;
use crate::mailbox::keys;
use crate::mailbox::outcomes::StatusRecord;
use crate::mailbox::records;
use crate::mailbox::types::MailboxId;
use crate::mailbox::view::Family;

/// A status, and whose message it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptStatus {
    /// The sender, hashed: [`MailboxId::of`] its DID.
    pub sender: MailboxId,
    /// The envelope's id.
    pub id: Uuid,
    /// What became of it.
    pub record: StatusRecord,
    /// Where the next page begins.
    place: Vec<u8>,
}

impl RocksMailboxes {
    /// The mailboxes that anybody ever wrote to, in the order of their bytes, after `after`; at most `limit`.
    pub async fn mailboxes_after(
        &self,
        after: Option<MailboxId>,
        limit: usize,
    ) -> Result<Vec<MailboxId>, StoreError> {
        self.read(move |engine, _| {
            let from = after.map_or_else(Vec::new, |after| successor(after.as_bytes()));
            let mut found = Vec::new();
            engine.walk(Family::Mailbox, &from, &mut |key, _| {
                if found.len() >= limit {
                    return ControlFlow::Break(());
                }
                found.extend(key.try_into().ok().map(MailboxId::from_bytes));
                ControlFlow::Continue(())
            })?;
            Ok(found)
        })
        .await
    }

    /// Statuses by the day of acceptance, after `after`; at most `limit`. One message has one for each recipient, and
    /// a newer one of the same day takes the place of the older one.
    pub async fn statuses_after(
        &self,
        after: Option<&KeptStatus>,
        limit: usize,
    ) -> Result<Vec<KeptStatus>, StoreError> {
        let from = after.map_or_else(Vec::new, |after| successor(&after.place));
        self.read(move |engine, _| {
            let mut found = Vec::new();
            engine.walk(Family::Status, &from, &mut |key, value| {
                if found.len() >= limit {
                    return ControlFlow::Break(());
                }
                found.push(kept(key, value));
                ControlFlow::Continue(())
            })?;
            found.into_iter().collect()
        })
        .await
    }

    /// What is remembered under a dedup key and still alive at `now`.
    pub async fn accepted(&self, key: [u8; 16], now: Timestamp) -> Result<Option<Accepted>, StoreError> {
        self.read(move |engine, _| {
            let record = book::record(engine, &key, now)?;
            Ok(record.map(|record| Accepted {
                digest: record.digest,
                until: keys::moment(record.until),
                seq: record.seq,
                route: record.route,
            }))
        })
        .await
    }
}

fn kept(key: &[u8], value: &[u8]) -> Result<KeptStatus, StoreError> {
    let parts = keys::status_parts(key);
    let (sender, id) = parts.ok_or(StoreError::Corrupt("a status lies under no key".into()))?;
    Ok(KeptStatus {
        sender,
        id,
        record: records::decode_status(value)?,
        place: key.to_vec(),
    })
}

/// The first key after this one.
fn successor(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}
