//! `aip-hub catalog`: what agents offer at the running hub, and what of it waits for the operator.

use std::process::ExitCode;

use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

use super::admin::{list, print, text};
use super::operator::{Operator, block_on};
use super::source::Source;
use crate::routes::admin::{CATALOG_PATH, SUSPECT_PATH, SUSPECTS_PATH};

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
    /// Tells how far the index of listings has come
    Show,
    /// Listings that are suspect; which of them wait for you, `search.quarantine` says
    #[command(subcommand)]
    Quarantine(Quarantine),
}

#[derive(Debug, Subcommand)]
enum Quarantine {
    /// Lists them, with their flags and how they stand
    List,
    /// Lets a listing be found and sold, whatever its flags say, until its words are others
    Release(Which),
    /// Keeps a listing from being found and sold, in this and every further version
    Reject(Which),
}

#[derive(Debug, clap::Args)]
struct Which {
    /// Its id, as listed
    id: String,
    /// The version that you looked at; refused where it has another one by now
    #[arg(long, value_name = "VERSION")]
    if_version: Option<u64>,
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
            Self::Show => {
                let state = operator.get(CATALOG_PATH).await?;
                print(&state, as_json, |state| {
                    serde_json::to_string_pretty(state).unwrap_or_default()
                })
            }
            Self::Quarantine(Quarantine::List) => list(operator, as_json, SUSPECTS_PATH, line).await,
            Self::Quarantine(Quarantine::Release(which)) => which.judge(operator, as_json, "released").await,
            Self::Quarantine(Quarantine::Reject(which)) => which.judge(operator, as_json, "rejected").await,
        }
    }
}

impl Which {
    async fn judge(&self, operator: &Operator, as_json: bool, verdict: &str) -> anyhow::Result<()> {
        let id = &self.id;
        let is_plain = !id.is_empty()
            && id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        anyhow::ensure!(
            is_plain,
            "{id:?} is no id of a listing, as `aip-hub catalog quarantine list` shows them"
        );
        let body = json!({ "verdict": verdict, "version": self.if_version });
        let stands = operator
            .call(Method::PUT, &SUSPECT_PATH.replace("{id}", id), &body)
            .await?;
        print(&stands, as_json, line)
    }
}

fn line(suspect: &Value) -> String {
    let flags = suspect
        .get("flags")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let flags: Vec<&str> = flags.filter_map(Value::as_str).collect();
    format!(
        "{}  {:<11} version {}  {}  [{}]  {}",
        text(suspect, "id"),
        text(suspect, "state"),
        text(suspect, "version"),
        text(suspect, "agent"),
        flags.join(", "),
        text(suspect, "name")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_odd_and_how_it_stands() {
        let shown = line(&json!({
            "id": "lst_a", "state": "quarantined", "version": 2, "agent": "did:aip:hub.example:shop",
            "flags": ["injection_suspected"], "name": "Weather",
        }));
        assert_eq!(
            shown,
            "lst_a  quarantined version 2  did:aip:hub.example:shop  [injection_suspected]  Weather"
        );
    }
}
