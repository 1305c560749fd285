//! `aip-hub doctor`: looks at everything a hub needs, and says for each thing that is wrong how to mend it.

mod engines;
mod folder;
mod index;
mod machine;
mod reach;
mod stores;

use std::process::ExitCode;

use super::operator::block_on;
use super::output;
use super::source::Source;
use crate::config::{self, Overrides, Settings};
use crate::datadir::{DataDir, DataDirError};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
    /// For a hub that is served with --dev
    #[arg(long)]
    dev: bool,
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Finding {
    /// As it should be.
    Good(String),
    /// Works, and may not for long.
    Doubtful(String),
    /// Does not work.
    Bad(String),
}

impl Finding {
    fn line(&self) -> String {
        match self {
            Self::Good(text) => format!("ok    {text}"),
            Self::Doubtful(text) => format!("warn  {text}"),
            Self::Bad(text) => format!("FAIL  {text}"),
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let found = block_on(examine(&args.source, args.dev))?;
    for finding in &found {
        output::line(&finding.line())?;
    }
    let bad = found.iter().any(|finding| matches!(finding, Finding::Bad(_)));
    Ok(if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn examine(source: &Source, dev: bool) -> anyhow::Result<Vec<Finding>> {
    let overrides = source.overrides(&Overrides {
        dev,
        ..Overrides::default()
    });
    let settings = match config::load(source.config.as_deref(), &overrides) {
        Ok(settings) => settings,
        Err(problems) => return Ok(problems.sentences().iter().cloned().map(Finding::Bad).collect()),
    };
    let mut found = settings_findings(&settings);
    found.extend(machine::examine(&settings));
    let folder = match DataDir::open(&settings.hub.data_dir) {
        Ok(folder) => folder,
        Err(error) => {
            found.push(Finding::Bad(error.to_string()));
            return Ok(found);
        }
    };
    found.extend(folder::examine(&settings, &folder));
    found.push(index::folder(&settings, &folder));
    found.extend(engines::examine(&settings, &folder).await);
    match folder.lock() {
        Ok(_lock) => {
            found.push(Finding::Doubtful(
                "no hub runs on this data folder; start it with `aip-hub serve`".to_owned(),
            ));
            found.extend(machine::ports(&settings));
            found.extend(stores::examine(&settings, &folder).await);
        }
        Err(DataDirError::InUse { .. }) => {
            found.extend(reach::examine(&settings, &folder).await);
            found.push(index::running(&settings, &folder).await);
        }
        Err(error) => found.push(Finding::Bad(error.to_string())),
    }
    Ok(found)
}

fn settings_findings(settings: &Settings) -> Vec<Finding> {
    let mut found = match settings.check() {
        Ok(()) if settings.hub.development => {
            vec![Finding::Doubtful(
                "the settings are good for trying out, not for others to use".to_owned(),
            )]
        }
        Ok(()) => vec![Finding::Good("the settings are good".to_owned())],
        Err(problems) => problems.sentences().iter().cloned().map(Finding::Bad).collect(),
    };
    found.extend(settings.notes().into_iter().map(Finding::Doubtful));
    found
}

#[cfg(test)]
mod tests;
