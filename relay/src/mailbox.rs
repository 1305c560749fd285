//! The mailbox seam: what a store of envelopes promises, whatever it is built on.
//!
//! A mailbox belongs to one recipient, or, as the outbox, to the hub of another domain (spec §8). It has an *epoch* (new whenever its store was created or restored) and
//! a sequence that starts at 1 and is never reused; `(epoch, seq)` is the cursor (spec §6). What every
//! backend keeps:
//!
//! * appended means durable, and fetchable until acked, expired or buried;
//! * fetch order is sequence order;
//! * dedup, message, counters and status change together or not at all;
//! * ack is idempotent; a late or unknown one changes nothing;
//! * a refused append leaves no record.
//!
//! The traits are split by who uses them; [`MailboxStore`] is all of them. `suite` (feature `testsuite`)
//! holds the contract as plain async functions, run against every backend. [`memory`] is for tests, [`rocks`]
//! is the embedded store.

use std::path::Path;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use uuid::Uuid;

pub use aip_federation::outbox::Fate;

pub use self::error::StoreError;
pub use self::outcomes::{
    AckOutcome, Acked, AppendOutcome, Attempt, DeadLetter, Full, Health, MailboxState, RedriveOutcome,
    Settled, Status, StatusRecord, StoreStats, StoredMessage, Swept,
};
pub use self::types::{Append, Cursor, Epoch, Fetch, MailboxId, Quota, Redrive, Route, Select};
use crate::dedup::DedupWindow;

mod attempts;
mod counters;
mod error;
mod generations;
pub(crate) mod keys;
pub mod memory;
mod outcomes;
pub(crate) mod records;
pub mod rocks;
mod rules;
#[cfg(feature = "testsuite")]
pub mod suite;
mod types;
pub(crate) mod view;

/// Messages of one recipient: in, out, acknowledged.
#[async_trait]
pub trait Mailboxes: Send + Sync {
    /// Stores one envelope, unless its dedup key is known or a quota is full. Durable when it returns.
    ///
    /// Dedup is looked at before the quota, so a retry of a stored message is a duplicate even when the
    /// mailbox is full. [`Route::Direct`] records dedup and status only (after the endpoint answered 2xx);
    /// [`Route::Peer`] puts the message into the outbox for the recipient's hub, with the status `queued`.
    async fn append(&self, append: Append) -> Result<AppendOutcome, StoreError>;

    /// Counters of a mailbox; one that nobody has written to is empty, with floor 0 and `next_seq` 1.
    async fn state(&self, mailbox: &MailboxId) -> Result<MailboxState, StoreError>;

    /// Pending messages in sequence order; settled and expired ones are left out.
    async fn fetch(&self, mailbox: &MailboxId, fetch: Fetch) -> Result<Vec<StoredMessage>, StoreError>;

    /// Counts one more attempt for each of `seqs` in this `session` and tells the new counts, in the order
    /// asked.
    ///
    /// Persisted without a sync: a crash may lower a count, never raise it. Unknown sequence numbers are
    /// counted too (the caller offers what it fetched) and forgotten when the message is settled.
    async fn offer(
        &self,
        mailbox: &MailboxId,
        seqs: &[u64],
        session: u64,
    ) -> Result<Vec<Attempt>, StoreError>;

    /// Settles everything up to and including `upto`, and each of `also`. Durable when it returns.
    ///
    /// The caller has checked that nothing beyond what was offered is acked; the store refuses what lies
    /// beyond its last sequence number ([`AckOutcome::BeyondEnd`]) and then changes nothing.
    async fn ack(
        &self,
        mailbox: &MailboxId,
        upto: u64,
        also: &[u64],
        now: Timestamp,
    ) -> Result<AckOutcome, StoreError>;
}

/// Messages that could not be delivered: kept 14 days, at most [`crate::limits::DEAD_LETTERS_MAX`] a mailbox.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// Moves a pending message to the dead letters and past the floor, in one step. `None`: it is not
    /// pending. When the bound is passed the dead letter with the lowest sequence number is dropped.
    async fn bury(
        &self,
        mailbox: &MailboxId,
        seq: u64,
        code: &str,
        now: Timestamp,
    ) -> Result<Option<Settled>, StoreError>;

    /// Dead letters with a sequence number above `after_seq`, at most `limit`.
    async fn dead(
        &self,
        mailbox: &MailboxId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError>;

    /// Puts a dead letter back under a new sequence number. It passes the dedup window by (the key is known)
    /// but counts towards the mailbox quota.
    async fn redrive(&self, mailbox: &MailboxId, redrive: Redrive) -> Result<RedriveOutcome, StoreError>;
}

