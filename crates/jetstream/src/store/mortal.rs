//! What the sweep needs of the mailboxes.

use std::sync::Arc;
use std::time::Duration;

use aip_protocol::time::Timestamp;
use aip_relay::limits::DEAD_LETTER_SECS;
use aip_relay::mailbox::{MailboxId, Settled, StoreError};
use async_trait::async_trait;

use super::cache::Cache;
use crate::entry::{DeadEntry, Entry};
use crate::mailbox::{Change, Mailbox};
use crate::nats::Stored;
use crate::sweep::{End, Mortal};

#[async_trait]
impl Mortal for Cache {
    fn message_end(&self, stored: &Stored) -> Option<End> {
        let entry = Entry::decode(&stored.payload).ok()?;
        let retention = Duration::from_secs(self.room.retention_secs);
        entry.kind.waits().then(|| End {
            mailbox: entry.mailbox(),
            seq: entry.seq,
            at: entry.expires_at.max(entry.accepted_at + retention),
        })
    }

    fn dead_end(&self, stored: &Stored) -> Option<End> {
        let dead = DeadEntry::decode(&stored.payload).ok()?;
        Some(End {
            mailbox: MailboxId::of(&dead.entry.recipient),
            seq: dead.entry.seq,
            at: dead.at + Duration::from_secs(DEAD_LETTER_SECS),
        })
    }

    async fn settle_expired(
        &self,
        mailbox: &MailboxId,
        seqs: &[u64],
        now: Timestamp,
    ) -> Result<Vec<Settled>, StoreError> {
        let expire = |mailbox: Arc<Mailbox>| async move {
            let seqs = seqs.to_vec();
            mailbox.change(Change::Expire { seqs, now }).await
        };
        Ok(self.ask(mailbox, expire).await?.settled)
    }

    async fn drop_dead(&self, mailbox: &MailboxId, seqs: &[u64], now: Timestamp) -> Result<u64, StoreError> {
        let drop = |mailbox: Arc<Mailbox>| async move {
            let seqs = seqs.to_vec();
            mailbox.change(Change::DropDead { seqs, now }).await
        };
        Ok(self.ask(mailbox, drop).await?.dropped)
    }
}
