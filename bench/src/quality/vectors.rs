//! Vectors of texts, kept on disk by what they were made of: a second run embeds nothing.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use aip_catalog::catalog::passage_hash;
use aip_catalog::vectors::TextHash;
use aip_catalog::{Embedder, Purpose};
use anyhow::{Context as _, ensure};

/// Texts between two writings.
const AT_ONCE: usize = 256;

/// Texts from which progress is told.
const MANY: usize = 1_000;

/// A model, and what it said before.
pub(crate) struct Vectors {
    embedder: Box<dyn Embedder>,
    passages: Kept,
    queries: Kept,
}

impl Vectors {
    /// Reads what is kept in `dir`.
    pub(crate) fn open(dir: &Path, embedder: Box<dyn Embedder>) -> anyhow::Result<Self> {
        let kept = |kind: &str| {
            Kept::open(
                dir.join(format!("{}.{kind}", embedder.id())),
                embedder.dimensions(),
            )
        };
        Ok(Self {
            passages: kept("passages")?,
            queries: kept("queries")?,
            embedder,
        })
    }

    /// The model's id.
    pub(crate) fn id(&self) -> &str {
        self.embedder.id()
    }

    /// Numbers in each vector.
    pub(crate) fn dimensions(&self) -> usize {
        self.embedder.dimensions()
    }

    /// A vector for each text that is to be found.
    pub(crate) async fn of_passages(&mut self, texts: &[String]) -> anyhow::Result<Vec<Vec<f32>>> {
        self.passages
            .get(self.embedder.as_ref(), Purpose::Passage, texts)
            .await
    }

    /// A vector for each text that is looked for.
    pub(crate) async fn of_queries(&mut self, texts: &[String]) -> anyhow::Result<Vec<Vec<f32>>> {
        self.queries
            .get(self.embedder.as_ref(), Purpose::Query, texts)
            .await
    }
}

/// A file of records: the hash of a text, and its vector.
struct Kept {
    path: PathBuf,
    dimensions: usize,
    known: HashMap<TextHash, Vec<f32>>,
}

impl Kept {
    /// A record that was cut off is left out and written over.
    fn open(path: PathBuf, dimensions: usize) -> anyhow::Result<Self> {
        let bytes = if path.is_file() {
            fs::read(&path)?
        } else {
            Vec::new()
        };
        let record = size_of::<TextHash>() + 4 * dimensions;
        let mut known = HashMap::new();
        for record in bytes.chunks_exact(record) {
            if let Some((hash, numbers)) = record.split_first_chunk::<16>() {
                let numbers = numbers
                    .as_chunks::<4>()
                    .0
                    .iter()
                    .map(|four| f32::from_le_bytes(*four));
                known.insert(*hash, numbers.collect());
            }
        }
        Ok(Self {
            path,
            dimensions,
            known,
        })
    }

    async fn get(
        &mut self,
        embedder: &dyn Embedder,
        purpose: Purpose,
        texts: &[String],
    ) -> anyhow::Result<Vec<Vec<f32>>> {
        let hashes: Vec<TextHash> = texts.iter().map(|text| passage_hash(text)).collect();
        let mut missing: Vec<(TextHash, String)> = Vec::new();
        for (hash, text) in hashes.iter().zip(texts) {
            if !self.known.contains_key(hash) {
                missing.push((*hash, text.clone()));
            }
        }
        // Texts of about the same length go through a model best together.
        missing.sort_by_key(|(hash, text)| (text.len(), *hash));
        missing.dedup();
        self.embed(embedder, purpose, &missing).await?;
        let vectors = hashes
            .iter()
            .map(|hash| self.known.get(hash).cloned().unwrap_or_default());
        Ok(vectors.collect())
    }

    async fn embed(
        &mut self,
        embedder: &dyn Embedder,
        purpose: Purpose,
        missing: &[(TextHash, String)],
    ) -> anyhow::Result<()> {
        for (part, done) in missing.chunks(AT_ONCE).zip((0..).step_by(AT_ONCE)) {
            if missing.len() >= MANY {
                tell(&format!("{}: {done} of {} texts", embedder.id(), missing.len()));
            }
            let texts: Vec<String> = part.iter().map(|(_, text)| text.clone()).collect();
            let vectors = embedder.embed(purpose, &texts).await.context("embedding")?;
            ensure!(vectors.len() == texts.len(), "as many vectors as texts");
            for ((hash, _), vector) in part.iter().zip(vectors) {
                ensure!(
                    vector.len() == self.dimensions,
                    "vectors of {} numbers",
                    self.dimensions
                );
                self.known.insert(*hash, vector);
            }
            self.append(part)?;
        }
        Ok(())
    }

    fn append(&self, part: &[(TextHash, String)]) -> anyhow::Result<()> {
        let mut bytes = Vec::new();
        for (hash, vector) in part
            .iter()
            .filter_map(|(hash, _)| Some((hash, self.known.get(hash)?)))
        {
            bytes.extend_from_slice(hash);
            bytes.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
        }
        let record = u64::try_from(size_of::<TextHash>() + 4 * self.dimensions)?;
        let mut file = File::options().create(true).append(true).open(&self.path)?;
        let whole = file.metadata()?.len() / record * record;
        file.set_len(whole)?;
        Ok(file.write_all(&bytes)?)
    }
}

#[expect(
    clippy::print_stderr,
    reason = "progress is for whoever waits, the report is on stdout"
)]
fn tell(sentence: &str) {
    eprintln!("{sentence}");
}
