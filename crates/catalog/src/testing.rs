//! What tests of the catalog work with: a store in memory, an embedder of words, trust that can be set.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aip_protocol::clock::{Clock, ManualClock};
use aip_protocol::fusion::Fusion;
use aip_protocol::listing::ListingKind;
use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;
use async_trait::async_trait;
use sha2::{Digest as _, Sha256};

use crate::catalog::{Catalog, CatalogOptions, Found};
use crate::embedder::{EmbedError, Embedder, Purpose};
use crate::entry::Entry;
use crate::query::Query;
use crate::source::{Change, Source, SourceError};
use crate::trust::TrustScores;
use crate::vectors::PROBES;

/// The beginning of every test.
pub(crate) fn start() -> Timestamp {
    Timestamp::parse("2026-11-29T20:15:30Z").unwrap()
}

pub(crate) fn did(name: &str) -> Did {
    Did::parse(&format!("did:aip:hub.example:{name}")).unwrap()
}

/// The id of the listing of this number: the order of ids is not that of numbers.
pub(crate) fn id(number: u64) -> String {
    format!("lst_{:02}_{number}", number * 37 % 89)
}

pub(crate) fn entry(number: u64, name: &str) -> Entry {
    Entry {
        id: id(number),
        number,
        agent: did(&format!("agent{}", number % 5)),
        source_hub: Domain::parse("hub.example").unwrap(),
        kind: ListingKind::Product,
        name: name.to_owned(),
        description: String::new(),
        lang: Some("en".to_owned()),
        tags: Vec::new(),
        category: None,
        brand: None,
        price_text: None,
        currency: None,
        available: None,
        attributes: BTreeMap::new(),
        created_at: start(),
        updated_at: start(),
        expires_at: None,
    }
}

pub(crate) fn query(text: &str) -> Query {
    Query {
        text: text.to_owned(),
        limit: 20,
        ..Query::default()
    }
}

pub(crate) fn numbers(found: &Found) -> Vec<u64> {
    found.items.iter().map(|item| item.entry.number).collect()
}

#[derive(Debug, Default)]
struct Kept {
    rows: BTreeMap<u64, Change>,
    seq: u64,
    complete_from: u64,
}

/// A store of listings in memory.
#[derive(Debug, Default)]
pub(crate) struct Store {
    kept: Mutex<Kept>,
    pub(crate) is_down: AtomicBool,
    /// It forgets what was deleted just before it next tells its changes.
    pub(crate) forgets: AtomicBool,
}

impl Store {
    pub(crate) fn put(&self, entry: Entry) {
        self.change(entry.number, Some(entry));
    }

    pub(crate) fn delete(&self, number: u64) {
        self.change(number, None);
    }

    fn change(&self, number: u64, entry: Option<Entry>) {
        let mut kept = self.kept.lock().unwrap();
        kept.seq += 1;
        let seq = kept.seq;
        kept.rows.insert(number, Change { seq, number, entry });
    }

    /// Forgets what was deleted.
    pub(crate) fn forget(&self) {
        let mut kept = self.kept.lock().unwrap();
        kept.rows.retain(|_, change| change.entry.is_some());
        kept.complete_from = kept.seq;
    }

    /// Becomes what it was when it had so many changes, as a store that is restored.
    pub(crate) fn go_back_to(&self, seq: u64) {
        let mut kept = self.kept.lock().unwrap();
        kept.rows.retain(|_, change| change.seq <= seq);
        kept.seq = seq;
    }

    pub(crate) fn live(&self) -> BTreeMap<u64, Entry> {
        let kept = self.kept.lock().unwrap();
        kept.rows
            .iter()
            .filter_map(|(number, change)| Some((*number, change.entry.clone()?)))
            .collect()
    }
}

#[async_trait]
impl Source for Store {
    async fn changes(&self, seq: u64, limit: usize) -> Result<Vec<Change>, SourceError> {
        if self.is_down.load(Ordering::SeqCst) {
            return Err(SourceError("down".to_owned()));
        }
        if self.forgets.swap(false, Ordering::SeqCst) {
            self.forget();
        }
        let kept = self.kept.lock().unwrap();
        let mut changes: Vec<Change> = kept
            .rows
            .values()
            .filter(|change| change.seq > seq)
            .cloned()
            .collect();
        changes.sort_by_key(|change| change.seq);
        changes.truncate(limit);
        Ok(changes)
    }

