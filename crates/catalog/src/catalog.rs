//! The catalog as the hub holds it: it follows the store of listings, embeds them in the background, and finds them.

mod asking;
mod backlog;
mod embedding;
mod find;
mod follow;
mod found;
mod list;
mod passage;
mod shelf;
mod standing;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use aip_protocol::clock::Clock;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::fusion::Fusion;
use tokio::sync::{Notify, Semaphore};

use self::asking::Asking;
use self::find::{Asked, Finder, Job};
pub use self::found::{
    CatalogStats, EntryState, Explain, ExplainMatch, ExplainText, Found, FoundItem, SearchError, SpaceStats,
};
pub use self::passage::{passage, passage_hash};
use self::shelf::Shelf;
use self::standing::Standing;
use crate::background::Background;
use crate::cursor;
use crate::embedder::Embedder;
use crate::error::CatalogError;
use crate::limits::{
    EMBEDDING_STEPS, PAGE_RESULTS_MAX, QUERY_BYTES_MAX, SEARCHES_WAITING_MAX, TAKING_UP_STEPS,
};
use crate::query::Query;
use crate::source::Source;
use crate::text::{TextIndex, TextOptions, TextView};
use crate::trust::TrustScores;
use crate::vectors::Space;

/// How a catalog works.
#[derive(Clone)]
pub struct CatalogOptions {
    /// Where the index lies, which is this process's alone; in memory without one.
    pub dir: Option<PathBuf>,
    /// The numbers of the formula.
    pub fusion: Fusion,
    /// Places of each list that are fused; [`LEG_DEPTH_MIN`](crate::limits::LEG_DEPTH_MIN) at least.
    pub depth: usize,
    /// Seals cursors; the same in every process of a hub.
    pub cursor_key: [u8; 32],
    /// How long a search waits for the vector of its text.
    pub embed_timeout: Duration,
}

impl std::fmt::Debug for CatalogOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            dir,
            fusion,
            depth,
            embed_timeout,
            ..
        } = self;
        f.debug_struct("CatalogOptions")
            .field("dir", dir)
            .field("fusion", fusion)
            .field("depth", depth)
            .field("embed_timeout", embed_timeout)
            .finish_non_exhaustive()
    }
}

