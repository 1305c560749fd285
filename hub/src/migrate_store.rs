//! Moves what an embedded hub keeps into mailboxes on NATS: mail that waits, dead letters, what became of messages, and
//! what is remembered of those that a sender may still send again.
//!
//! A move makes the target like a copy of the source, mailbox by mailbox, whatever the target holds by then: what is
//! missing is added in order, what has left the source is settled. So it may be broken off and begun anew, and a first
//! pass over a hub that still runs makes the second one, over a hub that stands still, short. Places are new (a new
//! epoch); everything else stays as it was, times too.

use std::sync::Arc;

use aip_jetstream::JetStreamMailboxes;
use aip_protocol::time::Timestamp;
use aip_relay::mailbox::rocks::RocksMailboxes;
use aip_relay::mailbox::{MailboxId, StoreError, Upkeep as _};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

mod fates;
mod mailbox;
mod verify;

pub use fates::Senders;
pub use mailbox::Moved;

/// Mailboxes that are moved at the same time.
const MAILBOXES_AT_ONCE: usize = 32;
/// Mailboxes, statuses or agents in one page.
const PAGE: usize = 1_000;
/// Messages in one read of a mailbox.
const MESSAGES: usize = 64;
/// Bytes of them, but one message at least.
const MESSAGES_BYTES: usize = 1024 * 1024;

/// Why a move ends before its end. Beginning it again goes on where it is possible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    /// The copy of the embedded store.
    #[error("the copy of the mailboxes cannot be read")]
    Source(#[source] StoreError),
    /// The mailboxes on NATS.
    #[error("the mailboxes on NATS do not take what they should; begin again, it goes on where it was")]
    Target(#[source] StoreError),
    /// A stored envelope is none.
    #[error("a stored message cannot be read: {0}; it cannot be moved")]
    Unreadable(String),
    /// One mailbox holds more than a subject can.
    #[error("the mailbox {0:?} holds more than a mailbox on NATS can: let its owner fetch some")]
    TooLarge(MailboxId),
    /// What is there was not put there by a move.
    #[error(
        "the mailbox {0:?} on NATS knows a message that it does not hold: the streams are in use by another hub, or \
         were before; move to others (`nats.prefix`)"
    )]
    NotOurs(MailboxId),
    /// The two are not the same in the end.
    #[error("the mailbox {0:?} is not the same on NATS: begin again")]
    Differs(MailboxId),
}

/// A move under way: a copy of the embedded store, which nobody else has open, and where it goes.
#[derive(Debug)]
pub struct Move {
    source: Arc<RocksMailboxes>,
    target: Arc<JetStreamMailboxes>,
    /// What has ended by then is not moved.
    now: Timestamp,
}

impl Move {
    /// Begins one as of `now`: what has ended by then ends in the copy.
    ///
    /// # Errors
    /// The copy cannot be used.
    pub async fn begin(
        source: Arc<RocksMailboxes>,
        target: Arc<JetStreamMailboxes>,
        now: Timestamp,
    ) -> Result<Self, MoveError> {
        while source.sweep(now).await.map_err(MoveError::Source)?.more {}
        Ok(Self { source, target, now })
    }

    /// Makes every mailbox of the target like the source's. In the `last` pass dead letters too, and what has left the
    /// source is settled. `told` hears how far it is.
    ///
    /// # Errors
    /// What stood in the way.
    pub async fn mailboxes(&self, last: bool, told: impl Fn(Moved)) -> Result<Moved, MoveError> {
        let mut all = Moved::default();
        let mut after = None;
        loop {
            let page = self.page(after).await?;
            let moved: Vec<Moved> = stream::iter(&page)
                .map(|id| self.mailbox(*id, last))
                .buffer_unordered(MAILBOXES_AT_ONCE)
                .try_collect()
                .await?;
            for moved in moved {
                all.add(moved);
            }
            told(all);
            match page.last() {
                Some(id) if page.len() == PAGE => after = Some(*id),
                _ => return Ok(all),
            }
        }
    }

    /// Whether every mailbox holds the same in both, message by message. Returns how much that is.
    ///
    /// # Errors
    /// [`MoveError::Differs`], or one of the two cannot be read.
    pub async fn verify(&self) -> Result<Moved, MoveError> {
        let mut all = Moved::default();
        let mut after = None;
        loop {
            let page = self.page(after).await?;
            let same: Vec<Moved> = stream::iter(&page)
                .map(|id| self.is_same(*id))
                .buffer_unordered(MAILBOXES_AT_ONCE)
                .try_collect()
                .await?;
            for same in same {
                all.add(same);
            }
            match page.last() {
                Some(id) if page.len() == PAGE => after = Some(*id),
                _ => return Ok(all),
            }
        }
    }

    async fn page(&self, after: Option<MailboxId>) -> Result<Vec<MailboxId>, MoveError> {
        let page = self.source.mailboxes_after(after, PAGE).await;
        page.map_err(MoveError::Source)
    }
}
