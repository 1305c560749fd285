//! The options that say which hub a command is about.

use std::path::PathBuf;

use anyhow::Context as _;

use crate::config::{self, Overrides, Settings};
use crate::datadir::DataDir;

/// Where the settings come from.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Source {
    /// The settings file (TOML)
    #[arg(long, global = true, env = "AIP_HUB_CONFIG", value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// The data folder; wins over the settings
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// The domain of the agents' handles, such as example.org; wins over the settings
    #[arg(long, global = true, value_name = "DOMAIN")]
    pub(super) domain: Option<String>,
}

impl Source {
    /// The settings with the command line's changes; not checked.
    pub(super) fn settings(&self, overrides: &Overrides) -> anyhow::Result<Settings> {
        config::load(self.config.as_deref(), &self.overrides(overrides))
            .context("the settings cannot be used")
    }

    /// `others` with what is set here.
    pub(super) fn overrides(&self, others: &Overrides) -> Overrides {
        Overrides {
            data_dir: self.data.clone(),
            domain: self.domain.clone(),
            ..others.clone()
        }
    }

    /// The settings and the data folder that they name, for commands about a hub that was set up before.
    pub(super) fn hub(&self) -> anyhow::Result<(Settings, DataDir)> {
        let settings = self.settings(&Overrides::default())?;
        let folder = DataDir::open(&settings.hub.data_dir)?;
        Ok((settings, folder))
    }
}
