//! Embeds listings in the background, the newest first. Until they are, they are found by their text.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::follow::{Retry, read};
use super::shelf::Shelf;
use super::{Catalog, blocking, passage, passage_hash};
use crate::embedder::{EmbedError, Purpose};
use crate::error::CatalogError;
use crate::limits::{CHANGES_AT_ONCE_MAX, EMBEDDED_AT_ONCE_MAX};
use crate::text::TextView;
use crate::vectors::{NewVector, PROBES, TextHash};

/// Why embedding stops for a while.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error(transparent)]
    Embedder(#[from] EmbedError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// A listing to embed.
#[derive(Debug)]
struct Due {
    number: u64,
    hash: TextHash,
    text: String,
}

impl Catalog {
    /// Embeds what waits for this embedder, for ever.
    pub(super) async fn embed(&self, shelf: &Arc<Shelf>) {
        let mut retry = Retry::new();
        loop {
            match self.embed_some(shelf).await {
                Ok(true) => retry = Retry::new(),
                Ok(false) => shelf.awake.notified().await,
                Err(error) => {
                    tracing::warn!(%error, embedder = shelf.space.id(), "Listings are not embedded");
                    retry.wait().await;
                }
            }
        }
    }

    /// The next step. False where nothing is to be done.
    async fn embed_some(&self, shelf: &Arc<Shelf>) -> Result<bool, Stopped> {
        let most = shelf.embedder.batch_max().clamp(1, EMBEDDED_AT_ONCE_MAX);
        let taken = shelf.backlog().take(most);
        if !taken.is_empty() {
            // Given back also where the hub stops while they are embedded.
            let mut back = GiveBack { shelf, taken };
            self.embed_batch(shelf, &back.taken).await?;
            back.is_done();
            return Ok(true);
        }
        let gap = shelf.backlog().gap();
        if let Some((from, to)) = gap {
            self.look_again(shelf, from, to).await?;
            return Ok(true);
        }
        self.settle(shelf).await?;
        Ok(false)
    }

    async fn embed_batch(&self, shelf: &Arc<Shelf>, taken: &[(u64, u64)]) -> Result<(), Stopped> {
        let numbers: Vec<u64> = taken.iter().map(|(_, number)| *number).collect();
        let (view, asked) = (self.text.view(), Arc::clone(shelf));
        let due = blocking(move || due(&view, &asked, &numbers)).await?;
        if due.is_empty() {
            return Ok(());
        }
        self.centre(shelf).await?;
        let texts: Vec<String> = due.iter().map(|due| due.text.clone()).collect();
        let vectors = shelf.embedder.embed(Purpose::Passage, &texts).await?;
        check(shelf, &vectors, due.len())?;
        let new = |(due, vector): (Due, Vec<f32>)| NewVector {
            number: due.number,
            hash: due.hash,
            vector,
        };
        let new: Vec<NewVector> = due.into_iter().zip(vectors).map(new).collect();
        let (text, shelf) = (Arc::clone(&self.text), Arc::clone(shelf));
        blocking(move || {
            shelf.space.put(&new)?;
            // What was deleted while it was embedded.
            let view = text.view();
            let is_gone = |new: &&NewVector| !view.holds(new.number);
            let gone: Vec<u64> = new.iter().filter(is_gone).map(|new| new.number).collect();
            shelf.space.remove(&gone)
        })
        .await??;
        Ok(())
    }

    /// Finds out where the embedder's vectors lie, before the first of them is kept.
    async fn centre(&self, shelf: &Arc<Shelf>) -> Result<(), Stopped> {
        if shelf.space.is_centred() || !shelf.space.is_empty() {
            return Ok(());
        }
        let mut vectors = Vec::with_capacity(PROBES.len());
        for probes in PROBES.chunks(shelf.embedder.batch_max().max(1)) {
            let texts: Vec<String> = probes.iter().map(|probe| (*probe).to_owned()).collect();
            vectors.extend(shelf.embedder.embed(Purpose::Passage, &texts).await?);
        }
        check(shelf, &vectors, PROBES.len())?;
        let shelf = Arc::clone(shelf);
        blocking(move || shelf.space.centre(&vectors)).await??;
        Ok(())
    }

    /// Reads changes again that nobody looked at, or that there was no room for.
    async fn look_again(&self, shelf: &Arc<Shelf>, from: u64, to: u64) -> Result<(), Stopped> {
        let changes = self
            .source
            .changes(from, CHANGES_AT_ONCE_MAX)
            .await
            .map_err(CatalogError::from)?;
        let is_last = changes.len() < CHANGES_AT_ONCE_MAX;
        let upto = changes
            .last()
            .map_or(to, |change| if is_last { to } else { change.seq });
        let shelf = Arc::clone(shelf);
        blocking(move || {
            // Changes after the gap are the follower's.
            let within = changes
                .iter()
                .take_while(|change| change.seq <= to)
                .cloned()
                .collect::<Vec<_>>();
            // First: what there is no room for widens the gap again.
            shelf.backlog().narrow(upto);
            shelf.consider(&read(&within), None)
        })
        .await??;
        Ok(())
    }

    /// Notes that every listing has its vector.
    async fn settle(&self, shelf: &Arc<Shelf>) -> Result<(), Stopped> {
        if !self.is_caught_up() {
            return Ok(());
        }
        self.forget_gone(shelf).await?;
        let settled = shelf.backlog().settled();
        let Some(seq) = settled else {
            return Ok(());
        };
        let kept = Arc::clone(shelf);
        blocking(move || kept.space.settle(seq)).await??;
        if shelf.became_whole() {
            tracing::info!(embedder = shelf.space.id(), "All listings are embedded");
        }
        self.retire_former().await;
        Ok(())
    }

    /// Deletes the vectors of listings whose deletion was forgotten by the source.
    async fn forget_gone(&self, shelf: &Arc<Shelf>) -> Result<(), Stopped> {
        if !shelf.may_hold_gone.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let (view, shelf) = (self.text.view(), Arc::clone(shelf));
        blocking(move || {
            let held: Vec<u64> = shelf.space.numbers().iter().collect();
            let gone: Vec<u64> = held.into_iter().filter(|number| !view.holds(*number)).collect();
            shelf.space.remove(&gone)
        })
        .await??;
        Ok(())
    }
}

/// What was taken from a backlog goes back into it, unless it is done.
struct GiveBack<'a> {
    shelf: &'a Shelf,
    taken: Vec<(u64, u64)>,
}

