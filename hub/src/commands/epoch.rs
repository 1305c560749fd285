//! `aip-hub epoch`: another epoch for the mailboxes, where what holds them was put back to an earlier state.

use std::process::ExitCode;

use aip_jetstream::Fresh;
use aip_relay::mailbox::Epoch;
use aip_relay::mailbox::rocks::ClosedStore;
use anyhow::Context as _;
use clap::Subcommand;
use rand::rngs::SysRng;
use rand_core::{Rng as _, UnwrapErr};

use super::operator::block_on;
use super::output;
use super::source::Source;
use crate::config::{Overrides, Settings};
use crate::datadir::{DataDir, DataDirError, DataLock};
use crate::stores::{OpenError, nats};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Gives the mailboxes a new epoch; no process of the hub may run. `restore` does so by itself: this is for mailboxes
    /// that were put back by other means, such as `nats stream restore`
    Renew {
        #[command(flatten)]
        source: Source,
    },
}

pub(super) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let Command::Renew { source } = command;
    let settings = source.settings(&Overrides::default())?;
    let epoch = if settings.engines.mailboxes_url.is_empty() {
        embedded(&settings)?
    } else {
        on_nats(&settings)?
    };
    output::line(&format!("the mailboxes have the epoch {}", epoch.as_str()))?;
    output::note("Clients will look twice at what they have, and lose nothing.");
    Ok(ExitCode::SUCCESS)
}

fn embedded(settings: &Settings) -> anyhow::Result<Epoch> {
    let (store, _lock) = closed_store(&DataDir::open(&settings.hub.data_dir)?)?;
    let epoch = new_epoch();
    store.renew_epoch(&epoch)?;
    Ok(epoch)
}

fn on_nats(settings: &Settings) -> anyhow::Result<Epoch> {
    // Of the hub's processes this one can be seen, if it ever ran here.
    let _lock = match DataDir::open(&settings.hub.data_dir) {
        Ok(folder) => Some(folder.lock()?),
        Err(DataDirError::Missing(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let mut rng = UnwrapErr(SysRng);
    let options = nats::options(settings, "epoch", rng.next_u64());
    let fresh = Fresh {
        epoch_bits: rng.next_u64(),
        // Of a new store, and none is made.
        secret: [0; 32],
    };
    let renewed = block_on(async { Ok(aip_jetstream::renew_epoch(options, &fresh).await?) });
    let epoch = renewed.context("the mailboxes on NATS have no new epoch")?;
    output::note("A process that still runs keeps the old one until it is restarted.");
    Ok(epoch)
}

/// The mailboxes in a data folder that no hub runs on.
pub(super) fn closed_store(folder: &DataDir) -> anyhow::Result<(ClosedStore, DataLock)> {
    let lock = folder.lock()?;
    if folder.moved_marker().exists() {
        return Err(OpenError::Moved(folder.root().to_owned()).into());
    }
    Ok((ClosedStore::open(&folder.store())?, lock))
}

/// An epoch that was never there before.
pub(super) fn new_epoch() -> Epoch {
    Epoch::from_random(UnwrapErr(SysRng).next_u64())
}
