//! Peers: what is known and decided about the hubs of other domains, and the seam of the store that keeps it.
//!
//! The room decides, the store keeps: every method is one durable step. The registry implements it in memory and in SQL.

#[cfg(any(test, feature = "testsuite"))]
pub mod fake;

use std::fmt::Debug;

use aip_protocol::error::ErrorCode;
use aip_protocol::json::Json;
use aip_protocol::multikey::VerifyingKey;
use aip_protocol::name::{Did, Domain};
use aip_protocol::peer::Known;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use crate::limits::{
    CLEARED_PART, HISTORIES_BYTES_MAX, HISTORIES_MAX, HISTORIES_PER_PEER_MAX, HISTORY_BYTES_PER_PEER_MAX,
};

/// A store could not be read or written, for now.
#[derive(Debug, thiserror::Error)]
#[error("the store of peers does not answer")]
pub struct StoreError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// What the operator decided about one peer; without a decision the hub's policy holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stance {
    /// Nothing: as the policy says.
    #[default]
    Undecided,
    /// Mail and catalog, whatever the policy.
    Allowed,
    /// Nothing in, nothing out.
    Blocked,
    /// Mail, no catalog.
    Limited,
}

/// Why a peer is frozen: nothing is taken from it and nothing sent to it until the operator decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frozen {
    /// `key_mismatch`: its document is signed by a key that no pinned key vouches for.
    pub code: String,
    /// The key that it showed: domain, `#`, Multikey.
    pub kid: String,
    /// Since when.
    pub since: Timestamp,
}

/// Limits that the operator set for one peer; `None` leaves the ramp and the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeerLimits {
    /// Items a second that it may hand in.
    pub items_per_sec: Option<u32>,
    /// Bytes a second that it may hand in.
    pub bytes_per_sec: Option<u64>,
    /// Items that may wait for it in the outbox.
    pub queue_items: Option<u32>,
}

/// One peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerRecord {
    /// Its domain.
    pub domain: Domain,
    /// Its keys as they are pinned; empty before the first document.
    pub pinned: Vec<VerifyingKey>,
    /// The newest document that was good, whole.
    pub document: Option<Json>,
    /// Until when that document is good without asking again.
    pub fresh_until: Option<Timestamp>,
    /// Frozen, and why.
    pub frozen: Option<Frozen>,
    /// What the operator decided.
    pub stance: Stance,
    /// What the operator allowed.
    pub limits: PeerLimits,
    /// When it was first met, either way.
    pub first_seen: Timestamp,
    /// When a request of it was last verified.
    pub last_in: Option<Timestamp>,
    /// When it last answered a push with 2xx.
    pub last_out: Option<Timestamp>,
    /// Items of it that were stored here, since the beginning: what the ramp grows with.
    pub good_items: u64,
}

impl PeerRecord {
    /// Whether it was met, or decided about: its hub need not be looked for any more.
    pub fn is_met(&self) -> bool {
        !self.pinned.is_empty() || self.stance != Stance::Undecided
    }

    /// Whether it is more than a stranger: mail went through, one way or the other, or the operator lets it.
    pub fn is_acquainted(&self) -> bool {
        let is_let = matches!(self.stance, Stance::Allowed | Stance::Limited);
        self.good_items > 0 || self.last_out.is_some() || is_let
    }

    /// Whether no mail ever went through, and nothing was decided about it.
    pub fn is_stranger(&self) -> bool {
        let is_undecided = self.stance == Stance::Undecided && self.limits == PeerLimits::default();
        is_undecided && !self.is_acquainted()
    }

    /// When it was last heard of.
    pub fn last_heard(&self) -> Timestamp {
        self.last_in.unwrap_or(self.first_seen)
    }
}

/// A change of one peer. Each is one durable step; a peer that is not known yet is made.
#[derive(Debug, Clone, PartialEq)]
pub enum PeerChange {
    /// Met: made if it is not there.
    Met,
    /// A good document was seen: pins its keys, ends nothing else.
    Documented {
        /// The document.
        document: Json,
        /// Its keys.
        pinned: Vec<VerifyingKey>,
        /// Until when it is good.
        fresh_until: Timestamp,
    },
    /// The document's cache ends now.
    Stale,
    /// Freezes, unless it is frozen already.
    Frozen(Frozen),
    /// The operator takes the key that is shown: pins are forgotten, and so is what froze it; the document's cache ends.
    Repinned,
    /// The operator decides.
    Stance(Stance),
    /// The operator allows.
    Limits(PeerLimits),
    /// A verified request came in, and so many items of it were stored.
    CameIn {
        /// Stored items.
        good_items: u64,
    },
    /// It answered a push with 2xx.
    WentOut,
}

