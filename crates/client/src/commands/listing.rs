//! `aip listing …`: what we offer, and what others do.

mod import;
mod publish;
mod rows;
mod show;

use std::io::Read;
use std::path::{Path, PathBuf};

use aip_client::protocol::name::Did;
use aip_client::{IngestRow, ProviderKey, Published};
use serde_json::{Value, json};

use super::Outcome;
use crate::cli::values;
use crate::context::Context;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Sign one listing and publish it
    Publish(publish::Args),
    /// Publish what a file of another form lists
    Import(import::Args),
    /// Take a listing away
    Delete {
        /// The hub's id, or the one that you gave it
        id: String,
        /// The listing was handed in with the provider key in this file
        #[arg(long, value_name = "FILE")]
        provider_key_file: Option<PathBuf>,
    },
    /// Show a listing, and check its signature
    Show {
        /// The hub's id, as in search results, or the one that you gave it
        id: String,
    },
    /// Why a listing is found, or is not
    Status {
        /// The hub's id, or the one that you gave it
        id: String,
    },
    /// List what an agent offers; ourselves, if none is named
    List {
        /// The agent
        #[arg(value_name = "AGENT", value_parser = values::agent)]
        agent: Option<Did>,
    },
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    match args.action {
        Action::Publish(args) => publish::run(context, args).await,
        Action::Import(args) => import::run(context, args).await,
        Action::Delete {
            id,
            provider_key_file: None,
        } => delete(context, &id).await,
        Action::Delete {
            id,
            provider_key_file: Some(path),
        } => withdraw(context, id, &path).await,
        Action::Show { id } => show::show(context, &id).await,
        Action::Status { id } => show::status(context, &id).await,
        Action::List { agent } => show::list(context, agent).await,
    }
}

async fn delete(context: &Context, id: &str) -> Outcome {
    let gone = context.client()?.delete_listing(id).await?;
    Ok(context
        .output
        .show(&published_json(&gone), &format!("{} is taken away", gone.id))?)
}

async fn withdraw(context: &Context, id: String, path: &Path) -> Outcome {
    let client = context.client_without_keys(None)?;
    let report = client.withdraw(&ProviderKey::read(path)?, &[id]).await?;
    let row = report.rows.into_iter().next();
    let row = row.ok_or_else(|| Failure::Other("the hub said nothing of it".to_owned()))?;
    if row.status == "refused" {
        return Err(Failure::Other(refused(&row)));
    }
    let value = serde_json::to_value(&row).map_err(std::io::Error::from)?;
    let name = row.id.or(row.listing_id).unwrap_or_default();
    Ok(context.output.show(&value, &format!("{name} is taken away"))?)
}

/// Text from a file; `-` is the standard input. What is longer is cut just behind the limit, so that it is seen to be.
pub(in crate::commands) fn read(path: &Path, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let named = |error: std::io::Error| Failure::Other(format!("{}: {error}", path.display()));
    if path == Path::new("-") {
        return bounded(std::io::stdin().lock(), bytes_max).map_err(named);
    }
    std::fs::File::open(path)
        .and_then(|file| bounded(file, bytes_max))
        .map_err(named)
}

fn bounded(from: impl Read, bytes_max: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn published_json(published: &Published) -> Value {
    json!({
        "id": published.id,
        "version": published.version,
        "status": published.status,
        "flags": published.flags,
        "held": published.held,
    })
}

/// Why the hub refused a row, in a sentence.
fn refused(row: &IngestRow) -> String {
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}: {}", part(&row.code), part(&row.detail))
}
