//! The contract of a mailbox store, as plain async functions: every backend runs them all, each on a fresh
//! store.
//!
//! A function whose name begins with `row_` pins a failure that another system had in the field.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "a broken contract is to panic"
)]

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::clock::{Clock, ManualClock};
use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    AckOutcome, Acked, Append, AppendOutcome, Fetch, MailboxId, MailboxState, MailboxStore, Quota, Route,
    Select, Status, StoredMessage,
};
use crate::limits;

mod acks;
mod appends;
mod deaths;
mod outboxes;
mod times;

pub use self::acks::*;
pub use self::appends::*;
pub use self::deaths::*;
pub use self::outboxes::*;
pub use self::times::*;

/// The domain of another hub.
const PEER: &str = "other.example";

/// A fresh store and a clock that stands still.
#[derive(Debug)]
pub struct Context {
    /// Under test.
    pub store: Arc<dyn MailboxStore>,
    /// Starts at 2026-11-29T20:15:30Z.
    pub clock: ManualClock,
    _ground: Box<dyn Any + Send + Sync>,
}

impl Context {
    /// `ground` is what has to live as long as the store, such as its folder.
    pub fn new(store: Arc<dyn MailboxStore>, ground: impl Any + Send + Sync) -> Self {
        let start = Timestamp::parse("2026-11-29T20:15:30Z").unwrap();
        Self {
            store,
            clock: ManualClock::new(start),
            _ground: Box::new(ground),
        }
    }

    /// The clock's time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Moves the clock.
    pub fn wait(&self, secs: u64) {
        self.clock.advance(Duration::from_secs(secs));
    }

    /// Envelope number `n` from `from` to `to`, accepted now, for the default retention.
    pub fn envelope(&self, from: &str, to: &str, n: u64) -> Append {
        envelope(self.now(), from, to, n)
    }

    /// Appends envelope number `n` from alice to bob.
    pub async fn send(&self, n: u64) -> AppendOutcome {
        self.append(self.envelope("alice", "bob", n)).await
    }

    /// Appends.
    pub async fn append(&self, append: Append) -> AppendOutcome {
        self.store.append(append).await.unwrap()
    }

    /// What a fetch of bob's mailbox shows.
    pub async fn pending(&self) -> Vec<StoredMessage> {
        self.fetch(Select::After(0), 1_000, usize::MAX).await
    }

    /// The sequence numbers that a fetch of bob's mailbox shows.
    pub async fn pending_seqs(&self) -> Vec<u64> {
        self.pending().await.iter().map(|message| message.seq).collect()
    }

    /// A fetch of bob's mailbox.
    pub async fn fetch(&self, select: Select, max_messages: usize, max_bytes: usize) -> Vec<StoredMessage> {
        let fetch = Fetch {
            select,
            max_messages,
            max_bytes,
            now: self.now(),
        };
        self.store.fetch(&bob(), fetch).await.unwrap()
    }

    /// Acks in bob's mailbox.
    pub async fn ack(&self, upto: u64, also: &[u64]) -> AckOutcome {
        self.store.ack(&bob(), upto, also, self.now()).await.unwrap()
    }

    /// Acks in bob's mailbox: the floor after it, and what it settled.
    pub async fn acked(&self, upto: u64, also: &[u64]) -> (u64, Vec<u64>) {
        match self.ack(upto, also).await {
            AckOutcome::Acked(Acked { floor, messages }) => {
                (floor, messages.iter().map(|settled| settled.seq).collect())
            }
            refused => (u64::MAX, vec![u64::from(refused == AckOutcome::TooMany)]),
        }
    }

    /// The counters of bob's mailbox.
    pub async fn state(&self) -> MailboxState {
        self.store.state(&bob()).await.unwrap()
    }

    /// What alice learns of her envelope number `n` to bob.
    pub async fn status(&self, n: u64) -> Option<(Status, Option<String>)> {
        let records = self
            .store
            .status(&did("alice"), Uuid::from_u64_pair(4, n), Some(&did("bob")))
            .await
            .unwrap();
        records
            .into_iter()
            .next()
            .map(|record| (record.status, record.code))
    }
}

/// `did:aip:example.org:NAME`.
pub fn did(name: &str) -> Did {
    Did::parse(&format!("did:aip:example.org:{name}")).unwrap()
}

/// `did:aip:other.example:NAME`: an agent of another hub.
pub fn remote(name: &str) -> Did {
    Did::parse(&format!("did:aip:{PEER}:{name}")).unwrap()
}

/// The outbox for that hub.
pub fn outbox() -> MailboxId {
    MailboxId::of_peer(&Domain::parse(PEER).unwrap())
}

/// Bob's mailbox.
pub fn bob() -> MailboxId {
    MailboxId::of(&did("bob"))
}

/// Envelope number `n`, accepted at `now`.
pub fn envelope(now: Timestamp, from: &str, to: &str, n: u64) -> Append {
    let (sender, recipient, id) = (did(from), did(to), Uuid::from_u64_pair(4, n));
    let wire = Bytes::from(format!("envelope {n} from {sender} to {recipient}"));
    let key = Sha256::digest(format!("{sender}|{recipient}|{id}"));
    Append {
        dedup_key: key.first_chunk::<16>().copied().unwrap(),
        digest: Sha256::digest(&wire).into(),
        recipient,
        sender,
        id,
        remember_until: now + Duration::from_mins(15),
        accepted_at: now,
        expires_at: now + Duration::from_secs(limits::RETENTION_SECS),
        wire,
        route: Route::Mailbox,
        quota: Quota::default(),
    }
}

/// Envelope number `n` for an agent of another hub, accepted at `now`, for as long as an outbox keeps it.
pub fn letter(now: Timestamp, from: &str, recipient: Did, n: u64) -> Append {
    let append = envelope(now, from, recipient.name(), n);
    let key = Sha256::digest(format!("{}|{recipient}|{}", append.sender, append.id));
    Append {
        dedup_key: key.first_chunk::<16>().copied().unwrap(),
        expires_at: now + Duration::from_secs(limits::OUTBOX_RETENTION_SECS),
        route: Route::Peer,
        recipient,
        ..append
    }
}

/// The same id with other bytes.
pub fn forged(mut append: Append) -> Append {
    append.wire = Bytes::from_static(b"other bytes");
    append.digest = Sha256::digest(&append.wire).into();
    append
}

/// What a mailbox route answers to the first of its kind.
pub fn stored(seq: u64) -> AppendOutcome {
    AppendOutcome::Stored { seq: Some(seq) }
}

/// What a mailbox route answers to a retry.
pub fn duplicate(seq: u64) -> AppendOutcome {
    AppendOutcome::Duplicate {
        seq: Some(seq),
        route: Route::Mailbox,
    }
}