    async fn latest(&self) -> Result<u64, SourceError> {
        Ok(self.kept.lock().unwrap().seq)
    }

    async fn complete_from(&self) -> Result<u64, SourceError> {
        Ok(self.kept.lock().unwrap().complete_from)
    }
}

/// Words of other languages and what they mean.
const MEANS: &[(&str, &str)] = &[
    ("лампа", "lamp"),
    ("lampe", "lamp"),
    ("light", "lamp"),
    ("voiture", "car"),
    ("automobile", "car"),
    ("машина", "car"),
];

/// Embeds a text as the sum of its words' vectors: texts that share words, or their meaning, are near. One that says
/// `unspeakable` is refused, and all that come with it.
#[derive(Debug)]
pub(crate) struct Words {
    id: String,
    dimensions: usize,
    pub(crate) is_down: AtomicBool,
    pub(crate) hangs: AtomicBool,
    /// A call hangs, or did.
    pub(crate) hung: AtomicBool,
    pub(crate) passages: AtomicUsize,
    pub(crate) queries: AtomicUsize,
    pub(crate) seen: Mutex<Vec<String>>,
}

impl Words {
    pub(crate) fn new(id: &str) -> Arc<Self> {
        Arc::new(Self {
            id: id.to_owned(),
            dimensions: 48,
            is_down: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            hung: AtomicBool::new(false),
            passages: AtomicUsize::new(0),
            queries: AtomicUsize::new(0),
            seen: Mutex::new(Vec::new()),
        })
    }

    pub(crate) fn passages(&self) -> usize {
        self.passages.load(Ordering::SeqCst)
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut sum = vec![0.0_f32; self.dimensions];
        for word in text
            .to_lowercase()
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
        {
            let word = MEANS
                .iter()
                .find(|(from, _)| *from == word)
                .map_or(word, |(_, to)| to);
            for (at, part) in sum.iter_mut().enumerate() {
                let digest = Sha256::digest(format!("{} {word} {}", self.id, at / 32));
                *part += f32::from(digest[at % 32]) / 128.0 - 1.0;
            }
        }
        let length = sum.iter().map(|part| part * part).sum::<f32>().sqrt();
        if length > 0.0 {
            for part in &mut sum {
                *part /= length;
            }
        }
        sum
    }
}

#[async_trait]
impl Embedder for Words {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn batch_max(&self) -> usize {
        8
    }

