//! How fast the catalog finds, takes up and holds listings, against what its parts cost alone in the same run.
//!
//! Yardsticks: a bare tantivy index of the same listings, a bare scan of the same vectors, the models alone, and
//! `aimarket-hub`. Everything runs on one core. Listings are made from the real sets, their vectors recombined from real
//! ones, so that a million of them needs no million runs of a model; models themselves run where they are what is measured.

mod aimarket;
mod bare;
mod fresh;
mod ground;
mod indexing;
mod made;
mod meaning;
mod queries;
mod quick;
mod times;
mod vectors;
mod writing;

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::json;

use self::ground::Ground;
use self::made::Made;
use self::meaning::Recombined;
use self::queries::Asked;
use crate::report::Row;

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The folder of the sets, as `quality` takes it.
    #[arg(long)]
    data: PathBuf,
    /// Prints JSON instead of lines.
    #[arg(long)]
    json: bool,
    /// How many listings; several numbers are measured one after the other.
    #[arg(long, value_delimiter = ',', default_value = "100000")]
    listings: Vec<u64>,
    /// Only these: P14, P15, writing, indexing, memory, aimarket; the last one only where it is named.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Rounds of what is measured in turns.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Queries of one round.
    #[arg(long, default_value_t = 1_000)]
    queries: usize,
    /// Seconds of load per side and round.
    #[arg(long, default_value_t = 10.0)]
    secs: f64,
    /// The core that everything runs on.
    #[arg(long, default_value_t = 0)]
    core: usize,
    /// Documents of the sets that a model embeds; the vectors of all listings are made of theirs.
    #[arg(long, default_value_t = 2_000)]
    embedded: usize,
    /// Where vectors are kept from run to run; in the system's temporary folder by default.
    #[arg(long)]
    cache: Option<PathBuf>,
    /// Keeps the indexes in this folder and takes up those that are there. Then what indexing costs is not measured.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// The Python that `aimarket-hub` is installed for, into a temporary folder, with pip.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
}

/// A row, and how many listings it is about.
#[derive(Debug)]
struct Measured {
    listings: u64,
    row: Row,
}

/// Measures and prints.
pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    let made = Arc::new(Made::read(&options.data)?);
    let asked = queries::read(&options.data, options.queries)?;
    ensure!(!asked.is_empty(), "no query in {}", options.data.display());
    let mut all = Vec::new();
    let needs_ground = options.wants(&["P14", "P15", "writing", "memory"]);
    if needs_ground || options.wants(&["indexing"]) {
        // Models embed with all cores; what is measured, with one.
        let embedders = meaning::recombined(options, &made, &asked).await?;
        pin(options.core)?;
        for listings in options.listings.iter().filter(|_| needs_ground) {
            at_size(options, &made, &asked, &embedders, *listings, &mut all).await?;
        }
    } else {
        pin(options.core)?;
    }
    if options.wants(&["indexing"]) {
        report(
            options,
            &mut all,
            indexing::LISTINGS,
            indexing::measure(options, &made).await?,
        );
    }
    if options.only.iter().any(|id| id == "aimarket") {
        for listings in aimarket::LISTINGS {
            let rows = aimarket::measure(options, &made, &asked, listings).await?;
            report(options, &mut all, listings, rows);
        }
    }
    if options.json {
        let rows: Vec<_> = all.iter().map(Measured::json).collect();
        println!("{}", serde_json::to_string_pretty(&rows)?);
    }
    Ok(())
}

/// What hangs on the number of listings.
async fn at_size(
    options: &Options,
    made: &Arc<Made>,
    asked: &[Asked],
    embedders: &[Arc<Recombined>],
    listings: u64,
    all: &mut Vec<Measured>,
) -> anyhow::Result<()> {
    let scratch = tempfile::tempdir()?;
    let dir = options.folder.as_ref().map_or_else(
        || scratch.path().to_owned(),
        |folder| folder.join(listings.to_string()),
    );
    let bare = bare::Index::open(&dir.join("bare"), made, listings)?;
    let ground = Ground::open(&dir.join("catalog"), made, embedders, listings).await?;
    if options.wants(&["memory", "indexing"]) {
        report(options, all, listings, ground.rows(&bare)?);
    }
    if options.wants(&["P14"]) {
        let rows = quick::measure(options, &ground, &bare, embedders, asked).await?;
        report(options, all, listings, rows);
    }
    if options.wants(&["writing"]) {
        report(
            options,
            all,
            listings,
            writing::measure(options, &ground, asked).await?,
        );
    }
    if options.wants(&["P15"]) {
        report(
            options,
            all,
            listings,
            fresh::measure(options, &ground, bare).await?,
        );
    }
    ground.close().await;
    Ok(())
}

fn report(options: &Options, all: &mut Vec<Measured>, listings: u64, rows: Vec<Row>) {
    for row in rows {
        if !options.json {
            print!("{listings:>9} ");
            row.print();
        }
        all.push(Measured { listings, row });
    }
}

impl Measured {
    fn json(&self) -> serde_json::Value {
        let row = &self.row;
        json!({
            "listings": self.listings, "id": row.id, "what": row.what, "wanted": row.bound.to_string(),
            "met": row.met(), "median": row.median(), "rounds": row.rounds, "figures": row.figures,
        })
    }
}

impl Options {
    fn wants(&self, ids: &[&str]) -> bool {
        self.only.is_empty() || self.only.iter().any(|id| ids.contains(&id.as_str()))
    }

    fn secs(&self) -> Duration {
        Duration::from_secs_f64(self.secs)
    }
}

/// Everything that this process does, and what it starts, runs on one core from here on.
fn pin(core: usize) -> anyhow::Result<()> {
    let pid = std::process::id().to_string();
    let done = Command::new("taskset")
        .args(["-a", "-p", "-c", &core.to_string(), &pid])
        .output()
        .context("`taskset` of util-linux is needed, so that all sides have the same one core")?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}