/// What became of one item of a peer, to be remembered for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noted {
    /// Its number in the peer's outbox.
    pub peer_seq: u64,
    /// `None`: stored, here or before. Else refused for good, with this code.
    pub refused: Option<ErrorCode>,
}

/// A remote identity as it was last verified.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownHistory {
    /// Whose.
    pub did: Did,
    /// All operations, oldest first, as they were signed.
    pub operations: Vec<Json>,
    /// When it was last fetched.
    pub fetched_at: Timestamp,
}

/// So many histories, and so many bytes of them as JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryCap {
    /// How many.
    pub histories: u64,
    /// How many bytes of them all.
    pub bytes: u64,
}

impl HistoryCap {
    /// Whether there is room for so many.
    pub fn holds(self, wanted: Self) -> bool {
        wanted.histories <= self.histories && wanted.bytes <= self.bytes
    }

    /// What of it stays filled when it is cleared: a little less, so that it need not be cleared with each one that comes.
    #[must_use]
    pub fn cleared(self) -> Self {
        Self {
            histories: self.histories - self.histories / CLEARED_PART,
            bytes: self.bytes - self.bytes / CLEARED_PART,
        }
    }
}

/// How many histories of agents elsewhere are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryCaps {
    /// Of one domain.
    pub per_peer: HistoryCap,
    /// Of all.
    pub all: HistoryCap,
}

impl Default for HistoryCaps {
    fn default() -> Self {
        Self {
            per_peer: HistoryCap {
                histories: HISTORIES_PER_PEER_MAX,
                bytes: HISTORY_BYTES_PER_PEER_MAX,
            },
            all: HistoryCap {
                histories: HISTORIES_MAX,
                bytes: HISTORIES_BYTES_MAX,
            },
        }
    }
}

/// Something that a peer did that it cannot take back: two signed objects that contradict each other, or one that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Counts from 1; given by the store.
    pub number: u64,
    /// Of which peer.
    pub peer: Domain,
    /// The code: `history_forked`, `hub_key_not_pinned`, ….
    pub code: String,
    /// Whom it is about: a DID, or a key.
    pub subject: String,
    /// What was known, and what was shown.
    pub objects: Vec<Json>,
    /// When.
    pub at: Timestamp,
}

/// One line of the audit log: what the operator, or the hub by itself, decided about a peer.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// Counts from 1; given by the store.
    pub number: u64,
    /// Which peer.
    pub peer: Domain,
    /// Who: `operator`, or `hub`.
    pub actor: String,
    /// What: `allow`, `block`, `limit`, `repin`, `retry`, `freeze`, `pin`, `rotate`.
    pub action: String,
    /// Details, for people.
    pub detail: String,
    /// When.
    pub at: Timestamp,
}

/// What is kept of peers. Times are kept to the whole millisecond. No page is longer than
/// [`PEERS_PAGE_MAX`](crate::limits::PEERS_PAGE_MAX).
#[async_trait]
pub trait PeerStore: Debug + Send + Sync {
    /// The peer, if it was ever met.
    async fn peer(&self, domain: &Domain) -> Result<Option<PeerRecord>, StoreError>;

    /// Up to `limit` peers in the order of their domains, after `after`.
    async fn peers(&self, after: Option<&Domain>, limit: u32) -> Result<Vec<PeerRecord>, StoreError>;

    /// Changes one peer and returns it as it is now.
    async fn change(
        &self,
        domain: &Domain,
        change: PeerChange,
        now: Timestamp,
    ) -> Result<PeerRecord, StoreError>;

    /// Forgets peers, with windows of theirs kept, that were met before `before`, that were not heard of and did not answer
    /// since, and about which nothing was decided, frozen or recorded as evidence; at most `limit` and a page, which it says.
    /// Of the audit log their lines go that are not the operator's.
    async fn forget_dead(&self, before: Timestamp, limit: u32) -> Result<Vec<Domain>, StoreError>;

    /// Forgets strangers ([`PeerRecord::is_stranger`]) but for the `keep` that were last heard of, since anybody can have any
    /// number of domains; at most `limit` and a page, which it says. What they did goes with them, frozen or recorded as
    /// evidence as it may be, and so do their windows: no item of theirs was ever stored. What the operator did stays, and
    /// histories have their own bound.
    async fn forget_strangers(&self, keep: u32, limit: u32) -> Result<Vec<Domain>, StoreError>;

