//! An outbox: messages for a peer leave, each with a fate of its own.
//!
//! What became of them is written before they leave: a process that ends in between leaves a message that is sent once
//! more, which the peer recognises, and never one that its sender is told nothing of.

use std::collections::BTreeMap;
use std::sync::Arc;

use aip_protocol::time::Timestamp;
use aip_relay::mailbox::{Fate, MailboxId, Settled, Status, StatusRecord, StoreError};
use uuid::Uuid;

use super::{Change, Mailbox};
use crate::entry::Head;

impl Mailbox {
    /// One step of [`aip_relay::mailbox::Outboxes::settle_outbox`].
    pub(crate) async fn leave(
        self: &Arc<Self>,
        fates: &[(u64, Fate)],
        now: Timestamp,
    ) -> Result<Vec<Settled>, StoreError> {
        let cursor = self.newest_cursor().await?;
        let mut due: BTreeMap<u64, Fate> = BTreeMap::new();
        for (seq, fate) in fates.iter().filter(|(seq, _)| !cursor.is_settled(*seq)) {
            due.entry(*seq).or_insert_with(|| fate.clone());
        }
        if due.is_empty() {
            return Ok(Vec::new());
        }
        let heads = self.heads_of(due.keys().copied().collect()).await?;
        due.retain(|seq, _| heads.contains_key(seq));
        let told = heads.into_values().filter_map(|head| {
            let fate = due.get(&head.seq)?;
            Some(told(head, fate, now))
        });
        self.room.statuses.write(told.collect()).await?;
        Ok(self.change(Change::Leave { fates: due, now }).await?.settled)
    }
}

fn told(head: Head, fate: &Fate, now: Timestamp) -> (MailboxId, Uuid, StatusRecord) {
    let (status, code) = Status::of_fate(fate);
    let record = StatusRecord {
        to: head.recipient,
        status,
        code: code.map(ToOwned::to_owned),
        accepted_at: head.accepted_at,
        // The clock of the process that accepted it may be ahead: this is the newer one.
        at: now.max(head.accepted_at),
        seq: Some(head.seq),
    };
    (MailboxId::of(&head.sender), head.id, record)
}
