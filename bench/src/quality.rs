//! How well the catalog finds: full text alone, meaning alone, and both fused, on sets of judged queries.
//!
//! It runs what the hub runs: the same index, the same models, the same ranking, the same formula. Only the store and the
//! trust are left out. What is in a set and how it is judged: docs/SEARCH.md.

pub(crate) mod corpus;
mod measure;
mod report;
mod search;
pub(crate) mod sets;
pub(crate) mod vectors;

use std::path::PathBuf;

use aip_embed::{LocalEmbedder, LocalOptions, bundled};
use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};

use self::measure::{Figures, Judged};
use self::search::Shelves;
use self::sets::Run;
use self::vectors::Vectors;

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The folder of the sets: one folder each, with `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`.
    #[arg(long)]
    data: PathBuf,
    /// Prints JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Only these sets, separated by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Which models make up the semantic list.
    #[arg(long, value_enum, default_value_t = Models::Both)]
    models: Models,
    /// At most so many queries of each set, evenly spread.
    #[arg(long)]
    queries_max: Option<usize>,
    /// Where vectors are kept from run to run; in the system's temporary folder by default.
    #[arg(long)]
    cache: Option<PathBuf>,
}

/// The models that ship.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Models {
    /// As the hub runs them.
    Both,
    /// multilingual-e5-small alone.
    E5,
    /// The universal sentence encoder alone.
    Universal,
    /// Full text only.
    None,
}

/// One line of the report.
#[derive(Debug)]
pub(crate) struct Row {
    /// The set, with the form of its queries where it has several.
    pub(crate) set: String,
    /// Judged queries.
    pub(crate) queries: usize,
    pub(crate) fts: Figures,
    /// None where no model ran.
    pub(crate) semantic: Option<Figures>,
    pub(crate) fused: Figures,
}

/// Measures and prints.
pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    let runs = sets::read(&options.data, &options.only)?;
    ensure!(!runs.is_empty(), "no set in {}", options.data.display());
    let mut vectors = options.vectors()?;
    let mut rows = Vec::new();
    let mut open: Option<(PathBuf, Shelves)> = None;
    for run in &runs {
        if open.as_ref().is_none_or(|(corpus, _)| *corpus != run.corpus) {
            let entries = corpus::read(&run.corpus).with_context(|| format!("{}", run.corpus.display()))?;
            open = Some((run.corpus.clone(), Shelves::fill(&entries, &mut vectors).await?));
        }
        if let Some((_, shelves)) = &open {
            rows.push(measure_set(run, shelves, &mut vectors, options.queries_max).await?);
        }
    }
    rows.sort_by(|a, b| a.set.cmp(&b.set));
    if options.json {
        return report::json(&rows);
    }
    report::table(&rows);
    Ok(())
}

impl Options {
    fn vectors(&self) -> anyhow::Result<Vec<Vectors>> {
        let dir = self
            .cache
            .clone()
            .unwrap_or_else(|| std::env::temp_dir().join("aip-bench-vectors"));
        std::fs::create_dir_all(&dir).with_context(|| format!("{}", dir.display()))?;
        let mut vectors = Vec::new();
        if matches!(self.models, Models::Both | Models::E5) {
            let embedder = LocalEmbedder::e5(bundled::e5(), LocalOptions::default());
            vectors.push(Vectors::open(&dir, Box::new(embedder))?);
        }
        if matches!(self.models, Models::Both | Models::Universal) {
            let embedder = LocalEmbedder::universal(bundled::universal(), LocalOptions::default());
            vectors.push(Vectors::open(&dir, Box::new(embedder))?);
        }
        Ok(vectors)
    }
}

async fn measure_set(
    run: &Run,
    shelves: &Shelves,
    vectors: &mut [Vectors],
    queries_max: Option<usize>,
) -> anyhow::Result<Row> {
    let queries = spread(&run.queries, queries_max.unwrap_or(usize::MAX));
    let texts: Vec<String> = queries.iter().map(|query| query.text.clone()).collect();
    let mut asked = Vec::new();
    for vectors in vectors {
        asked.push(vectors.of_queries(&texts).await?);
    }
    let (mut fts, mut semantic, mut fused) = (Judged::default(), Judged::default(), Judged::default());
    for (place, query) in queries.iter().enumerate() {
        let of_query: Vec<&[f32]> = asked
            .iter()
            .filter_map(|vectors| vectors.get(place).map(Vec::as_slice))
            .collect();
        let found = shelves.find(&query.text, &of_query)?;
        fts.add(&found.fts, &query.grades);
        semantic.add(&found.semantic, &query.grades);
        fused.add(&found.fused, &query.grades);
    }
    Ok(Row {
        set: run.name.clone(),
        queries: queries.len(),
        fts: fts.figures(),
        semantic: (!asked.is_empty()).then(|| semantic.figures()),
        fused: fused.figures(),
    })
}

/// At most `most` of them, evenly spread.
pub(crate) fn spread<T>(all: &[T], most: usize) -> Vec<&T> {
    let step = all.len().div_ceil(most.max(1)).max(1);
    all.iter().step_by(step).collect()
}
