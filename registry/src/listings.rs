//! The seam for listings (spec §9): what agents offer, in a store with a log of changes, and who hands listings in for them.
//!
//! A store keeps what it is given and guards four things: a version is never replaced by a lower one, what an agent signed is
//! replaced by what it signs only, an agent has no more listings than it may, and the log of changes is read without a gap. What may be in a listing, and whether its agent
//! signed it, is judged before.
//!
//! **The log.** Every change of a listing gives it the next number of the log; it stands there once, at its last change.
//! Whoever asks for the changes after the last one that it knows misses none: a change becomes visible after every change
//! with a lower number, also where several processes write. A listing that was deleted stays as a tombstone, which holds its
//! version, until [`Listings::forget_deleted`].

mod ledger;
mod provider;
mod trail;

use std::fmt;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use async_trait::async_trait;

use crate::error::StoreError;
use crate::secret::SecretHash;

pub use aip_protocol::listing::hub_id as listing_id;
pub(crate) use aip_protocol::listing::is_hub_id as is_listing_id;
pub(crate) use ledger::{Holding, Ledger, LogState};
pub use provider::{NewProvider, Provider};
pub use trail::{Review, Reviewed, Rewording, Said, Trail, Verdict};

/// Listings and providers. Times are kept to the whole millisecond.
///
/// A change is durable when its method returns `Ok`, and is seen by every read that starts later. Dropping a call's future
/// does not undo or tear its change. What failed may be asked again: a listing that is stored already is
/// [`Put::Unchanged`].
///
/// No page is longer than [`crate::limits::LISTINGS_PAGE_MAX`], whatever is asked for.
#[async_trait]
pub trait Listings: fmt::Debug + Send + Sync {
    /// Stores a version of a listing, or takes the listing away. `max_per_agent` bounds the listings that the agent has, and
    /// [`DELETED_PER_LISTING`](crate::limits::DELETED_PER_LISTING) times that its tombstones.
    async fn put(&self, new: &NewListing, max_per_agent: u32, now: Timestamp) -> Result<Put, StoreError>;

    /// The same for many, in their order, each judged after the ones before. Up to
    /// [`LISTINGS_PER_TRANSACTION_MAX`](crate::limits::LISTINGS_PER_TRANSACTION_MAX) of them, and
    /// [`PUT_BYTES_PER_TRANSACTION`](crate::limits::PUT_BYTES_PER_TRANSACTION), are one transaction; where there are more
    /// and a later transaction fails, the earlier ones stand: ask again.
    async fn put_many(
        &self,
        new: &[NewListing],
        max_per_agent: u32,
        now: Timestamp,
    ) -> Result<Vec<Put>, StoreError>;

    /// The listing with this id of the hub, or its tombstone.
    async fn get(&self, id: &str) -> Result<Option<StoredListing>, StoreError>;

    /// Those of these listings that there are, tombstones too, in the order of their ids.
    async fn get_many(&self, ids: &[String]) -> Result<Vec<StoredListing>, StoreError>;

