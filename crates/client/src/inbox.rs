//! The transactional inbox: what makes "offered at least once" into "seen once" (spec §6).
//!
//! A hub offers a message until it is acknowledged, so an agent may meet the same message again: after a crash, a
//! lost acknowledgement, or a mailbox that was restored from a backup. The inbox remembers what was processed:
//!
//! * the *cursor*, (epoch, floor): everything up to the floor is settled;
//! * the sequence numbers above the floor that are processed already;
//! * the ids of processed messages, for when the epoch changes and for a message that came by two routes.
//!
//! **A new epoch** means that the hub's store was restored or made anew, so a sequence number says nothing any more: the
//! cursor starts again at the floor that the hub names under the new epoch, and what was processed before is known by
//! its id alone. Ids outlive epochs: the newest [`IDS_MAX`](crate::limits::IDS_MAX) (65,536) of the last
//! [`IDS_KEPT`](crate::limits::IDS_KEPT) (8 days) are remembered, whatever epoch they came in. So a restore repeats nothing
//! as long as the backup is not older than that many messages to this agent, and mail is not kept at the hub for longer than
//! 7 days, which is its default.
//!
//! **What is promised.** The listener asks [`Inbox::seen`] before it hands a message to the application and records
//! it through [`Inbox::record`] before it acknowledges it. So:
//!
//! * a message that was recorded is never handed over again, whatever the hub, the network or a restart does;
//! * a message that was not recorded is handed over again.
//!
//! The one gap left is a crash *between* the application's effect and the record. Only the application can close it, by
//! writing both in one transaction. Three ways, from weak to strong:
//!
//! 1. [`FileInbox`] as it is: effect, then record. After a crash in the gap, the effect happens twice. Right for
//!    effects that may be repeated.
//! 2. [`process`]: the same, for one message and one closure, with the order made explicit.
//! 3. [`InboxState`] inside the application's own store: it is plain data with serde. Write it in the same transaction
//!    as the effect and implement [`Inbox`] over that store; `record` of what is recorded already does nothing. Then each
//!    effect happens exactly once. `examples/worker.rs` shows it in 100 lines.

mod file;
mod memory;
mod state;
#[cfg(test)]
mod suite;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::future::Future;

use aip_protocol::envelope::Envelope;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;

pub use crate::error::InboxError;
pub use file::FileInbox;
pub use memory::MemoryInbox;
pub use state::InboxState;

/// A place in a mailbox: the epoch of its store, and a sequence number in it (spec §6).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// New whenever the mailbox's store was created or restored.
    pub epoch: String,
    /// Counts from 1 and is never reused within an epoch.
    pub seq: u64,
}

/// What identifies one offered message: its place in the mailbox, and its identity beyond any mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MessageKey {
    /// Where it lies.
    pub cursor: Cursor,
    /// The dedup key of spec §5: derived from sender, recipient and id.
    pub id: [u8; 16],
}

impl MessageKey {
    /// The key of an envelope that was offered at this place.
    pub fn new(epoch: impl Into<String>, seq: u64, envelope: &Envelope) -> Self {
        Self {
            cursor: Cursor {
                epoch: epoch.into(),
                seq,
            },
            id: envelope.dedup_key(),
        }
    }
}

/// Remembers what was processed. Every method is idempotent; a method that returned `Ok` has made its change
/// as durable as the implementation says.
#[async_trait]
pub trait Inbox: Send + Sync + Debug {
    /// The newest cursor: everything up to it is settled. `None` before the first session.
    async fn cursor(&self) -> Result<Option<Cursor>, InboxError>;

    /// The mailbox speaks: it has this epoch, and everything up to `floor` is settled at the hub. Another epoch than the
    /// current one forgets the sequence numbers and keeps the ids; within an epoch the floor never goes back, also where
    /// a hub lost acknowledgements and names a lower one.
    async fn enter(&self, epoch: &str, floor: u64) -> Result<(), InboxError>;

    /// Whether the message was recorded: by its place in the current epoch, or by its id.
    async fn seen(&self, key: &MessageKey) -> Result<bool, InboxError>;

    /// Records messages as processed, all or none: the place in the current epoch, and in any case the id. Durable when
    /// it returns.
    async fn record(&self, keys: &[MessageKey], now: Timestamp) -> Result<(), InboxError>;
}

/// What became of a message given to [`process`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processed<T> {
    /// The effect ran and the message is recorded.
    Done(T),
    /// The message was processed before; the effect did not run.
    Before,
}

/// Runs `effect` for a message that was not processed before, then records it.
///
/// The order is: seen? → effect → record. When the effect fails, nothing is recorded and the message may be processed
/// again. When the process dies after the effect and before the record is durable, the effect runs again on the next
/// delivery; put an [`InboxState`] into the effect's own transaction where that must not be.
pub async fn process<T, E, F>(
    inbox: &dyn Inbox,
    key: &MessageKey,
    now: Timestamp,
    effect: impl FnOnce() -> F,
) -> Result<Processed<T>, E>
where
    F: Future<Output = Result<T, E>>,
    E: From<InboxError>,
{
    if inbox.seen(key).await? {
        return Ok(Processed::Before);
    }
    let value = effect().await?;
    inbox.record(std::slice::from_ref(key), now).await?;
    Ok(Processed::Done(value))
}
