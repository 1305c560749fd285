//! Dead letters: paged, and put back on request.

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;

use super::{Inbox, epoch_changed};
use crate::mailbox::{Cursor, DeadLetter, MailboxId, Quota, Redrive, RedriveOutcome, Status, StoreError};
use crate::presence::StatusUpdate;

/// Some dead letters of one mailbox, by sequence number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadPage {
    /// The dead letters.
    pub items: Vec<DeadLetter>,
    /// Where the next page starts, if there is more.
    pub next: Option<Cursor>,
}

impl Inbox {
    /// At most `limit` dead letters of `owner` after `after`.
    pub async fn dead(
        &self,
        owner: &Did,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Result<DeadPage, Refusal>, StoreError> {
        let epoch = self.store.epoch();
        let after = match after {
            Some(cursor) if cursor.epoch != epoch => return Ok(Err(epoch_changed(&epoch))),
            Some(cursor) => cursor.seq,
            None => 0,
        };
        // One more than asked tells whether there is another page.
        let mut items = self
            .store
            .dead(&MailboxId::of(owner), after, limit.saturating_add(1))
            .await?;
        let more = items.len() > limit;
        items.truncate(limit);
        let last = items.last().filter(|_| more);
        let next = last.map(|letter| Cursor {
            epoch,
            seq: letter.seq,
        });
        Ok(Ok(DeadPage { items, next }))
    }

    /// Puts a dead letter of `owner` back into the mailbox under a new sequence number, which is returned. It expires
    /// at `expires_at(letter)`: the earlier of the envelope's own expiry and the retention of the mailbox.
    pub async fn redrive(
        &self,
        owner: &Did,
        seq: u64,
        quota: Quota,
        expires_at: impl FnOnce(&DeadLetter, Timestamp) -> Timestamp,
    ) -> Result<Result<u64, Refusal>, StoreError> {
        let mailbox = MailboxId::of(owner);
        let letters = self.store.dead(&mailbox, seq.saturating_sub(1), 1).await?;
        let Some(letter) = letters.into_iter().find(|letter| letter.seq == seq) else {
            return Ok(Err(no_letter()));
        };
        let now = self.clock.now();
        let redrive = Redrive {
            seq,
            expires_at: expires_at(&letter, now),
            now,
            quota,
        };
        match self.store.redrive(&mailbox, redrive).await? {
            RedriveOutcome::Redriven { seq } => {
                self.presence.wake(&mailbox, seq, now);
                let update = StatusUpdate {
                    id: letter.id,
                    to: owner.clone(),
                    status: Status::Stored,
                    code: None,
                    at: now,
                };
                self.presence.status(&MailboxId::of(&letter.sender), update);
                Ok(Ok(seq))
            }
            RedriveOutcome::NotFound => Ok(Err(no_letter())),
            RedriveOutcome::Full(full) => {
                let detail = "The mailbox is full. Ack messages, then redrive again.";
                let refusal = Refusal::new(ErrorCode::MailboxFull, detail).with("scope", full.scope());
                Ok(Err(refusal.retry_after(crate::limits::REDRIVE_RETRY_SECS)))
            }
        }
    }
}

fn no_letter() -> Refusal {
    let detail = "There is no such dead letter: it was redriven, or its 14 days are over.";
    Refusal::new(ErrorCode::NotFound, detail)
}
