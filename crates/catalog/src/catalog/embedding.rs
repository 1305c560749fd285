//! Embeds listings in the background, the newest first. Until they are, they are found by their text.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::follow::{Retry, read};
use super::shelf::Shelf;
use super::{Catalog, passage, passage_hash};
use crate::embedder::{EmbedError, Purpose};
use crate::error::CatalogError;
use crate::limits::{CHANGES_AT_ONCE_MAX, EMBEDDED_AT_ONCE_MAX};
use crate::text::{TextIndex, TextView};
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
        let (view, asked, wanted) = (self.text.view(), Arc::clone(shelf), numbers.clone());
        let due = self.embedding.run(move || due(&view, &asked, &wanted)).await?;
        if due.is_empty() {
            return Ok(());
        }
        self.centre(shelf).await?;
        let texts: Vec<String> = due.iter().map(|due| due.text.clone()).collect();
        let vectors = self.vectors(shelf, &texts).await?;
        let new = |(due, vector): (Due, Vec<f32>)| NewVector {
            number: due.number,
            hash: due.hash,
            vector,
        };
        let new: Vec<NewVector> = due.into_iter().zip(vectors).map(new).collect();
        let (text, shelf, taken) = (Arc::clone(&self.text), Arc::clone(shelf), taken.to_vec());
        self.embedding
            .run(move || keep(&text, &shelf, &new, &taken))
            .await??;
        Ok(())
    }

    /// A vector for each text. One that the embedder refuses although it takes others is left blank: it is near to nothing,
    /// and holds nothing else up. It is asked for again when it reads differently.
    async fn vectors(&self, shelf: &Shelf, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let refusal = match passages(shelf, texts).await {
            Ok(vectors) => return Ok(vectors),
            Err(refusal) => refusal,
        };
        if !self.takes_others(shelf).await {
            return Err(refusal);
        }
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            match passages(shelf, std::slice::from_ref(text)).await {
                Ok(found) => vectors.extend(found),
                Err(error) => {
                    if !self.takes_others(shelf).await {
                        return Err(error);
                    }
                    tracing::warn!(%error, embedder = shelf.space.id(), "A listing is left without a vector");
                    vectors.push(vec![0.0; shelf.space.dimensions()]);
                }
            }
        }
        Ok(vectors)
    }

    /// Whether the embedder takes a text that nothing is wrong with. It is another each time, so that no memory of answers
    /// speaks for an embedder that is down.
    async fn takes_others(&self, shelf: &Shelf) -> bool {
        let probe = PROBES.first().copied().unwrap_or_default();
        let text = format!("{probe} {}", self.clock.now().unix_millis());
        passages(shelf, &[text]).await.is_ok()
    }

    /// Finds out where the embedder's vectors lie, before the first of them is kept.
    async fn centre(&self, shelf: &Arc<Shelf>) -> Result<(), Stopped> {
        if !shelf.space.is_empty() || shelf.space.is_centred() {
            return Ok(());
        }
        let mut vectors = Vec::with_capacity(PROBES.len());
        for probes in PROBES.chunks(shelf.embedder.batch_max().max(1)) {
            let texts: Vec<String> = probes.iter().map(|probe| (*probe).to_owned()).collect();
            vectors.extend(passages(shelf, &texts).await?);
        }
        let shelf = Arc::clone(shelf);
        self.embedding.run(move || shelf.space.centre(&vectors)).await??;
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
        let look = move || {
            // Changes after the gap are the follower's.
            let within = changes
                .iter()
                .take_while(|change| change.seq <= to)
                .cloned()
                .collect::<Vec<_>>();
            // First: what there is no room for widens the gap again.
            shelf.backlog().narrow(upto);
            shelf.consider(&read(&within), None)
        };
        self.embedding.run(look).await??;
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
        self.embedding.run(move || kept.space.settle(seq)).await??;
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
        let (view, kept) = (self.text.view(), Arc::clone(shelf));
        let forget = move || {
            let held: Vec<u64> = kept.space.numbers().iter().collect();
            let gone: Vec<u64> = held.into_iter().filter(|number| !view.holds(*number)).collect();
            kept.space.remove(&gone)
        };
        let removed = self.embedding.run(forget).await.flatten();
        if removed.is_err() {
            shelf.may_hold_gone.store(true, Ordering::Release);
        }
        Ok(removed?)
    }
}

/// What was taken from a backlog goes back into it, unless it is done.
struct GiveBack<'a> {
    shelf: &'a Shelf,
    taken: Vec<(u64, u64)>,
}

impl GiveBack<'_> {
    fn is_done(&mut self) {
        self.shelf.backlog().done(&self.taken);
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

/// Keeps vectors of listings that were taken, and looks again at those that changed while they were embedded.
fn keep(
    text: &TextIndex,
    shelf: &Shelf,
    new: &[NewVector],
    taken: &[(u64, u64)],
) -> Result<(), CatalogError> {
    shelf.space.put(new)?;
    // Of later changes the follower makes sure itself: it finds these vectors there.
    let changed = shelf.backlog().changed_since_taken();
    if changed.is_empty() {
        return Ok(());
    }
    let view = text.view();
    let gone: Vec<u64> = changed
        .iter()
        .copied()
        .filter(|number| !view.holds(*number))
        .collect();
    shelf.space.remove(&gone)?;
    // Where one reads again as it did before, the follower noticed nothing: its vector was still there.
    let other: Vec<u64> = due(&view, shelf, &changed).iter().map(|due| due.number).collect();
    let mut backlog = shelf.backlog();
    for (seq, number) in taken.iter().filter(|(_, number)| other.contains(number)) {
        backlog.push(*seq, *number);
    }
    Ok(())
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

/// Vectors as the embedder gives them, of the right number and form.
async fn passages(shelf: &Shelf, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
    let vectors = shelf.embedder.embed(Purpose::Passage, texts).await?;
    check(shelf, &vectors, texts.len())?;
    Ok(vectors)
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
