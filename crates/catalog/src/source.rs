//! Where listings come from: a store with a log of changes.

use async_trait::async_trait;

use crate::entry::Entry;

/// One change of the store. A listing that changed often has only its last one.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Grows with every change; no change with a lower one appears later.
    pub seq: u64,
    /// The store's number of the listing.
    pub number: u64,
    /// The listing as it is now; `None` when it is gone.
    pub entry: Option<Entry>,
}

/// The store cannot be asked now.
#[derive(Debug, thiserror::Error)]
#[error("the store of listings does not answer: {0}")]
pub struct SourceError(pub String);

/// A store of listings, as the catalog sees it.
#[async_trait]
pub trait Source: Send + Sync + std::fmt::Debug {
    /// The changes after `seq`, oldest first, at most `limit` of them. 0 is before everything.
    async fn changes(&self, seq: u64, limit: usize) -> Result<Vec<Change>, SourceError>;

    /// The last change; 0 before the first.
    async fn latest(&self) -> Result<u64, SourceError>;

    /// The lowest position from which `changes` is complete. Deletions are forgotten after a while: an index that stands
    /// before this begins anew, from 0. To be asked after each page, since deletions can be forgotten between two questions;
    /// and before the first page after 0, since an index that began there misses nothing that was forgotten before it did,
    /// also while it stands before that place: it begins anew only when the answer is higher than both.
    async fn complete_from(&self) -> Result<u64, SourceError>;
}