    /// Up to `limit` listings of an agent in the order of their ids, after `after`; no tombstones.
    async fn of_agent(
        &self,
        agent: &Did,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StoredListing>, StoreError>;

    /// Up to `limit` listings that changed after `after`, tombstones too, in the order of their changes; none only if there
    /// is none. 0 is before everything.
    async fn changes(&self, after: u64, limit: u32) -> Result<Vec<StoredListing>, StoreError>;

    /// The number of the last change; 0 before the first.
    async fn latest_change(&self) -> Result<u64, StoreError>;

    /// From where on [`Self::changes`] holds every tombstone. Whoever knows less has to begin anew, from 0. Ask after each
    /// page, since tombstones can be forgotten between two questions; and ask before the first one, since whoever began at 0
    /// misses nothing that was forgotten before, also while it stands before that place.
    async fn complete_from(&self) -> Result<u64, StoreError>;

    /// Forgets up to about `limit` tombstones of listings that were deleted before `before`, oldest first, and says how many.
    ///
    /// With a tombstone goes the knowledge of the version: whoever kept a signed version can bring it back, unless what is
    /// older than `before` is refused at the door.
    async fn forget_deleted(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;

    /// Takes away every listing of an agent that left or was sent away, and says how many. Their versions stay: the agent
    /// can only publish higher ones.
    async fn remove_of(&self, agent: &Did, now: Timestamp) -> Result<u64, StoreError>;

    /// Gives every listing of an agent a new place at the end of the log, so that who follows it looks anew at something
    /// that the listings themselves do not say, such as the agent's standing. Says how many.
    async fn touch_of(&self, agent: &Did) -> Result<u64, StoreError>;

    /// Up to `limit` listings that have flags, or that an operator decided about, in the order of their ids, after `after`; no
    /// tombstones.
    async fn suspects(&self, after: Option<&str>, limit: u32) -> Result<Vec<StoredListing>, StoreError>;

    /// Notes what an operator decided about a listing, and gives it a new place at the end of the log; without a verdict only
    /// that. Where `version` is said, it must be the stored one.
    async fn review(
        &self,
        id: &str,
        version: Option<u64>,
        verdict: Option<Verdict>,
    ) -> Result<Reviewed, StoreError>;

    /// How much there is, for metrics.
    async fn count_listings(&self) -> Result<ListingCounts, StoreError>;

    /// Stores the key of a provider, which must be new.
    async fn add_provider(&self, new: &NewProvider, now: Timestamp) -> Result<Provider, StoreError>;

    /// Up to `limit` providers in the order of their ids, after `after`; revoked ones too.
    async fn list_providers(&self, after: Option<&str>, limit: u32) -> Result<Vec<Provider>, StoreError>;

    /// Ends a provider's key; `false` if it is unknown or was revoked before. Its listings stay.
    async fn revoke_provider(&self, id: &str, now: Timestamp) -> Result<bool, StoreError>;

    /// The provider whose key has this hash, unless it was revoked. That it was used is noted, not more often than every
    /// [`PROVIDER_USE_SECS`](crate::limits::PROVIDER_USE_SECS).
    async fn provider_by_secret_hash(
        &self,
        hash: &SecretHash,
        now: Timestamp,
    ) -> Result<Option<Provider>, StoreError>;
}

/// Where a listing comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Its agent signed it.
    Signed,
    /// Somebody handed it in with a key.
    Ingested {
        /// What the hub calls whoever did.
        provider: String,
    },
    /// It was read from the catalog of another hub, which is who answers for it: no agent has signed it.
    Peer {
        /// The other hub's address.
        hub: String,
    },
}

/// A listing as stores keep it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredListing {
    /// The hub's id of it: [`listing_id`].
    pub id: String,
    /// The store's number of it: small, never given twice, the same as long as there is at least a tombstone.
    pub number: u64,
    /// Whose it is.
    pub agent: Did,
    /// Its agent's id of it.
    pub listing_id: String,
    /// Its version.
    pub version: u64,
    /// Whether this is a tombstone, without text, flags and end.
    pub deleted: bool,
    /// Its canonical JSON text.
    pub json: Vec<u8>,
    /// What tells this version from others; that of the deletion in a tombstone, or of the last version where
    /// [`Listings::remove_of`] made it.
    pub digest: [u8; 32],
    /// Where it comes from.
    pub origin: Origin,
    /// What readers should know about it.
    pub flags: Vec<String>,
    /// Its place in the log.
    pub change_seq: u64,
    /// When this version was stored.
    pub stored_at: Timestamp,
    /// After this moment it is no longer offered.
    pub expires_at: Option<Timestamp>,
    /// What is known of it beside what it says.
    pub trail: Trail,
}

/// A version of a listing, to be stored.
#[derive(Clone, PartialEq, Eq)]
pub struct NewListing {
    /// Whose it is.
    pub agent: Did,
    /// Its agent's id of it.
    pub listing_id: String,
    /// A higher one replaces a lower one. Up to `i64::MAX`.
    pub version: u64,
    /// Whether it takes the listing away.
    pub deleted: bool,
    /// Its canonical JSON text, in UTF-8. A deletion's is not kept.
    pub json: Vec<u8>,
    /// What tells this version from others.
    pub digest: [u8; 32],
    /// Where it comes from.
    pub origin: Origin,
    /// What readers should know about it.
    pub flags: Vec<String>,
    /// After this moment it is no longer offered.
    pub expires_at: Option<Timestamp>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// It is the current version.
    Stored {
        /// As stored.
        listing: StoredListing,
        /// Whether there is a listing now where there was none, or only a tombstone.
        is_new: bool,
    },
    /// What is stored has the same digest and the same version or another one: the same was said before. Nothing changed.
    Unchanged(StoredListing),
    /// The stored version is as high, or higher, or its agent signed it and not this one. Nothing changed.
    Conflict {
        /// The stored version.
        version: u64,
    },
    /// The agent has as many listings as it may, or deleted as many as are remembered. Nothing changed.
    TooMany {
        /// As many as it may have.
        max: u32,
    },
}

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListingCounts {
    /// Listings, expired ones too.
    pub live: u64,
    /// Tombstones.
    pub deleted: u64,
    /// Providers ever made.
    pub providers: u64,
}

// What strangers wrote does not belong into a log.
impl fmt::Debug for StoredListing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredListing")
            .field("id", &self.id)
            .field("number", &self.number)
            .field("version", &self.version)
            .field("deleted", &self.deleted)
            .field("origin", &self.origin)
            .field("change_seq", &self.change_seq)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for NewListing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewListing")
            .field("agent", &self.agent)
            .field("version", &self.version)
            .field("deleted", &self.deleted)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}