impl GiveBack<'_> {
    fn is_done(&mut self) {
        self.shelf.backlog().done(self.taken.len());
        self.taken.clear();
    }
}

impl Drop for GiveBack<'_> {
    fn drop(&mut self) {
        if !self.taken.is_empty() {
            self.shelf.backlog().give_back(std::mem::take(&mut self.taken));
        }
    }
}

/// Those of the numbers whose text differs from the one that was embedded; each once.
fn due(view: &TextView, shelf: &Shelf, numbers: &[u64]) -> Vec<Due> {
    let mut due: Vec<Due> = Vec::with_capacity(numbers.len());
    for number in numbers {
        let is_known = due.iter().any(|due| due.number == *number);
        let Some(entry) = view.entry(*number).filter(|_| !is_known) else {
            continue;
        };
        let text = passage(&entry);
        let hash = passage_hash(&text);
        if shelf.space.hash(*number) != Some(hash) {
            due.push(Due {
                number: *number,
                hash,
                text,
            });
        }
    }
    due
}

fn check(shelf: &Shelf, vectors: &[Vec<f32>], texts: usize) -> Result<(), EmbedError> {
    let dimensions = shelf.space.dimensions();
    if vectors.len() != texts {
        let sentence = format!("{} vectors for {texts} texts", vectors.len());
        return Err(EmbedError::Broken(sentence));
    }
    match vectors.iter().find(|vector| vector.len() != dimensions) {
        Some(vector) => {
            let sentence = format!(
                "a vector of {} dimensions, {dimensions} were expected",
                vector.len()
            );
            Err(EmbedError::Broken(sentence))
        }
        None => Ok(()),
    }
}