/// What became of a message, for its sender; kept 14 days from acceptance.
#[async_trait]
pub trait Statuses: Send + Sync {
    /// All records of this sender's `id`, or the one to `to`, in the order of acceptance day.
    async fn status(&self, sender: &Did, id: Uuid, to: Option<&Did>)
    -> Result<Vec<StatusRecord>, StoreError>;
}

/// Outboxes: mailboxes whose owner is the hub of another domain ([`MailboxId::of_peer`]). [`Mailboxes`] puts messages in
/// ([`Route::Peer`]) and shows them; no session ever has them, and none becomes a dead letter.
#[async_trait]
pub trait Outboxes: Send + Sync {
    /// Takes messages out of an outbox, each with its fate, and tells which of them were still in it. Durable when it
    /// returns, and so are the statuses. What has left already, was never there, or is named again in the same call is
    /// passed over.
    ///
    /// More than [`crate::limits::OUTBOX_SETTLED_AT_ONCE`] are settled in several steps: what one step has settled stays
    /// so when the next one fails. Codes are cut to [`crate::limits::CODE_BYTES_MAX`].
    async fn settle_outbox(
        &self,
        outbox: &MailboxId,
        fates: &[(u64, Fate)],
        now: Timestamp,
    ) -> Result<Vec<Settled>, StoreError>;

    /// What the recipient's hub has told about a message that it took: a record that is [`Status::Delivered`] becomes
    /// [`Status::Acked`], [`Status::Expired`] or [`Status::Dead`], with the code beside it, at `at` or at its own time if that
    /// is later. Whether it did: another record, another status, and a message that nothing is known of change nothing. Durable when it
    /// returns.
    async fn advance_status(
        &self,
        sender: &Did,
        id: Uuid,
        to: &Did,
        status: (Status, Option<&str>),
        at: Timestamp,
    ) -> Result<bool, StoreError>;
}

/// News of what other processes store. A store that one process has to itself needs none: who appends wakes the agent.
#[async_trait]
pub trait Live: Send + Sync + std::fmt::Debug {
    /// From its return on, [`crate::presence::Presence`] is told of every message that any process stores in this
    /// mailbox, as far as the news gets through; what gets lost is made good by a look at the mailbox now and then.
    /// Again is harmless; one [`Self::unwatch`] ends it. Returns within a bounded time.
    async fn watch(&self, _mailbox: &MailboxId) {}

    /// Ends [`Self::watch`]. Called with locks held: it must return at once and call nobody back.
    fn unwatch(&self, _mailbox: &MailboxId) {}
}

/// Care of the store itself.
#[async_trait]
pub trait Upkeep: Send + Sync {
    /// Expires messages, drops old dead letters, statuses and dedup records, in order of time. One call does
    /// a bounded amount of work and says in [`Swept::more`] whether to call again.
    async fn sweep(&self, now: Timestamp) -> Result<Swept, StoreError>;

    /// A consistent copy of the store in `dir`, taken while it runs. `dir` must not exist yet.
    async fn checkpoint(&self, dir: &Path) -> Result<(), StoreError>;

    /// The epoch of all mailboxes of this store.
    fn epoch(&self) -> Epoch;

    /// The latest time this store has been told, over restarts. The hub's clock must never read less.
    fn clock_high_water(&self) -> Option<Timestamp>;

    /// Whether the store takes messages, and if not, why.
    fn health(&self) -> Health;

    /// Counts since the start, for metrics.
    fn stats(&self) -> StoreStats;
}

/// A whole store: everything the relay needs, as one object.
pub trait MailboxStore: Mailboxes + DeadLetters + Outboxes + Statuses + Upkeep + DedupWindow + Live {}

impl<S> MailboxStore for S where S: Mailboxes + DeadLetters + Outboxes + Statuses + Upkeep + DedupWindow + Live
{}
