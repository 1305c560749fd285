//! `aip-hub health`: whether the hub of this data folder takes work, for supervisors that ask by exit code.

use std::process::ExitCode;

use super::operator::{Operator, block_on};
use super::output;
use super::source::Source;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (settings, folder) = args.source.hub()?;
    let operator = Operator::running(&settings, &folder)?;
    let (ready, words) = block_on(operator.ready())?;
    output::line(words.trim_end())?;
    Ok(if ready {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