    /// Takes the turn of sending to a peer for this process until `until`, or lengthens it; it is never shortened by this.
    /// `false`: another has it, and it is not over at `now`.
    async fn lease(
        &self,
        domain: &Domain,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Gives the turn back, if `holder` has it.
    async fn release(&self, domain: &Domain, holder: &str) -> Result<(), StoreError>;
}

/// What came in from peers: each item once, each nonce once.
///
/// The last [`EPOCHS_PER_PEER_MAX`](crate::limits::EPOCHS_PER_PEER_MAX) epochs of a peer are remembered. A peer that has had
/// more since could hand an old item in anew, as it could under another number: the mailboxes' own dedup stays.
#[async_trait]
pub trait ReceivedStore: Debug + Send + Sync {
    /// Whether these items of a peer and an epoch were met before, in the order asked. Codes are kept of the
    /// [`REFUSALS_PER_EPOCH_MAX`](crate::limits::REFUSALS_PER_EPOCH_MAX) refused items with the highest numbers; an older
    /// one is a duplicate.
    async fn known(&self, peer: &Domain, epoch: &str, seqs: &[u64]) -> Result<Vec<Known>, StoreError>;

    /// Remembers what became of items, in one step, and says through where everything is settled. What is remembered
    /// already stays as it is; of a number that comes twice the first counts. At most
    /// [`ABOVE_MAX`](crate::limits::ABOVE_MAX) numbers above the contiguous part are kept; the caller sees to that with
    /// [`ReceivedStore::window`].
    async fn note(&self, peer: &Domain, epoch: &str, noted: &[Noted]) -> Result<u64, StoreError>;

    /// Settles everything up to `through`, and says through where everything is settled now: the peer's outbox begins after
    /// it, so that nothing of it will come any more. A window that was begun anew, or comes from a backup, would wait for it
    /// for ever. Only the peer's own word makes it known, and only its own mail is concerned.
    async fn pass_over(&self, peer: &Domain, epoch: &str, through: u64) -> Result<u64, StoreError>;

    /// Through where everything is settled, and how many are settled above it.
    async fn window(&self, peer: &Domain, epoch: &str) -> Result<(u64, u64), StoreError>;

    /// Uses up a nonce of a peer; `false` if it was used before and is not over. Also drops some that are over.
    async fn use_nonce(
        &self,
        peer: &Domain,
        nonce: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError>;
}

/// Histories of remote agents.
///
/// Anybody can have made-up ones fetched, so that there is room for so many. What is in use is fetched anew all the time, and
/// what goes is what was not fetched for longest. The next look at an agent that went is a first one again: what its hub shows
/// then is believed. So forks are found of what is kept, and strangers, however many domains they have, take nothing from
/// peers that mail was exchanged with: only more agents of a peer than it has room for, or more acquaintances than all have,
/// make that forgotten which was out of use for longest.
#[async_trait]
pub trait HistoryStore: Debug + Send + Sync {
    /// The history as it was last verified.
    async fn history(&self, did: &Did) -> Result<Option<KnownHistory>, StoreError>;

    /// Keeps a verified history instead of what was known. The caller has checked that it extends that; of two that were
    /// fetched at once the longer one stays, and of two that are as long the one that was fetched later.
    ///
    /// Where there is not room for all of its domain, those of that domain go that were not fetched for longest. Where there
    /// is not room for all, those of strangers ([`PeerRecord::is_acquainted`]) go first, be it this one, and among them, as
    /// among the others, those that were not fetched for longest, until the rest has room when [`HistoryCap::cleared`].
    async fn keep_history(&self, history: &KnownHistory, caps: HistoryCaps) -> Result<(), StoreError>;

    /// Forgets a history, on the operator's word.
    async fn forget_history(&self, did: &Did) -> Result<bool, StoreError>;
}

/// What cannot be taken back, and what was decided.
#[async_trait]
pub trait RecordStore: Debug + Send + Sync {
    /// Records evidence. The same (peer, code, subject, objects) again adds nothing. At most
    /// [`EVIDENCE_PER_PEER_MAX`](crate::limits::EVIDENCE_PER_PEER_MAX) of a peer are kept, the oldest ones.
    async fn add_evidence(
        &self,
        peer: &Domain,
        code: &str,
        subject: &str,
        objects: &[Json],
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Up to `limit` pieces of evidence, of one peer or of all, with numbers above `after`.
    async fn evidence(
        &self,
        peer: Option<&Domain>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Evidence>, StoreError>;

    /// Appends a line to the audit log. Of lines whose actor is not `operator` the newest
    /// [`AUDIT_LINES_MAX`](crate::limits::AUDIT_LINES_MAX) of a peer are kept, since strangers can cause them.
    async fn audit(
        &self,
        peer: &Domain,
        actor: &str,
        action: &str,
        detail: &str,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Up to `limit` lines of the audit log, of one peer or of all, with numbers above `after`.
    async fn audit_log(
        &self,
        peer: Option<&Domain>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError>;
}

/// Everything that is kept for federation, as one object.
pub trait FederationStore: PeerStore + ReceivedStore + HistoryStore + RecordStore {}

impl<S: PeerStore + ReceivedStore + HistoryStore + RecordStore> FederationStore for S {}
