//! `aip-hub init`: the data folder with its stores, the hub's key, the operator's token and, if there is none, a
//! settings file. From then on the folder belongs to the domain.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use rand::rngs::SysRng;
use rand_core::UnwrapErr;

use super::operator::block_on;
use super::output;
use super::source::Source;
use crate::config::{self, Overrides, Settings};
use crate::datadir::DataDir;
use crate::stores::Stores;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let file = args.source.config.as_deref();
    let overrides = args.source.overrides(&Overrides::default());
    let existing = file.filter(|file| file.exists());
    let settings = config::load(existing, &overrides).context("the settings cannot be used")?;
    if settings.hub.domain.is_empty() {
        bail!("which domain? Give it with --domain, or set hub.domain in the file of --config");
    }
    settings.check().context("the settings cannot be used")?;

    let folder = DataDir::create(&settings.hub.data_dir)?;
    let _lock = folder.lock()?;
    // First of all: what lies in the folder already may be another domain's.
    if settings.engines.are_embedded() {
        block_on(make_stores(&settings, &folder))?;
    }
    let mut rng = UnwrapErr(SysRng);
    let key = folder.hub_key(&mut rng)?;
    folder.operator_token(&mut rng)?;
    output::line(&format!("data folder  {}", folder.root().display()))?;
    output::line(&format!("hub key      {}#{}", settings.hub.domain, key.public()))?;
    if let (Some(file), None) = (file, existing) {
        write_settings(file, &settings)?;
        output::line(&format!("settings     {}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the stores once. The registry writes down whose it is, or refuses one that is not its own.
async fn make_stores(settings: &Settings, folder: &DataDir) -> anyhow::Result<()> {
    Stores::open(settings, folder).await?.close().await;
    Ok(())
}

/// Writes the default file with the domain and the data folder filled in; a file that is there is not touched.
fn write_settings(file: &Path, settings: &Settings) -> anyhow::Result<()> {
    let text = config::commented_toml(&settings.clone().without_secrets())
        .context("the settings cannot be written")?;
    let mut options = OpenOptions::new();
    match options.create_new(true).write(true).open(file) {
        Ok(mut out) => out
            .write_all(text.as_bytes())
            .with_context(|| format!("cannot write {}", file.display())),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot write {}", file.display())),
    }
}
