//! `aip-hub rotate-key`: a new signing key for the hub, which the one before it vouches for.
//!
//! Peers have pinned the hub's key. They take another one only when the discovery document is signed by a pinned key too, so the
//! old key stays beside the new one and vouches for it until the operator deletes it, or rotates again.

use std::path::Path;
use std::process::ExitCode;

use aip_protocol::multikey::SigningKey;
use aip_registry::Fact;
use anyhow::Context as _;
use rand::rngs::SysRng;
use rand_core::UnwrapErr;

use super::operator::block_on;
use super::output;
use super::source::Source;
use crate::config::Settings;
use crate::datadir::DataDir;
use crate::{hub_key, stores};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (settings, folder) = args.source.hub()?;
    // Of a hub that runs, another key would be in memory than in the file.
    let _lock = folder
        .lock()
        .context("stop the hub first, all of its processes")?;
    let file = hub_key::file(&settings, &folder);
    let new = SigningKey::generate(&mut UnwrapErr(SysRng));
    let old = hub_key::rotate(&file, &new)?;
    if !settings.engines.registry_url.is_empty() {
        block_on(tell_the_others(&settings, &folder, &new))?;
    }
    output::line(&format!(
        "the hub signs with {} from its next start on",
        new.public()
    ))?;
    say_what_is_next(&file, &old, &settings);
    Ok(ExitCode::SUCCESS)
}

/// The processes of a hub compare their key with what the registry says.
async fn tell_the_others(settings: &Settings, folder: &DataDir, new: &SigningKey) -> anyhow::Result<()> {
    let registry = stores::open_registry(settings, folder).await?;
    let replaced = registry.replace_fact(Fact::HubKey, new.public().as_str()).await;
    registry.close().await;
    Ok(replaced?)
}

fn say_what_is_next(file: &Path, old: &SigningKey, settings: &Settings) {
    let previous = hub_key::previous_file(file);
    output::note(&format!(
        "The key before it, {}, lies in {} and vouches for the new one. Keep it for as long as a peer may not have looked, a \
         month say; delete it at once if it may be in wrong hands, and tell the operators of your peers to repin.",
        old.public(),
        previous.display()
    ));
    if !settings.engines.registry_url.is_empty() {
        output::note(&format!(
            "Copy {} and {} to the other processes of the hub before they start.",
            file.display(),
            previous.display()
        ));
    }
}
