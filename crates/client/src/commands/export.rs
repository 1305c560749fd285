//! `aip export FILE`: writes the keys to one file, to be kept or imported elsewhere.

use std::path::PathBuf;

use aip_client::{Entropy, KeyFile};
use serde_json::json;

use super::Outcome;
use crate::context::{Context, new_passphrase, refuse_existing};
use crate::output::note;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to; must not exist yet
    file: PathBuf,
    /// Without a passphrase: whoever gets the file is the agent
    #[arg(long)]
    plain: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Outcome {
    let keys = context.key_file()?.load()?;
    let mut target = KeyFile::at(&args.file);
    refuse_existing(&target, "name another file")?;
    if args.plain {
        note("warning: the file is not sealed; whoever gets it is the agent");
    } else {
        target = target.with_passphrase(new_passphrase()?.as_str());
    }
    target.create(&keys, &Entropy::system())?;
    let value = json!({"did": keys.did(), "file": args.file, "sealed": !args.plain});
    let lines = format!(
        "the keys of {} are in {}",
        keys.did().handle(),
        args.file.display()
    );
    Ok(context.output.show(&value, &lines)?)
}
