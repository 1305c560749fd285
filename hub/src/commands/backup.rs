//! `aip-hub backup`: asks the running hub for a copy, or makes it directly when none runs; then verifies it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::operator::{Operator, block_on};
use super::output;
use super::source::Source;
use crate::backup::Manifest;
use crate::clock;
use crate::config::Settings;
use crate::datadir::{DataDir, DataDirError};
use crate::routes::admin::BACKUPS_PATH;
use crate::stores::Stores;

/// The longest time that the running hub gets for the copy.
const BACKUP_TIMEOUT: Duration = Duration::from_hours(6);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
    /// The folder to make; the hub's user must be able to write it
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (settings, folder) = args.source.hub()?;
    let to = std::path::absolute(&args.to).with_context(|| format!("{} is no path", args.to.display()))?;
    let elsewhere = match folder.lock() {
        Ok(_lock) => block_on(directly(&settings, &folder, &to))?,
        Err(DataDirError::InUse { .. }) => block_on(by_the_hub(&settings, &folder, &to))?,
        Err(error) => return Err(error.into()),
    };
    let manifest = Manifest::verify(&to)?;
    let bytes: u64 = manifest.files.values().map(|file| file.bytes).sum();
    let count = manifest.files.len();
    output::line(&format!(
        "{}: {count} files, {bytes} bytes, verified",
        to.display()
    ))?;
    for sentence in elsewhere {
        output::note(&format!("not in it: {sentence}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns what lies elsewhere, as the next function does.
async fn directly(settings: &Settings, folder: &DataDir, to: &Path) -> anyhow::Result<Vec<String>> {
    ensure!(
        !settings.hub.domain.is_empty(),
        "no hub runs on {}, and to copy it without one its settings are needed: name them with --config, or the domain \
         with --domain; or name the folder of a running hub with --data, and that hub is asked",
        folder.root().display()
    );
    let stores = Stores::open(settings, folder).await?;
    let copied = stores.backup(to, clock::wall()).await;
    stores.close().await;
    copied?;
    Ok(stores.elsewhere().into_iter().map(str::to_owned).collect())
}

async fn by_the_hub(settings: &Settings, folder: &DataDir, to: &Path) -> anyhow::Result<Vec<String>> {
    let operator = Operator::running(settings, folder)?;
    let to = to.to_str().context("the folder's path is not UTF-8")?;
    let taken = operator
        .call_slowly(BACKUPS_PATH, &json!({ "to": to }), BACKUP_TIMEOUT)
        .await?;
    let elsewhere = taken.get("elsewhere").and_then(Value::as_array);
    let sentences = elsewhere.into_iter().flatten().filter_map(Value::as_str);
    Ok(sentences.map(str::to_owned).collect())
}
