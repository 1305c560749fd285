//! `aip-hub providers`: keys for programs that hand in listings at the running hub.

use std::process::ExitCode;

use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

use super::admin::{list, print, text};
use super::operator::{Operator, block_on};
use super::source::Source;
use crate::routes::admin::{PROVIDER_PATH, PROVIDERS_PATH};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
    /// Prints the answers as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Makes a key and prints it, which is shown only this once
    Add {
        /// What the provider is called, such as the name of a feed
        name: String,
        /// The agent whose listings it hands in: a handle or a DID of this hub
        #[arg(long)]
        agent: String,
    },
    /// Lists all providers
    List,
    /// Ends a key; the listings that it handed in stay
    Revoke {
        /// Its id, as listed
        id: String,
    },
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (settings, folder) = args.source.hub()?;
    let operator = Operator::running(&settings, &folder)?;
    block_on(args.command.carry_out(&operator, args.json))?;
    Ok(ExitCode::SUCCESS)
}

impl Command {
    async fn carry_out(&self, operator: &Operator, as_json: bool) -> anyhow::Result<()> {
        match self {
            Self::List => list(operator, as_json, PROVIDERS_PATH, line).await,
            Self::Add { name, agent } => {
                let body = json!({ "name": name, "agent": agent });
                let made = operator.call(Method::POST, PROVIDERS_PATH, &body).await?;
                print(&made, as_json, |made| text(made, "key"))
            }
            Self::Revoke { id } => {
                let plain = !id.is_empty()
                    && id
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                anyhow::ensure!(
                    plain,
                    "{id:?} is no id of a provider, as `aip-hub providers list` shows them"
                );
                operator.delete(&PROVIDER_PATH.replace("{id}", id)).await?;
                let said = json!({ "id": id, "state": "revoked" });
                print(&said, as_json, |_| format!("{id} is revoked"))
            }
        }
    }
}

fn line(provider: &Value) -> String {
    format!(
        "{}  {:<8} {}  {}  last used {}",
        text(provider, "id"),
        text(provider, "state"),
        text(provider, "agent"),
        text(provider, "name"),
        text(provider, "last_used_at")
    )
}
