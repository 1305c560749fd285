//! `aip-hub migrate`: brings the schema of the registry's database up to this release.

use std::process::ExitCode;

use aip_protocol::name::Domain;
use aip_registry::SqlStore;

use super::operator::block_on;
use super::output;
use super::source::Source;
use crate::config::Overrides;
use crate::datadir::DataDir;
use crate::stores::{OpenError, postgres_options};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
}

/// On PostgreSQL it needs no data folder, and may be run by several machines at once.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let settings = args.source.settings(&Overrides::default())?;
    let domain = Domain::parse(&settings.hub.domain)
        .map_err(|_refusal| OpenError::Domain(settings.hub.domain.clone()))?;
    let migrated = if let Some(options) = postgres_options(&settings)? {
        block_on(async { Ok(SqlStore::migrate_postgres(&options, &domain).await?) })?
    } else {
        let folder = DataDir::open(&settings.hub.data_dir)?;
        let _lock = folder.lock()?;
        block_on(async { Ok(SqlStore::migrate_sqlite(&folder.registry(), &domain).await?) })?
    };
    output::line(&if migrated.from == migrated.to {
        format!("the registry has schema {} already", migrated.to)
    } else {
        format!(
            "the registry went from schema {} to {}",
            migrated.from, migrated.to
        )
    })?;
    Ok(ExitCode::SUCCESS)
}
