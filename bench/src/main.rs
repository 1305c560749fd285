//! Measures the hub against yardsticks that are started in the same run, and prints ratios.
//!
//! Every goal runs its sides in turn, for several rounds, and reports the median of their ratios: absolute figures drift.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::print_stdout, reason = "the report is the output of this program")]

mod agents;
mod goals;
mod hub;
mod load;
mod mail;
mod market;
mod monitor;
mod process;
mod quality;
mod report;
mod search;
mod socket;
mod yardstick;

use clap::{Parser, Subcommand};

/// Measures the hub and prints ratios; see docs/PERFORMANCE.md.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: goals::Options,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves the straw-man hub that the goals compare with; the benchmark starts it itself.
    Strawman(yardstick::strawman::Options),
    /// Serves the provider that calls of the market are measured with; the benchmark starts it itself.
    Echo(yardstick::echo::Options),
    /// Measures how well the catalog finds, on sets of judged queries; see docs/SEARCH.md.
    Quality(quality::Options),
    /// Measures how fast the catalog finds and takes up listings, against bare parts; see docs/PERFORMANCE.md.
    Search(search::Options),
}

fn main() -> anyhow::Result<()> {
    let Arguments { command, options } = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    match command {
        Some(Command::Strawman(options)) => yardstick::strawman::serve(&options),
        Some(Command::Echo(options)) => yardstick::echo::serve(&options),
        Some(Command::Quality(options)) => runtime.block_on(quality::run(&options)),
        Some(Command::Search(options)) => runtime.block_on(search::run(&options)),
        None => runtime.block_on(goals::run(&options)),
    }
}
