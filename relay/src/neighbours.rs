//! The seam to other processes of the same hub: what sessions of one agent in several processes must hear of each other.
//!
//! A hub may run as several identical processes over one store. What is true lies in the store; what passes here only
//! saves time and doubled work: a [`Signal`] may be lost, and then a message is offered once more, a status frame does
//! not come, a replaced session ends when it next fails. So an implementation never fails and never blocks: it drops
//! and counts.
//!
//! [`Alone`] is the hub of one process, where everything is known anyway. `suite` (feature `testsuite`) holds the
//! contract, run against every other implementation; `memory` is one for tests.

use std::fmt::Debug;
use std::time::Duration;

use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use crate::mailbox::{Live, MailboxId};
use crate::presence::{CloseReason, StatusUpdate};

#[cfg(feature = "testsuite")]
pub mod memory;
#[cfg(feature = "testsuite")]
pub mod suite;

/// Something that happened in one process and concerns an agent's sessions in others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signal {
    /// Messages up to `seq` were offered by a long poll or an event stream.
    Offered {
        /// The highest of them.
        seq: u64,
    },
    /// Messages were settled, durably.
    Settled {
        /// Everything up to here.
        upto: u64,
        /// And these.
        also: Vec<u64>,
        /// The mailbox's floor after it.
        floor: u64,
    },
    /// A message has moved to the dead letters, durably.
    Buried {
        /// Its place in the mailbox.
        seq: u64,
    },
    /// Sessions that share the mailbox have given messages back.
    Released {
        /// The messages.
        seqs: Vec<u64>,
    },
    /// News for a sender; the mailbox is the sender's.
    Status(StatusUpdate),
    /// All sessions and waits of the agent end.
    Close(CloseReason),
    /// A session has begun. Sessions of lower generations are replaced, unless both share.
    Joined {
        /// Higher than that of every session that joined before.
        generation: u64,
        /// Whether it shares the mailbox.
        share: bool,
    },
}

/// Whether a session may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// It may, under this number; 0 where nobody could be asked: it then replaces what is in this process only.
    In {
        /// Higher than that of every session of the agent that joined before.
        generation: u64,
    },
    /// Not yet: the mailbox changed hands just before. Ask again after this pause.
    Wait(Duration),
}

/// A message that is about to be offered to a session that shares its mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Its place in the mailbox.
    pub seq: u64,
    /// How long nobody else may have it, unless it is released before.
    pub hold: Duration,
}

/// A message that a session of another process has in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Its place in the mailbox.
    pub seq: u64,
    /// For how much longer, at most.
    pub hold: Duration,
}

/// The way to the other processes.
///
/// `tell`, `leave` and `release` are called with locks held: they must return at once and call nobody back. What one
/// caller does about one mailbox takes effect elsewhere in the order of the calls.
#[async_trait]
pub trait Neighbours: Send + Sync + Debug {
    /// Passes a signal on to the processes where the agent has arrived, but not to this one. Bounded: what does not fit
    /// is dropped and counted.
    fn tell(&self, mailbox: &MailboxId, signal: Signal);

    /// The agent has its first session or reader in this process: from its return on, signals of others are heard
    /// here, as far as they can be. Again is harmless; one [`Self::leave`] ends it. Returns within a bounded time.
    async fn arrive(&self, mailbox: &MailboxId);

    /// The agent's last session or reader in this process is gone, or never came.
    fn leave(&self, mailbox: &MailboxId);

    /// A session is about to begin: tells the others ([`Signal::Joined`]) and numbers it. With a `generation` other than
    /// 0 the session is there already and is told of again under its number, without a pause.
    async fn join(&self, mailbox: &MailboxId, share: bool, generation: u64) -> Entry;

    /// Keeps messages for this process; tells those that another process has. Of several processes that claim one
    /// message exactly one gets it, until its hold ends or it is released. A claim of this process is renewed. Where
    /// nobody can be asked, nothing is taken.
    async fn claim(&self, mailbox: &MailboxId, claims: &[Claim]) -> Vec<Taken>;

    /// Others may have these messages `after` this time; those that this process has not claimed stay as they are. When
    /// that is at once, the others are told ([`Signal::Released`]).
    fn release(&self, mailbox: &MailboxId, seqs: &[u64], after: Duration);
}

/// Who takes in what the other processes tell: [`crate::presence::Presence`].
#[async_trait]
pub trait Ears: Send + Sync + Debug {
    /// Another process has told this. Never blocks.
    fn hear(&self, mailbox: &MailboxId, signal: Signal, now: Timestamp);

    /// Signals may have been lost: sessions are told of again ([`Neighbours::join`]) and mailboxes looked at.
    async fn reunite(&self, now: Timestamp);
}

/// The only process of its hub.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

#[async_trait]
impl Neighbours for Alone {
    fn tell(&self, _mailbox: &MailboxId, _signal: Signal) {}

    async fn arrive(&self, _mailbox: &MailboxId) {}

    fn leave(&self, _mailbox: &MailboxId) {}

    async fn join(&self, _mailbox: &MailboxId, _share: bool, _generation: u64) -> Entry {
        Entry::In { generation: 0 }
    }

    async fn claim(&self, _mailbox: &MailboxId, _claims: &[Claim]) -> Vec<Taken> {
        Vec::new()
    }

    fn release(&self, _mailbox: &MailboxId, _seqs: &[u64], _after: Duration) {}
}

/// Whoever appends to the store wakes the agent itself.
impl Live for Alone {}
