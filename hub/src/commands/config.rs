//! `aip-hub config`: checks, shows, or writes settings.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;

use super::output;
use super::source::Source;
use crate::config::{self, Overrides};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Says everything that is wrong with the settings, and how to mend it
    Check {
        #[command(flatten)]
        source: Source,
    },
    /// Shows the settings as the hub would use them, without secrets
    Show {
        #[command(flatten)]
        source: Source,
    },
    /// Writes all settings with their defaults and comments
    Default,
}

pub(super) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check { source } => check(source),
        Command::Show { source } => {
            let settings = source.settings(&Overrides::default())?;
            output::line(
                config::to_toml(&settings)
                    .context("the settings cannot be shown")?
                    .trim_end(),
            )?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Default => {
            output::line(
                config::default_toml()
                    .context("the settings cannot be written")?
                    .trim_end(),
            )?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn check(source: &Source) -> anyhow::Result<ExitCode> {
    let loaded = config::load(source.config.as_deref(), &source.overrides(&Overrides::default()));
    let found = loaded.and_then(|settings| settings.check().map(|()| settings.notes()));
    match found {
        Ok(notes) => {
            output::line("the settings are good")?;
            for note in notes {
                output::line(&format!("note: {note}"))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(problems) => {
            output::line(&problems.to_string())?;
            Ok(ExitCode::FAILURE)
        }
    }
}
