//! `aip-hub restore`: a backup becomes the content of an empty data folder, with a new epoch.

use std::path::PathBuf;
use std::process::ExitCode;

use super::output;
use super::source::Source;
use crate::backup;
use crate::config::Overrides;
use crate::datadir::DataDir;
use crate::stores;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
    /// The folder of the backup
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let settings = args.source.settings(&Overrides::default())?;
    let folder = DataDir::at(&settings.hub.data_dir);
    let manifest = backup::restore(&args.from, &folder, stores::restore_mailboxes)?;
    let (domain, made_at) = (&manifest.domain, manifest.made_at);
    output::line(&format!(
        "{}: restored the hub of {domain} as of {made_at}",
        folder.root().display()
    ))?;
    output::note(
        "The mailboxes have a new epoch: clients will look twice at what they have, and lose nothing.",
    );
    Ok(ExitCode::SUCCESS)
}
