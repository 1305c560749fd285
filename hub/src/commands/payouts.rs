//! `aip-hub payouts`: what providers earned at the running hub's market, and what they were paid.

use std::process::ExitCode;

use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

use super::admin::{list, print, text};
use super::operator::{Operator, block_on};
use super::source::Source;
use crate::routes::admin::{BOOKS_PATH, PAYOUTS_PATH};

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
    /// Lists what each provider earned, was paid and is owed
    List,
    /// Notes that a provider was paid
    Add {
        /// Who: a handle or a DID
        agent: String,
        /// How much, in US dollars; at most what is owed
        amount: String,
        /// Which payment this is: the same again changes nothing
        #[arg(long)]
        reference: String,
    },
    /// Prints the books: all money that came in, and where it is
    Books,
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
            Self::List => list(operator, as_json, PAYOUTS_PATH, line).await,
            Self::Add {
                agent,
                amount,
                reference,
            } => {
                let body = json!({ "agent": agent, "amount": amount, "reference": reference });
                let earned = operator.call(Method::POST, PAYOUTS_PATH, &body).await?;
                print(&earned, as_json, noted_words)
            }
            Self::Books => {
                let books = operator.get(BOOKS_PATH).await?;
                print(&books, as_json, |books| {
                    serde_json::to_string_pretty(books).unwrap_or_default()
                })
            }
        }
    }
}

fn line(earned: &Value) -> String {
    format!(
        "{}  earned {} USD in {} calls  paid {}  owed {}{}",
        text(earned, "agent"),
        text(earned, "earned"),
        text(earned, "calls"),
        text(earned, "paid_out"),
        text(earned, "owed"),
        directly(earned),
    )
}

/// What it was paid past the hub, where it was.
fn directly(earned: &Value) -> String {
    match earned.get("paid_directly").and_then(Value::as_str) {
        None | Some("0") => String::new(),
        Some(amount) => format!("  paid directly {amount}"),
    }
}

fn noted_words(noted: &Value) -> String {
    let again = noted.get("again").and_then(Value::as_bool).unwrap_or_default();
    let before = if again { "; the same was noted before" } else { "" };
    format!("{}{before}", line(noted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_payment_again_is_told() {
        let noted = |again: bool| {
            noted_words(&json!({
                "agent": "did:aip:hub.example:shop",
                "earned": "1",
                "calls": 2,
                "paid_out": "0.6",
                "owed": "0.4",
                "again": again,
            }))
        };
        let first = "did:aip:hub.example:shop  earned 1 USD in 2 calls  paid 0.6  owed 0.4";
        assert_eq!(noted(false), first);
        assert_eq!(noted(true), format!("{first}; the same was noted before"));
        assert_eq!(
            directly(&json!({ "paid_directly": "0.3" })),
            "  paid directly 0.3"
        );
        assert_eq!(directly(&json!({ "paid_directly": "0" })), "");
    }
}
