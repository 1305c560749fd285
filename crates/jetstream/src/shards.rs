//! Shards and the streams that hold them: a list for an operator, and moving shards while the store is in use.
//!
//! A shard moves in these steps; the store's record says how far it is, so that whoever comes next can go on:
//!
//! 1. The new stream copies from the old one (a JetStream *source*), in order, ids included. Every copy is compared.
//! 2. The old stream lets go of the shard's subject. From here on its senders get 503, and come back.
//! 3. A message of our own through the old stream: whatever was on its way into it is stored when that one is. The
//!    rest is copied and compared.
//! 4. The record says that the shard is in the new stream: it is in a new *era*.
//! 5. In one change the new stream stops to copy and takes the subject. From here on mail flows again.
//! 6. After a while the old stream's messages of the shard are purged.
//!
//! Nothing of this depends on how fast a process learns of it. An append names the stream that it means: where the
//! shard is not, the servers refuse it, before they look at anything else. Two streams cannot have one subject. What
//! a process reads from the old stream is what the new one holds, and before it takes something for gone it reads the
//! record. Places in a stream that are written down (cursors, reused ids) count only within their era. And what is
//! purged ends at a place that was read before: a mover that was away for long can purge nothing that came later.

use std::fmt;
use std::time::Duration;

use aip_protocol::time::Timestamp;
use aip_relay::mailbox::StoreError;

pub(crate) use self::follower::Follower;
use self::mover::Mover;
pub(crate) use self::moves::{Moves, Spare};
use crate::config::Options;
use crate::limits;
use crate::nats::ConnectError;
use crate::start::StartError;
use crate::streams::StreamError;

mod bindings;
mod copy;
mod follower;
mod mover;
mod moves;

/// One stream of mailboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamShards {
    /// Its number: what a shard is moved to.
    pub number: u16,
    /// Its name on the servers.
    pub name: String,
    /// What it holds, in order.
    pub shards: Vec<u8>,
    /// Messages in it.
    pub messages: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// Which stream holds what.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardList {
    /// All streams of mailboxes, by number.
    pub streams: Vec<StreamShards>,
    /// The number that a new stream would have.
    pub next_number: u16,
    /// A move that somebody makes just now, or has left unfinished.
    pub moving: Option<Route>,
}

/// A shard's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Which one, 0 to 255.
    pub shard: u8,
    /// The number of the stream that holds it.
    pub from: u16,
    /// The number of the stream that shall hold it.
    pub to: u16,
}

/// How far a shard is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// It is written down that it is to move.
    Begun,
    /// So many of its messages were copied and compared.
    Copied(u64),
    /// It takes no mail for a moment.
    Closed,
    /// It is written down that it has moved.
    Switched,
    /// It takes mail again, in its new stream.
    Opened,
    /// Nothing of it is left in the old stream.
    Done,
    /// It is where it was, and nothing of it is left in the new stream.
    Undone,
}

/// What a mover is given besides its task.
#[derive(Clone, Copy)]
pub struct Conduct<'a> {
    /// A random number: tells this mover from all others.
    pub holder: u64,
    /// What time it is.
    pub clock: &'a (dyn Fn() -> Timestamp + Sync),
    /// How long the old stream stays as it was for processes that have not heard yet that the shard has moved: they
    /// go on serving from there. [`limits::MOVE_LINGER`] is enough.
    pub linger: Duration,
    /// Told of every step.
    pub told: &'a (dyn Fn(Route, Step) + Sync),
}

impl fmt::Debug for Conduct<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conduct")
            .field("linger", &self.linger)
            .finish_non_exhaustive()
    }
}

/// Why a shard does not move, or not on. Unless something else is said, nothing is lost, and the same command again
/// goes on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    /// No connection, or servers that are not up to it.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There is no store under this prefix.
    #[error("there is no store yet: the first start of a hub makes it")]
    NoStore,
    /// Somebody else moves shards.
    #[error(
        "shards are being moved by another process; if it is not running any more, wait {} seconds",
        limits::LEASE_SECS
    )]
    Busy,
    /// There is nothing to undo.
    #[error("no move is unfinished")]
    NothingToUndo,
    /// The move cannot be undone any more.
    #[error("shard {0:02x} takes mail in its new stream already: finish the move, then move it back")]
    TooLate(u8),
    /// No stream has such a number, and none can be made with it.
    #[error("there is no stream number {to}; a new one would have the number {next}")]
    NoSuchStream {
        /// What was asked for.
        to: u16,
        /// What is possible.
        next: u16,
    },
    /// A stream still knows the ids of what it held, and would not take it again.
    #[error("shard {shard:02x} has left the stream number {to} only just now: not before {until}")]
    TooSoon {
        /// Which one.
        shard: u8,
        /// Whereto.
        to: u16,
        /// From when on.
        until: Timestamp,
    },
    /// The new stream holds messages of the shard, and should not.
    #[error("the stream {stream} holds messages of shard {shard:02x} from before: look, and purge them")]
    Occupied {
        /// Which stream.
        stream: String,
        /// Which shard.
        shard: u8,
    },
    /// A message was not copied, or not as it was.
    #[error("message {place} of {stream} is not in the copy: undo the move, and report this")]
    Incomplete {
        /// Where it is.
        stream: String,
        /// Its place there.
        place: u64,
    },
    /// The servers do not go on with the copy.
    #[error("the servers do not copy {stream}: see `nats stream info`, and try again")]
    Stalled {
        /// What is to be copied.
        stream: String,
    },
    /// Somebody binds the shard to its old stream, again and again.
    #[error(
        "the stream {0} takes the subject of the shard again and again: does anybody else change streams?"
    )]
    Contended(String),
    /// The old stream has taken a message after the shard had left it.
    #[error(
        "the stream {stream} has taken message {place} for the shard after it had moved; nothing was purged: \
         report this"
    )]
    Stray {
        /// The old stream.
        stream: String,
        /// Where the message is.
        place: u64,
    },
    /// A stream cannot be used.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The servers do not answer as they should.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<ConnectError> for MoveError {
    fn from(error: ConnectError) -> Self {
        Self::Start(error.into())
    }
}

/// Tells which stream holds what.
pub async fn list(options: Options) -> Result<ShardList, MoveError> {
    mover::list(options).await
}

/// Moves `shards` to the stream number `to`, one after the other, after finishing what somebody else has begun; tells
/// how many have moved. A stream is made when `to` is the next new number.
///
/// One at a time: a second mover is [`MoveError::Busy`]. The future may be dropped at any point, and the process may
/// die at any point: the same call again goes on.
pub async fn move_shards(
    options: Options,
    shards: &[u8],
    to: u16,
    conduct: Conduct<'_>,
) -> Result<u64, MoveError> {
    Mover::new(options, conduct).await?.move_all(shards, to).await
}

/// Takes back the unfinished move, as long as the shard is not in its new stream: for a new stream that does not
/// work out. Afterwards that stream takes the shard only when it has forgotten it.
pub async fn undo(options: Options, conduct: Conduct<'_>) -> Result<Route, MoveError> {
    Mover::new(options, conduct).await?.undo().await
}

#[cfg(test)]
mod tests;