    async fn embed(&self, purpose: Purpose, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        while self.hangs.load(Ordering::SeqCst) {
            self.hung.store(true, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        if self.is_down.load(Ordering::SeqCst) {
            return Err(EmbedError::Unavailable("down".to_owned()));
        }
        if texts.iter().any(|text| text.contains("unspeakable")) {
            return Err(EmbedError::Broken("a text is refused".to_owned()));
        }
        let count = match purpose {
            Purpose::Passage => &self.passages,
            Purpose::Query => &self.queries,
        };
        let asked: Vec<String> = texts
            .iter()
            .filter(|text| !PROBES.iter().any(|probe| text.starts_with(probe)))
            .cloned()
            .collect();
        count.fetch_add(asked.len(), Ordering::SeqCst);
        self.seen.lock().unwrap().extend(asked);
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}

/// Trust that can be set, by agent.
#[derive(Debug, Default)]
pub(crate) struct Trust(Mutex<HashMap<Did, f64>>);

impl Trust {
    pub(crate) fn set(&self, agent: &Did, score: f64) {
        self.0.lock().unwrap().insert(agent.clone(), score);
    }
}

impl TrustScores for Trust {
    fn score(&self, agent: &Did) -> f64 {
        self.0.lock().unwrap().get(agent).copied().unwrap_or(0.0)
    }
}

/// A catalog that can be stopped at any moment and opened again.
pub(crate) struct Rig {
    pub(crate) store: Arc<Store>,
    pub(crate) embedders: Vec<Arc<Words>>,
    pub(crate) former: Vec<Arc<Words>>,
    pub(crate) trust: Arc<Trust>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) embed_timeout: Duration,
    pub(crate) cursor_key: [u8; 32],
    dir: Option<tempfile::TempDir>,
}

impl Rig {
    pub(crate) fn in_memory() -> Self {
        Self {
            store: Arc::default(),
            embedders: vec![Words::new("words-1")],
            former: Vec::new(),
            trust: Arc::default(),
            clock: Arc::new(ManualClock::new(start())),
            embed_timeout: Duration::from_secs(20),
            cursor_key: [7; 32],
            dir: None,
        }
    }

    pub(crate) fn on_disk() -> Self {
        Self {
            dir: Some(tempfile::tempdir().unwrap()),
            ..Self::in_memory()
        }
    }

    /// Without a list by meaning.
    pub(crate) fn without_meaning() -> Self {
        Self {
            embedders: Vec::new(),
            ..Self::in_memory()
        }
    }

    pub(crate) fn with(entries: impl IntoIterator<Item = Entry>) -> Self {
        let rig = Self::in_memory();
        entries.into_iter().for_each(|entry| rig.store.put(entry));
        rig
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.dir.as_ref().unwrap().path().join("index")
    }

    /// Opens the catalog; nothing is followed yet.
    pub(crate) async fn open(&self) -> Arc<Catalog> {
        let plain = |words: &[Arc<Words>]| {
            words
                .iter()
                .map(|words| Arc::clone(words) as Arc<dyn Embedder>)
                .collect()
        };
        loop {
            let options = CatalogOptions {
                dir: self.dir.as_ref().map(|_| self.dir()),
                fusion: Fusion::default(),
                depth: 200,
                cursor_key: self.cursor_key,
                embed_timeout: self.embed_timeout,
            };
            let opened = Catalog::open_in_place_of(
                options,
                Arc::clone(&self.store) as Arc<dyn Source>,
                plain(&self.embedders),
                plain(&self.former),
                Arc::clone(&self.trust) as Arc<dyn TrustScores>,
                Arc::clone(&self.clock) as Arc<dyn Clock>,
            );
            match opened {
                Ok(catalog) => return catalog,
                // What a stopped catalog had on its threads may still end.
                Err(error) if error.to_string().contains("another process") => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub(crate) async fn run(&self) -> Running {
        let catalog = self.open().await;
        let task = tokio::spawn(Arc::clone(&catalog).run(std::future::pending()));
        Running { catalog, task }
    }

    /// Runs, and has taken up and embedded all that the store holds.
    pub(crate) async fn ready(&self) -> Running {
        let running = self.run().await;
        running.settled(&self.store).await;
        running
    }
}

/// A catalog that follows its store.
pub(crate) struct Running {
    pub(crate) catalog: Arc<Catalog>,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    /// Waits until everything that the store holds is indexed and embedded.
    pub(crate) async fn settled(&self, store: &Store) {
        self.catalog.nudge();
        self.until(|stats| {
            let seq = store.kept.lock().unwrap().seq;
            stats.is_caught_up && stats.applied_change == seq && stats.pending_embeddings == 0
        })
        .await;
    }

    /// Waits until the catalog says so of itself.
    pub(crate) async fn until(&self, holds: impl Fn(&crate::catalog::CatalogStats) -> bool) {
        eventually(&format!("{:?}", self.catalog.stats()), || {
            holds(&self.catalog.stats())
        })
        .await;
    }

    /// Ends it wherever it is.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ended = self.task.await;
    }

    pub(crate) async fn find(&self, query: &Query) -> Found {
        self.catalog.search(query).await.unwrap()
    }

    /// Every page of a search, one after the other.
    pub(crate) async fn pages(&self, query: &Query) -> Vec<Found> {
        let mut query = query.clone();
        let mut pages = Vec::new();
        loop {
            let page = self.find(&query).await;
            query.cursor.clone_from(&page.next_cursor);
            pages.push(page);
            if query.cursor.is_none() {
                return pages;
            }
        }
    }
}

/// Waits until something holds.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_mins(1), wait).await.is_ok(),
        "never came: {what}"
    );
}
