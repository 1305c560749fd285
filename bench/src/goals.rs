//! The goals of docs/PERFORMANCE.md, each measured against its yardstick in alternating rounds.

mod accept;
mod disturbed;
mod drain;
mod idle;
mod invoke;
mod names;
mod nats;
mod nostr;
mod peers;
mod postgres;
mod reads;
mod reconnect;
mod scale;
mod sockets;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tempfile::TempDir;

use crate::report::Row;

/// What to measure, and for how long.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// A short form for trying: two rounds of one second, and a tenth of the mailboxes.
    #[arg(long)]
    quick: bool,
    /// Rounds of each goal.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of load per side and round.
    #[arg(long, default_value_t = 2.0)]
    secs: f64,
    /// Only these goals, separated by commas (P1,P7,scale,reconnect,invoke,invoke-aimarket).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// The Python that `aimarket-hub` is installed for with pip, into a temporary folder; only where it is asked for.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// The `nostr-rs-relay` program; found on the path by default.
    #[arg(long)]
    nostr: Option<PathBuf>,
    /// Where hubs and straw men keep their data. By default the system's temporary folder, which is also where the
    /// engines keep theirs: name the disk that is to be measured in `TMPDIR`.
    #[arg(long)]
    folder: Option<PathBuf>,
}

impl Options {
    fn rounds(&self) -> usize {
        if self.quick {
            self.rounds.min(2)
        } else {
            self.rounds
        }
    }

    fn secs(&self) -> Duration {
        let secs = if self.quick { self.secs.min(1.0) } else { self.secs };
        Duration::from_secs_f64(secs)
    }

    fn wants(&self, ids: &[&str]) -> bool {
        self.only.is_empty() || self.only.iter().any(|id| ids.contains(&id.as_str()))
    }

    /// Whether it was named: what needs more than this machine is not measured otherwise.
    fn asks_for(&self, id: &str) -> bool {
        self.only.iter().any(|named| named == id)
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
    of_mail(options, &mut report).await?;
    of_several(options, &mut report).await?;
    if options.wants(&["invoke", "invoke-aimarket"]) {
        report(Box::pin(invoke::measure(options)).await?);
    }
    let missed = rows.iter().filter(|row| !row.met()).count();
    println!(
        "{} goals measured, {} met, {missed} missed",
        rows.len(),
        rows.len() - missed
    );
    Ok(())
}

/// One hub and its mail.
async fn of_mail(options: &Options, report: &mut impl FnMut(Vec<Row>)) -> anyhow::Result<()> {
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
    Ok(())
}

/// A hub on engines, and several hubs.
async fn of_several(options: &Options, report: &mut impl FnMut(Vec<Row>)) -> anyhow::Result<()> {
    if options.wants(&["P4"]) {
        report(nats::measure(options).await?);
    }
    if options.wants(&["P8"]) {
        report(reads::measure(options).await?);
    }
    if options.wants(&["P13"]) {
        report(postgres::measure(options).await?);
    }
    if options.wants(&["scale"]) {
        report(scale::measure(options).await?);
    }
    if options.wants(&["reconnect"]) {
        report(reconnect::measure(options).await?);
    }
    if options.wants(&[
        "peers-0",
        "peers-50",
        "peers-300",
        "peers-heal",
        "peers-dead",
        "peers-idle",
    ]) {
        report(peers::measure(options).await?);
    }
    if options.wants(&["peers-cut", "peers-hostile"]) {
        report(Box::pin(disturbed::measure(options)).await?);
    }
    Ok(())
}
