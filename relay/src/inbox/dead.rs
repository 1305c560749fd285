//! Dead letters: paged, and put back on request.

use std::time::Duration;

use aip_protocol::envelope::Envelope;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;

use super::{Inbox, Terms, epoch_changed};
use crate::mailbox::{Cursor, DeadLetter, MailboxId, Redrive, RedriveOutcome, Status, StoreError};
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

    /// Puts a dead letter of `owner` back into the mailbox under a new sequence number, which is returned. It is kept
    /// until the envelope's own expiry, or as long as the mailbox keeps a new message.
    pub async fn redrive(
        &self,
        owner: &Did,
        seq: u64,
        terms: Terms,
    ) -> Result<Result<u64, Refusal>, StoreError> {
        let mailbox = MailboxId::of(owner);
        let letters = self.store.dead(&mailbox, seq.saturating_sub(1), 1).await?;
        let Some(letter) = letters.into_iter().find(|letter| letter.seq == seq) else {
            return Ok(Err(no_letter()));
        };
        let now = self.clock.now();
        let expires_at = offered_until(&letter, now, terms.retention);
        if expires_at <= now {
            let detail = "The message has expired: nobody is to act on it any more.";
            return Ok(Err(Refusal::new(ErrorCode::Expired, detail)));
        }
        let redrive = Redrive {
            seq,
            expires_at,
            now,
            quota: terms.quota,
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

/// As for a new message: the earlier of the envelope's own expiry and the retention.
fn offered_until(letter: &DeadLetter, now: Timestamp, retention: Duration) -> Timestamp {
    let kept_until = now + retention;
    let own = Envelope::parse(&letter.wire)
        .ok()
        .and_then(|envelope| envelope.expires_at);
    own.map_or(kept_until, |own| own.min(kept_until))
}

fn no_letter() -> Refusal {
    let detail = "There is no such dead letter: it was redriven, or its 14 days are over.";
    Refusal::new(ErrorCode::NotFound, detail)
}
