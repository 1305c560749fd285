//! `aip import FILE`: takes keys that were exported.

use std::path::PathBuf;

use aip_client::{Entropy, KeyFile};
use serde_json::json;

use super::Outcome;
use crate::context::{Context, new_passphrase, passphrase, refuse_existing};

/// Two machines with the same keys are one agent: the second that listens takes over from the first.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The exported file
    file: PathBuf,
    /// Seal the key file with a passphrase
    #[arg(long)]
    passphrase: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Outcome {
    let mut target = KeyFile::at(context.key_path()?);
    refuse_existing(&target, "name another key file with --key or AIP_KEY")?;
    let mut source = KeyFile::at(&args.file);
    if source.is_sealed()? {
        let prompt = format!("Passphrase of {}: ", args.file.display());
        source = source.with_passphrase(passphrase(&prompt)?.as_str());
    }
    let keys = source.load()?;
    if args.passphrase {
        target = target.with_passphrase(new_passphrase()?.as_str());
    }
    target.create(&keys, &Entropy::system())?;
    let value = json!({"did": keys.did(), "key_file": target.path(), "sealed": args.passphrase});
    let lines = format!(
        "you are {}; the keys are in {}",
        keys.did().handle(),
        target.path().display()
    );
    Ok(context.output.show(&value, &lines)?)
}
