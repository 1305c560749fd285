//! `aip-hub keygen`: a new signing key for a hub, or a new token for the operator's door.

use std::path::PathBuf;
use std::process::ExitCode;

use aip_protocol::multikey::SigningKey;
use rand::rngs::SysRng;
use rand_core::UnwrapErr;

use super::output;
use crate::datadir;

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(super) struct Args {
    /// Writes a new key to FILE, for its owner alone, and prints the public half
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Prints a new operator token
    #[arg(long)]
    token: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut rng = UnwrapErr(SysRng);
    match &args.out {
        Some(path) => {
            let key = SigningKey::generate(&mut rng);
            datadir::write_private(path, &datadir::key_text(&key))?;
            output::line(key.public().as_str())?;
        }
        None => output::line(&datadir::new_token(&mut rng))?,
    }
    Ok(ExitCode::SUCCESS)
}
