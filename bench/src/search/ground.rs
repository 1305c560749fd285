//! The catalog as the hub holds it: on disk, following a store, with the vectors of both models.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use aip_catalog::{
    Catalog, CatalogOptions, Change, Embedder, Found, Query, Source, SourceError, TrustScores,
};
use aip_protocol::clock::Clock;
use aip_protocol::fusion::Fusion;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use anyhow::ensure;
use async_trait::async_trait;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::bare;
use super::made::{Made, draw};
use super::meaning::Recombined;
use super::times::Times;
use crate::process::{Memory, memory};
use crate::report::{Bound, Row};

/// Places of each list that are fused, as the hub has it by default.
const DEPTH: usize = 200;

/// How long a catalog may take to be whole.
const PATIENCE: Duration = Duration::from_hours(1);

/// A store that makes its listings when it is asked for them: it takes no memory.
#[derive(Debug)]
pub(super) struct Store {
    made: Arc<Made>,
    latest: AtomicU64,
}

impl Store {
    /// What its listings are made of.
    pub(super) fn made(&self) -> &Made {
        &self.made
    }

    /// The last listing that is there.
    pub(super) fn latest(&self) -> u64 {
        self.latest.load(Ordering::Acquire)
    }

    /// All listings up to this one are there.
    pub(super) fn grow_to(&self, number: u64) {
        self.latest.fetch_max(number, Ordering::AcqRel);
    }
}

#[async_trait]
impl Source for Store {
    async fn changes(&self, seq: u64, limit: usize) -> Result<Vec<Change>, SourceError> {
        let most = seq.saturating_add(u64::try_from(limit).unwrap_or(u64::MAX));
        let numbers = seq.saturating_add(1)..=most.min(Store::latest(self));
        Ok(numbers.map(|number| self.made.change(number)).collect())
    }

    async fn latest(&self) -> Result<u64, SourceError> {
        Ok(Store::latest(self))
    }

    async fn complete_from(&self) -> Result<u64, SourceError> {
        Ok(0)
    }
}

/// Every agent has a trust of its own.
#[derive(Debug)]
struct Trust;

impl TrustScores for Trust {
    fn score(&self, agent: &Did) -> f64 {
        f64::from(u32::try_from(draw(&agent.as_str(), 1_000)).unwrap_or(0)) / 1_000.0
    }
}

/// The clock of this machine.
#[derive(Debug)]
struct Machine;

impl Clock for Machine {
    fn now(&self) -> Timestamp {
        crate::agents::now()
    }
}

/// A catalog that follows its store.
pub(super) struct Ground {
    pub(super) catalog: Arc<Catalog>,
    pub(super) store: Arc<Store>,
    stop: oneshot::Sender<()>,
    work: JoinHandle<()>,
    /// Listings that it took up before anything was measured, and how long that took.
    listings: u64,
    filled: Duration,
    before: Memory,
    after: Memory,
}

impl Ground {
    /// Opens the catalog with recombined vectors and waits until all listings are in it.
    pub(super) async fn open(
        dir: &Path,
        made: &Arc<Made>,
        embedders: &[Arc<Recombined>],
        listings: u64,
    ) -> anyhow::Result<Self> {
        let embedders = embedders
            .iter()
            .map(|embedder| Arc::clone(embedder) as Arc<dyn Embedder>)
            .collect();
        Self::open_with(dir, made, embedders, listings).await
    }

    /// The same with other embedders.
    pub(super) async fn open_with(
        dir: &Path,
        made: &Arc<Made>,
        embedders: Vec<Arc<dyn Embedder>>,
        listings: u64,
    ) -> anyhow::Result<Self> {
        let before = memory(std::process::id());
        let begun = Instant::now();
        let store = Arc::new(Store {
            made: Arc::clone(made),
            latest: AtomicU64::new(listings),
        });
        let options = CatalogOptions {
            dir: Some(dir.to_owned()),
            fusion: Fusion::default(),
            depth: DEPTH,
            cursor_key: [7; 32],
            embed_timeout: Duration::from_secs(1),
        };
        let source = Arc::clone(&store) as Arc<dyn Source>;
        let catalog = Catalog::open(options, source, embedders, Arc::new(Trust), Arc::new(Machine))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let work = tokio::spawn(Arc::clone(&catalog).run(async move {
            let _stopped = stopped.await;
        }));
        let mut ground = Self {
            catalog,
            store,
            stop,
            work,
            listings,
            filled: Duration::ZERO,
            before,
            after: before,
        };
        ground.settled().await?;
        ground.filled = begun.elapsed();
        ground.after = memory(std::process::id());
        Ok(ground)
    }

    /// Waits until everything that the store has is found by its text and by its meaning.
    pub(super) async fn settled(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        self.catalog.nudge();
        loop {
            let stats = self.catalog.stats();
            let is_whole = stats.is_caught_up
                && stats.applied_change == self.store.latest()
                && stats.pending_embeddings == 0;
            if is_whole {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < PATIENCE,
                "the catalog does not become whole: {stats:?}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// How long it took to take up all listings.
    pub(super) const fn filled(&self) -> Duration {
        self.filled
    }

    /// Finds the first page.
    pub(super) async fn search(&self, text: &str, limit: usize) -> anyhow::Result<Found> {
        let query = Query {
            text: text.to_owned(),
            limit: u32::try_from(limit)?,
            ..Query::default()
        };
        Ok(self.catalog.search(&query).await?)
    }

    /// Asks each query once.
    pub(super) async fn times(&self, texts: impl Iterator<Item = &str>) -> anyhow::Result<Times> {
        let mut times = Times::default();
        for text in texts {
            let begun = Instant::now();
            self.search(text, bare::TOP).await?;
            times.add(begun.elapsed());
        }
        Ok(times)
    }

    /// What filling it took, where it was empty.
    pub(super) fn rows(&self, bare: &bare::Index) -> anyhow::Result<Vec<Row>> {
        let count = f64::from(u32::try_from(self.listings)?);
        let (anonymous, file) = (
            1024.0 * (self.after.anonymous_kib - self.before.anonymous_kib) / count,
            1024.0 * (self.after.file_kib - self.before.file_kib) / count,
        );
        let mut rows = vec![Row {
            id: "memory",
            what: "bytes of memory per listing, vectors of both models",
            bound: Bound::Stated,
            rounds: vec![anonymous + file],
            figures: format!(
                "{anonymous:.0} its own, {file:.0} of files in the page cache; {:.0} MiB in all",
                (self.after.anonymous_kib + self.after.file_kib) / 1024.0
            ),
        }];
        if let Some(built) = bare.built {
            let (ours, theirs) = (count / self.filled.as_secs_f64(), count / built.as_secs_f64());
            rows.push(Row {
                id: "indexing",
                what: "listings indexed, vectors given / bare tantivy, no vectors",
                bound: Bound::Stated,
                rounds: vec![ours / theirs],
                figures: format!("{ours:.0}/s, {theirs:.0}/s"),
            });
        }
        Ok(rows)
    }

    /// Stops it.
    pub(super) async fn close(self) {
        // Fails only when it is gone already.
        let _gone = self.stop.send(());
        let _ended = self.work.await;
    }
}