/// What agents offer, ready to be found.
#[derive(Debug)]
pub struct Catalog {
    source: Arc<dyn Source>,
    clock: Arc<dyn Clock>,
    text: Arc<TextIndex>,
    finder: Arc<Finder>,
    /// One for each embedder that is wished.
    shelves: Vec<Arc<Shelf>>,
    /// Of embedders that are no longer wished: they serve until the others are whole.
    former: RwLock<Vec<Arc<Shelf>>>,
    /// Where the vectors lie.
    vectors_dir: Option<PathBuf>,
    asking: Asking,
    standing: Standing,
    /// Writes the full-text index.
    taking_up: Background,
    /// Reads what is embedded and keeps vectors: writing their file anew takes seconds, which the index does not wait for.
    embedding: Background,
    /// The store changed.
    changed: Notify,
    /// The last change that the source was seen to have.
    latest: AtomicU64,
    /// The index held all that the source had, once since it was opened or begun anew.
    is_caught_up: AtomicBool,
    searching: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl Catalog {
    /// Opens the catalog. Nothing is read from the source before [`Catalog::run`].
    ///
    /// # Errors
    /// Its folder is used by another process or cannot be read; an embedder has no usable id or dimensions.
    pub fn open(
        options: CatalogOptions,
        source: Arc<dyn Source>,
        embedders: Vec<Arc<dyn Embedder>>,
        trust: Arc<dyn TrustScores>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, CatalogError> {
        Self::open_in_place_of(options, source, embedders, Vec::new(), trust, clock)
    }

    /// As [`Catalog::open`]; the vectors of `former` embedders, where there are any, serve until those of `embedders` are
    /// whole, and are then deleted.
    ///
    /// # Errors
    /// As [`Catalog::open`].
    #[expect(
        clippy::needless_pass_by_value,
        reason = "options are given away, as all else"
    )]
    pub fn open_in_place_of(
        options: CatalogOptions,
        source: Arc<dyn Source>,
        embedders: Vec<Arc<dyn Embedder>>,
        former: Vec<Arc<dyn Embedder>>,
        trust: Arc<dyn TrustScores>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, CatalogError> {
        let under = |name: &str| options.dir.as_deref().map(|dir| dir.join(name));
        let vectors_dir = under("vectors");
        let text = Arc::new(TextIndex::open(
            under("text").as_deref(),
            &TextOptions::default(),
        )?);
        let shelves = shelves(vectors_dir.as_deref(), embedders, text.applied())?;
        let is_wished =
            |former: &Arc<dyn Embedder>| shelves.iter().any(|shelf| shelf.space.id() == former.id());
        let former: Vec<_> = former.into_iter().filter(|former| !is_wished(former)).collect();
        let former = old_shelves(vectors_dir.as_deref(), former)?;
        let searches_at_once = std::thread::available_parallelism().map_or(2, |count| count.get().max(2));
        Ok(Arc::new(Self {
            standing: Standing::open(under("begun")),
            taking_up: Background::begin("catalog-text", TAKING_UP_STEPS)?,
            embedding: Background::begin("catalog-vectors", EMBEDDING_STEPS)?,
            finder: Arc::new(Finder::new(&options, Arc::clone(&text), trust)),
            asking: Asking::new(options.embed_timeout),
            source,
            clock,
            text,
            shelves,
            former: RwLock::new(former),
            vectors_dir,
            changed: Notify::new(),
            latest: AtomicU64::new(0),
            is_caught_up: AtomicBool::new(false),
            searching: Arc::new(Semaphore::new(searches_at_once)),
            waiting: Arc::new(Semaphore::new(SEARCHES_WAITING_MAX)),
        }))
    }

    /// Follows the source and embeds what it reads, until `stop` is there. Without it the catalog stays as it is.
    pub async fn run(self: Arc<Self>, stop: impl Future<Output = ()>) {
        let embedding = self.shelves.iter().map(|shelf| self.embed(shelf));
        let work = async {
            tokio::join!(self.follow(), futures_util::future::join_all(embedding));
        };
        tokio::select! {
            () = stop => {}
            () = work => {}
        }
    }

    /// The store changed: the catalog looks at once.
    pub fn nudge(&self) {
        self.changed.notify_one();
    }

    /// Finds listings.
    ///
    /// # Errors
    /// [`SearchError::Refused`] for what the caller must change: `parameter_invalid`, `cursor_invalid`; `unavailable` where
    /// too many search at once. [`SearchError::Failed`] where the index cannot be read.
    pub async fn search(&self, query: &Query) -> Result<Found, SearchError> {
        judge(query)?;
        let fingerprint = cursor::fingerprint(query);
        let open = |cursor: &String| cursor::open(cursor, &fingerprint, self.finder.cursor_key());
        let place = query.cursor.as_ref().map(open).transpose()?;
        let _waiting = self.waiting.try_acquire().map_err(|_full| busy())?;
        let mut query = query.clone();
        query.text = query.text.trim().to_owned();
        let meaning = if query.text.is_empty() {
            None
        } else {
            self.meaning(&query.text).await
        };
        let job = Job {
            query,
            fingerprint,
            place,
            meaning,
            now: self.clock.now(),
        };
        let Ok(permit) = Arc::clone(&self.searching).acquire_owned().await else {
            return Err(busy().into());
        };
        let finder = Arc::clone(&self.finder);
        blocking(move || {
            let _permit = permit;
            finder.find(&job)
        })
        .await?
    }

    /// How the listing of this id stands in this process.
    pub async fn state(&self, id: &str) -> EntryState {
        let (view, id) = (self.text.view(), id.to_owned());
        let shelves = self.serving();
        let now = self.clock.now();
        let look = move || {
            let number = view.number_of(&id)?;
            let entry = view.entry(number)?;
            let hash = passage_hash(&passage(&entry));
            Some(EntryState {
                indexed: true,
                embedded: !shelves.is_empty()
                    && shelves.iter().all(|shelf| shelf.space.hash(number) == Some(hash)),
                language: TextView::language_of(&entry),
                is_expired: entry.expires_at.is_some_and(|end| end <= now),
            })
        };
        blocking(look).await.ok().flatten().unwrap_or_default()
    }

    /// How far the catalog has come.
    pub fn stats(&self) -> CatalogStats {
        let (applied, latest) = (self.text.applied(), self.latest.load(Ordering::Acquire));
        let former = self.former.read().unwrap_or_else(PoisonError::into_inner).clone();
        let serving = self.serving();
        let is_serving = |shelf: &Arc<Shelf>| serving.iter().any(|other| Arc::ptr_eq(shelf, other));
        let spaces = self.shelves.iter().chain(&former);
        CatalogStats {
            documents: self.text.view().len(),
            applied_change: applied,
            latest_change: latest,
            behind_changes: latest.saturating_sub(applied),
            is_caught_up: self.is_caught_up(),
            pending_embeddings: self
                .shelves
                .iter()
                .map(|shelf| shelf.pending())
                .max()
                .unwrap_or(0),
            spaces: spaces.map(|shelf| shelf.stats(is_serving(shelf))).collect(),
        }
    }

    fn is_caught_up(&self) -> bool {
        self.is_caught_up.load(Ordering::Acquire)
    }

    /// The vectors of the query in every space that serves. None where no space can be asked.
    async fn meaning(&self, text: &str) -> Option<Vec<Asked>> {
        let shelves = self.serving();
        if shelves.is_empty() {
            return None;
        }
        let now = self.clock.now();
        let asked = shelves
            .into_iter()
            .filter(|shelf| !shelf.space.is_empty())
            .map(|shelf| async move {
                let vector = self.asking.vector(&shelf, text, now).await?;
                Some((shelf, vector))
            });
        let vectors: Vec<_> = futures_util::future::join_all(asked)
            .await
            .into_iter()
            .flatten()
            .collect();
        // With nothing to find, nothing is missing.
        let is_missing = vectors.is_empty() && !self.text.view().is_empty();
        (!is_missing).then_some(vectors)
    }

    /// The shelves that answer: those that are wished, once they are whole or where there is nothing else.
    fn serving(&self) -> Vec<Arc<Shelf>> {
        let former = self.former.read().unwrap_or_else(PoisonError::into_inner);
        if former.is_empty() {
            return self.shelves.clone();
        }
        let whole = self.shelves.iter().filter(|shelf| shelf.is_whole());
        former.iter().chain(whole).cloned().collect()
    }

    /// Lets go of former vectors once all that are wished are whole.
    async fn retire_former(&self) {
        if !self.shelves.iter().all(|shelf| shelf.is_whole()) {
            return;
        }
        self.former
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        let Some(dir) = self.vectors_dir.clone() else {
            return;
        };
        let shelves = self.shelves.clone();
        let forget = move || {
            let kept: Vec<&str> = shelves.iter().map(|shelf| shelf.space.id()).collect();
            if kept.is_empty() {
                Ok(())
            } else {
                Space::forget_others(&dir, &kept)
            }
        };
        if let Ok(Err(error)) = self.embedding.run(forget).await {
            tracing::warn!(%error, "The vectors of former embedders cannot be deleted");
        }
    }
}

fn shelves(
    dir: Option<&Path>,
    embedders: Vec<Arc<dyn Embedder>>,
    applied: u64,
) -> Result<Vec<Arc<Shelf>>, CatalogError> {
    let shelf = |embedder: Arc<dyn Embedder>| {
        let space = Space::open(dir, embedder.id(), embedder.dimensions())?;
        Ok(Arc::new(Shelf::new(space, embedder, applied)))
    };
    embedders.into_iter().map(shelf).collect()
}

/// The shelves of embedders that have vectors; no new ones are made for them.
fn old_shelves(
    dir: Option<&Path>,
    embedders: Vec<Arc<dyn Embedder>>,
) -> Result<Vec<Arc<Shelf>>, CatalogError> {
    let Some(dir) = dir else {
        return Ok(Vec::new());
    };
    let known = embedders
        .into_iter()
        .filter(|embedder| Space::is_in(dir, embedder.id()))
        .collect();
    let mut old = shelves(Some(dir), known, 0)?;
    old.retain(|shelf| !shelf.space.is_empty());
    Ok(old)
}

/// Runs what reads or writes files, or counts for long, on a thread for it.
async fn blocking<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Result<T, CatalogError> {
    let lost = |error: tokio::task::JoinError| CatalogError::Files(std::io::Error::other(error));
    tokio::task::spawn_blocking(act).await.map_err(lost)
}

fn judge(query: &Query) -> Result<(), Refusal> {
    let invalid = |name: &'static str, sentence: String| {
        Refusal::new(ErrorCode::ParameterInvalid, sentence).with("parameter", name)
    };
    if query.text.len() > QUERY_BYTES_MAX {
        return Err(invalid(
            "q",
            format!("The text is longer than {QUERY_BYTES_MAX} bytes."),
        ));
    }
    if query.limit == 0 || query.limit > PAGE_RESULTS_MAX {
        return Err(invalid("limit", format!("`limit` is 1 to {PAGE_RESULTS_MAX}.")));
    }
    if query
        .filter
        .trust_min
        .is_some_and(|trust| !(0.0..=1.0).contains(&trust))
    {
        return Err(invalid("trust_min", "`trust_min` is 0 to 1.".to_owned()));
    }
    Ok(())
}

fn busy() -> Refusal {
    Refusal::new(
        ErrorCode::Unavailable,
        "Too many searches at once: try again in a second.",
    )
    .retry_after(1)
}

#[cfg(test)]
mod tests;
