//! Vectors without a model: recombined from real ones.
//!
//! A made listing consists of lines of documents. Its vector is the mean of the real vectors of those documents, moved a
//! little along the difference of two others, so that listings lie about as densely as real ones do and no two coincide.

use std::collections::HashMap;
use std::sync::Arc;

use aip_catalog::catalog::passage;
use aip_catalog::vectors::PROBES;
use aip_catalog::{EmbedError, Embedder, Purpose};
use aip_embed::{LocalEmbedder, LocalOptions, bundled};
use anyhow::Context as _;
use async_trait::async_trait;

use super::Options;
use super::made::{Made, draw, mixed};
use super::queries::Asked;
use crate::quality::spread;
use crate::quality::vectors::Vectors;

/// How far a vector is moved.
const MOVED: f32 = 0.4;

/// An embedder that knows the vectors of some texts.
pub(super) struct Recombined {
    id: String,
    dimensions: usize,
    /// Of documents.
    real: Vec<Vec<f32>>,
    /// Which of them stands for a line, by its hash.
    lines: HashMap<u64, usize>,
    queries: HashMap<String, Arc<Vec<f32>>>,
    probes: HashMap<String, Vec<f32>>,
}

impl std::fmt::Debug for Recombined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recombined")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The models that ship.
pub(super) fn models() -> [LocalEmbedder; 2] {
    let options = LocalOptions::default();
    [
        LocalEmbedder::universal(bundled::universal(), options),
        LocalEmbedder::e5(bundled::e5(), options),
    ]
}

/// One for each model that ships. The models run for what is not kept from an earlier run.
pub(super) async fn recombined(
    options: &Options,
    made: &Made,
    asked: &[Asked],
) -> anyhow::Result<Vec<Arc<Recombined>>> {
    let dir = options
        .cache
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join("aip-bench-search-vectors"));
    std::fs::create_dir_all(&dir).with_context(|| format!("{}", dir.display()))?;
    let mut all = Vec::new();
    for model in models() {
        let mut vectors = Vectors::open(&dir, Box::new(model))?;
        all.push(Arc::new(
            Recombined::new(options, made, asked, &mut vectors).await?,
        ));
    }
    Ok(all)
}

impl Recombined {
    async fn new(
        options: &Options,
        made: &Made,
        asked: &[Asked],
        vectors: &mut Vectors,
    ) -> anyhow::Result<Self> {
        let documents: Vec<_> = made.documents().collect();
        let texts: Vec<String> = spread(&documents, options.embedded)
            .into_iter()
            .map(|entry| passage(entry))
            .collect();
        let real = vectors.of_passages(&texts).await?;
        let mut lines = HashMap::new();
        for (place, entry) in documents.iter().enumerate() {
            // A document that was not embedded has the vector of one before it in its set.
            let stands_for = place * real.len() / documents.len();
            lines.insert(mixed(&entry.name), stands_for);
            lines.insert(mixed(&entry.description), stands_for);
        }
        let whole: Vec<String> = asked.iter().map(|asked| asked.whole.clone()).collect();
        let mut queries = HashMap::new();
        for (asked, vector) in asked.iter().zip(vectors.of_queries(&whole).await?) {
            let vector = Arc::new(vector);
            queries.insert(asked.three.clone(), Arc::clone(&vector));
            queries.insert(asked.whole.clone(), vector);
        }
        let texts: Vec<String> = PROBES.iter().map(|probe| (*probe).to_owned()).collect();
        let probes = vectors.of_passages(&texts).await?;
        Ok(Self {
            id: format!("recombined-{}", vectors.id()),
            dimensions: vectors.dimensions(),
            real,
            lines,
            queries,
            probes: texts.into_iter().zip(probes).collect(),
        })
    }

    /// The vectors that tell where all lie.
    pub(super) fn probes(&self) -> impl Iterator<Item = &[f32]> {
        self.probes.values().map(Vec::as_slice)
    }

    /// The vector of a query that is known.
    pub(super) fn query(&self, text: &str) -> Option<&[f32]> {
        self.queries.get(text).map(|vector| vector.as_slice())
    }

    /// The vector of a listing's text.
    pub(super) fn passage(&self, text: &str) -> Vec<f32> {
        let mut sum = vec![0.0_f32; self.dimensions];
        let mut add = |vector: Option<&Vec<f32>>, weight: f32| {
            for (sum, part) in sum.iter_mut().zip(vector.into_iter().flatten()) {
                *sum += weight * part;
            }
        };
        let mut count = 0.0;
        for line in text.lines() {
            if let Some(place) = self.lines.get(&mixed(line)) {
                add(self.real.get(*place), 1.0);
                count += 1.0;
            }
        }
        let weight = MOVED * f32::max(count, 1.0);
        let other = |salt: &str| self.real.get(draw(&(text, salt), self.real.len()));
        add(other("to"), weight);
        add(other("from"), -weight);
        let length = sum.iter().map(|part| part * part).sum::<f32>().sqrt();
        for part in &mut sum {
            *part /= length.max(f32::MIN_POSITIVE);
        }
        sum
    }
}

#[async_trait]
impl Embedder for Recombined {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn batch_max(&self) -> usize {
        256
    }

    async fn embed(&self, purpose: Purpose, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let vector = |text: &String| match purpose {
            Purpose::Query => self.query(text).map(<[f32]>::to_vec),
            Purpose::Passage => self
                .probes
                .get(text)
                .cloned()
                .or_else(|| Some(self.passage(text))),
        };
        let vectors: Option<Vec<_>> = texts.iter().map(vector).collect();
        vectors.ok_or_else(|| EmbedError::Broken("no vector of this text is known".to_owned()))
    }
}
