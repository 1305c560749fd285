//! Follows the source: its changes, in their order, into the full-text index and to the embedders.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::shelf::{Read, Shelf};
use super::{Catalog, passage, passage_hash};
use crate::entry::Entry;
use crate::error::CatalogError;
use crate::limits::{
    CHANGES_AT_ONCE_MAX, COMMIT_INTERVAL_MILLIS, COMMITTED_BYTES_MAX, POLL_INTERVAL_MILLIS, RETRY_MILLIS,
};
use crate::source::Change;

/// The longest time between two tries.
const RETRY_MAX: Duration = Duration::from_mins(1);

/// Waits longer after every failure in a row.
#[derive(Debug)]
pub(super) struct Retry(Duration);

impl Retry {
    pub(super) const fn new() -> Self {
        Self(Duration::from_millis(RETRY_MILLIS))
    }

    pub(super) async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(RETRY_MAX);
    }
}

impl Catalog {
    /// Follows the source for ever.
    pub(super) async fn follow(&self) {
        let mut retry = Retry::new();
        loop {
            match self.catch_up().await {
                Ok(()) => {
                    retry = Retry::new();
                    self.became_caught_up();
                    self.wait_for_changes().await;
                }
                Err(error) => {
                    tracing::warn!(%error, "The catalog does not follow the store of listings");
                    retry.wait().await;
                }
            }
        }
    }

    async fn wait_for_changes(&self) {
        tokio::select! {
            () = self.changed.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(POLL_INTERVAL_MILLIS)) => {
                // What was merged since the last commit is let go of.
                let text = Arc::clone(&self.text);
                if let Ok(Err(error)) = self.taking_up.run(move || text.refresh()).await {
                    tracing::warn!(%error, "The index cannot be read again");
                }
            }
        }
    }

    fn became_caught_up(&self) {
        if !self.is_caught_up.swap(true, Ordering::AcqRel) {
            for shelf in &self.shelves {
                shelf.awake.notify_one();
            }
        }
    }

    /// Takes up all changes that the source has.
    async fn catch_up(&self) -> Result<(), CatalogError> {
        let latest = self.source.latest().await?;
        if self.text.applied() == 0 && !self.is_caught_up() {
            self.standing.begin(latest)?;
        }
        self.begin_anew_if_lost().await?;
        loop {
            let changes = self.gather().await?;
            // Deletions can be forgotten while changes are asked for: then these are not all.
            if self.begin_anew_if_lost().await? {
                continue;
            }
            let Some(last) = changes.last().map(|change| change.seq) else {
                return Ok(());
            };
            self.latest.fetch_max(last, Ordering::AcqRel);
            if changes.len() >= CHANGES_AT_ONCE_MAX {
                self.commit(changes).await?;
            } else {
                // Those that come right after are committed together.
                let pause = tokio::time::sleep(Duration::from_millis(COMMIT_INTERVAL_MILLIS));
                tokio::join!(self.commit(changes), pause).0?;
            }
        }
    }

    /// Begins anew where the index cannot go on from where it stands; whether it did.
    async fn begin_anew_if_lost(&self) -> Result<bool, CatalogError> {
        let latest = self.source.latest().await?;
        let complete_from = self.source.complete_from().await?;
        self.latest.store(latest, Ordering::Release);
        let applied = self.text.applied();
        let is_lost = self.standing.is_lost(applied, latest, complete_from);
        if is_lost {
            tracing::info!(
                applied,
                latest,
                complete_from,
                "The index of listings is built anew"
            );
            self.is_caught_up.store(false, Ordering::Release);
            let (text, shelves) = (Arc::clone(&self.text), self.all_shelves());
            self.taking_up
                .run(move || {
                    shelves.iter().try_for_each(|shelf| shelf.begin_anew())?;
                    text.clear()
                })
                .await??;
            self.standing.begin(latest)?;
        }
        if !self.is_caught_up() {
            // What was deleted since they settled, the source may have forgotten.
            let behind = self
                .shelves
                .iter()
                .filter(|shelf| shelf.space.settled() < complete_from);
            behind.for_each(|shelf| shelf.may_hold_gone.store(true, Ordering::Release));
        }
        Ok(is_lost)
    }

    /// The next changes: one batch, or several where much is to be read.
    async fn gather(&self) -> Result<Vec<Change>, CatalogError> {
        let mut position = self.text.applied();
        let (mut gathered, mut bytes) = (Vec::new(), 0);
        while bytes < COMMITTED_BYTES_MAX {
            let batch = self.source.changes(position, CHANGES_AT_ONCE_MAX).await?;
            let is_last = batch.len() < CHANGES_AT_ONCE_MAX;
            position = batch.last().map_or(position, |change| change.seq);
            bytes += batch.iter().map(size).sum::<usize>();
            gathered.extend(batch);
            if is_last {
                break;
            }
        }
        Ok(gathered)
    }

    /// Puts changes into the index, then tells the embedders of them.
    async fn commit(&self, changes: Vec<Change>) -> Result<(), CatalogError> {
        let (text, shelves) = (Arc::clone(&self.text), self.all_shelves());
        let take_up = move || {
            text.apply(&changes)?;
            let read = read(&changes);
            for shelf in &shelves {
                tell(shelf, &read);
            }
            Ok(())
        };
        self.taking_up.run(take_up).await?
    }

    fn all_shelves(&self) -> Vec<Arc<Shelf>> {
        let former = self
            .former
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        self.shelves.iter().chain(former.iter()).cloned().collect()
    }
}

/// What changes mean to embedders.
pub(super) fn read(changes: &[Change]) -> Vec<Read> {
    let hash = |entry: &Entry| passage_hash(&passage(entry));
    let read = |change: &Change| Read {
        seq: change.seq,
        number: change.number,
        hash: change.entry.as_ref().map(hash),
    };
    changes.iter().map(read).collect()
}

fn tell(shelf: &Shelf, changes: &[Read]) {
    if let Err(error) = shelf.consider(changes, changes.last().map(|change| change.seq)) {
        // The index does not wait: what is gone is not found by it.
        tracing::warn!(%error, embedder = shelf.space.id(), "Vectors of listings that are gone cannot be deleted");
    }
}

/// Bytes of a change, about.
fn size(change: &Change) -> usize {
    let entry = |entry: &Entry| entry.name.len() + entry.description.len() + 64 * entry.attributes.len();
    256 + change.entry.as_ref().map_or(0, entry)
}
