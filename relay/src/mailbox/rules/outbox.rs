//! Outboxes: messages for a peer leave, and what the peer tells of them afterwards.

use std::collections::BTreeSet;

use aip_federation::outbox::Fate;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use uuid::Uuid;

use super::super::error::StoreError;
use super::super::keys;
use super::super::outcomes::{Settled, Status, StatusRecord};
use super::super::records::MessageRecord;
use super::super::types::MailboxId;
use super::super::view::{Family, Txn, View};
use super::{Head, Parties, load, raise_floor, read, save, settle, status, tick};

/// What has left an outbox, and how many of it in which way.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub(crate) settled: Vec<Settled>,
    pub(crate) delivered: usize,
    pub(crate) refused: usize,
    pub(crate) dead: usize,
    pub(crate) expired: usize,
}

impl Left {
    fn add(&mut self, settled: Settled, fate: &Fate) {
        let counter = match fate {
            Fate::Delivered => &mut self.delivered,
            Fate::Refused(_) => &mut self.refused,
            Fate::Dead(_) => &mut self.dead,
            Fate::Expired => &mut self.expired,
        };
        *counter += 1;
        self.settled.push(settled);
    }
}

/// One step of [`super::super::Outboxes::settle_outbox`].
pub(crate) fn settle_all(
    txn: &mut Txn<'_>,
    outbox: &MailboxId,
    fates: &[(u64, Fate)],
    now: Timestamp,
) -> Result<Left, StoreError> {
    let mut record = load(txn, outbox)?;
    let mut left = Left::default();
    for (seq, fate) in fates {
        // Named twice, it is gone the second time.
        let Some(value) = txn.get(Family::Message, &keys::message(outbox, *seq))? else {
            continue;
        };
        let head = Head::of(*seq, &MessageRecord::decode(&value)?)?;
        let settled = settle(txn, outbox, &mut record, head, Status::of_fate(fate), now)?;
        left.add(settled, fate);
    }
    if left.settled.is_empty() {
        return Ok(left);
    }
    let gone: BTreeSet<u64> = left.settled.iter().map(|settled| settled.seq).collect();
    let past = gone.iter().fold(
        record.floor,
        |past, seq| {
            if *seq == past + 1 { *seq } else { past }
        },
    );
    if past > record.floor {
        raise_floor(txn, outbox, &mut record, past)?;
    }
    save(txn, outbox, &record);
    tick(txn, now)?;
    Ok(left)
}

/// See [`super::super::Outboxes::advance_status`].
pub(crate) fn advance_status(
    txn: &mut Txn<'_>,
    sender: &Did,
    id: Uuid,
    to: &Did,
    (status, code): (Status, Option<&str>),
    at: Timestamp,
) -> Result<bool, StoreError> {
    let Some(known) = read::status(txn, sender, id, Some(to))?.pop() else {
        return Ok(false);
    };
    if !known.advances_to(status) {
        return Ok(false);
    }
    // Where it waited is of no consequence.
    let parties = Parties::within(&MailboxId::of(to), sender, to);
    let next = StatusRecord {
        status,
        code: code.map(ToOwned::to_owned),
        at: at.max(known.at),
        ..known
    };
    Ok(status::put(txn, parties, id, &next))
}
