//! The goals of docs/PERFORMANCE.md, each measured against its yardstick in alternating rounds.

mod accept;
mod drain;
mod idle;
mod names;
mod nostr;
mod sockets;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tempfile::TempDir;

use crate::report::Row;

/// What to measure, and for how long.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Rounds of each goal.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of load per side and round.
    #[arg(long, default_value_t = 2.0)]
    secs: f64,
    /// Only these goals, separated by commas (P1,P7).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// The `nats-server` program; found on the path by default.
    #[arg(long)]
    nats: Option<PathBuf>,
    /// The `nostr-rs-relay` program; found on the path by default.
    #[arg(long)]
    nostr: Option<PathBuf>,
    /// Where the stores lie: the disk that is measured. The system's temporary folder by default.
    #[arg(long)]
    folder: Option<PathBuf>,
}

impl Options {
    fn secs(&self) -> Duration {
        Duration::from_secs_f64(self.secs)
    }

    fn wants(&self, ids: &[&str]) -> bool {
        self.only.is_empty() || self.only.iter().any(|id| ids.contains(&id.as_str()))
    }

    fn scratch(&self) -> anyhow::Result<TempDir> {
        Ok(match &self.folder {
            Some(folder) => {
                std::fs::create_dir_all(folder)?;
                tempfile::tempdir_in(folder)?
            }
            None => tempfile::tempdir()?,
        })
    }
}

/// The signing key that all agents of the benchmark share, so that the straw man can know it.
const KEY: [u8; 32] = [7; 32];

/// Runs the goals and prints the report as it grows.
pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    let mut report = |new: Vec<Row>| {
        for row in &new {
            row.print();
        }
        rows.extend(new);
    };
    if options.wants(&["P1", "P2", "P3", "P5", "P6", "P18"]) {
        report(accept::measure(options).await?);
    }
    if options.wants(&["P7"]) {
        report(drain::measure(options).await?);
    }
    if options.wants(&["P9", "P10"]) {
        report(sockets::measure(options).await?);
    }
    if options.wants(&["P11", "P12", "P13"]) {
        report(names::measure(options).await?);
    }
    if options.wants(&["P16"]) {
        report(nostr::measure(options).await?);
    }
    if options.wants(&["idle"]) {
        report(idle::measure(options).await?);
    }
    let missed = rows.iter().filter(|row| !row.met()).count();
    println!(
        "{} goals measured, {} met, {missed} missed",
        rows.len(),
        rows.len() - missed
    );
    Ok(())
}
