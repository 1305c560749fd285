//! `aip-hub accounts`: who can spend money on the running hub's market, and how much.

use std::process::ExitCode;

use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

use super::admin::{list, print, text};
use super::operator::{Operator, block_on};
use super::source::Source;
use crate::routes::admin::{
    ACCOUNT_BUDGET_PATH, ACCOUNT_CREDITS_PATH, ACCOUNT_KEYS_PATH, ACCOUNT_LEDGER_PATH, ACCOUNT_PATH,
    ACCOUNT_STANDING_PATH, ACCOUNTS_PATH,
};

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
    /// Makes an account and prints its id and its key, which is shown only this once
    Create {
        /// What it is called
        #[arg(long, default_value = "")]
        label: String,
        /// The agent that it belongs to: a handle or a DID of this hub; nobody's, if left out
        #[arg(long)]
        owner: Option<String>,
        /// What may ever be spent, in US dollars; no ceiling, if left out
        #[arg(long)]
        budget: Option<String>,
        /// What it is given to begin with, in US dollars
        #[arg(long)]
        grant: Option<String>,
    },
    /// Puts money into an account that came in by another way
    Credit {
        /// The account, as listed
        id: String,
        /// How much, in US dollars, such as 25 or 0.5
        amount: String,
        /// Which payment this is: the same again changes nothing
        #[arg(long)]
        reference: String,
    },
    /// Lists all accounts
    List,
    /// Shows an account and its keys
    Show {
        /// The account, as listed
        id: String,
    },
    /// Prints what happened to an account's money, oldest first
    Ledger {
        /// The account, as listed
        id: String,
    },
    /// Makes another key of an account and prints it, which is shown only this once
    Key {
        /// The account, as listed
        id: String,
        /// What the key is called
        #[arg(long, default_value = "")]
        label: String,
        /// What it may ever spend, in US dollars; no ceiling, if left out
        #[arg(long)]
        budget: Option<String>,
    },
    /// Closes an account to its keys; its money stays
    Suspend {
        /// The account, as listed
        id: String,
    },
    /// Opens an account again
    Unsuspend {
        /// The account, as listed
        id: String,
    },
    /// Sets what may ever be spent, of an account or of one of its keys
    Budget(Budget),
}

#[derive(Debug, clap::Args)]
struct Budget {
    /// The account, as listed
    id: String,
    /// How much, in US dollars; 0 spends nothing and still calls what is free
    #[arg(required_unless_present = "none")]
    amount: Option<String>,
    /// No ceiling
    #[arg(long, conflicts_with = "amount")]
    none: bool,
    /// Of this key instead of the whole account
    #[arg(long)]
    key: Option<String>,
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
            Self::List => list(operator, as_json, ACCOUNTS_PATH, line).await,
            Self::Ledger { id } => list(operator, as_json, &path(ACCOUNT_LEDGER_PATH, id)?, entry_line).await,
            Self::Show { id } => {
                let account = operator.get(&path(ACCOUNT_PATH, id)?).await?;
                print(&account, as_json, shown)
            }
            Self::Create {
                label,
                owner,
                budget,
                grant,
            } => {
                let body = json!({ "label": label, "owner": owner, "budget": budget, "grant": grant });
                let made = operator.call(Method::POST, ACCOUNTS_PATH, &body).await?;
                print(&made, as_json, |made| {
                    format!("{}  {}", text(made, "account_id"), text(made, "api_key"))
                })
            }
            Self::Credit {
                id,
                amount,
                reference,
            } => {
                let body = json!({ "amount": amount, "reference": reference });
                let path = path(ACCOUNT_CREDITS_PATH, id)?;
                let credited = operator.call(Method::POST, &path, &body).await?;
                print(&credited, as_json, credited_words)
            }
            Self::Key { id, label, budget } => {
                let body = json!({ "label": label, "budget": budget });
                let path = path(ACCOUNT_KEYS_PATH, id)?;
                let made = operator.call(Method::POST, &path, &body).await?;
                print(&made, as_json, |made| {
                    format!("{}  {}", text(made, "key_id"), text(made, "api_key"))
                })
            }
            Self::Suspend { id } => standing(operator, as_json, id, true).await,
            Self::Unsuspend { id } => standing(operator, as_json, id, false).await,
            Self::Budget(budget) => budget.carry_out(operator, as_json).await,
        }
    }
}

impl Budget {
    async fn carry_out(&self, operator: &Operator, as_json: bool) -> anyhow::Result<()> {
        let body = json!({ "budget": self.amount, "key": self.key });
        operator
            .call(Method::PUT, &path(ACCOUNT_BUDGET_PATH, &self.id)?, &body)
            .await?;
        let whose = self.key.as_deref().unwrap_or(&self.id);
        let said = json!({ "id": self.id, "key": self.key, "budget": self.amount });
        print(&said, as_json, |_| match &self.amount {
            Some(amount) => format!("{whose} may spend {amount} USD in all"),
            None => format!("{whose} has no ceiling"),
        })
    }
}

async fn standing(operator: &Operator, as_json: bool, id: &str, suspended: bool) -> anyhow::Result<()> {
    let body = json!({ "suspended": suspended });
    operator
        .call(Method::PUT, &path(ACCOUNT_STANDING_PATH, id)?, &body)
        .await?;
    let standing = if suspended { "suspended" } else { "active" };
    let said = json!({ "id": id, "standing": standing });
    print(&said, as_json, |_| format!("{id} is {standing}"))
}

/// A path with the account in it. Looked at here, so that what is put into the path is an id and nothing else.
fn path(template: &str, id: &str) -> anyhow::Result<String> {
    let is_plain = !id.is_empty()
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    anyhow::ensure!(
        is_plain,
        "{id:?} is no account, as `aip-hub accounts list` shows them"
    );
    Ok(template.replace("{id}", id))
}

fn line(account: &Value) -> String {
    format!(
        "{}  {:<10} {:>14} USD  held {}  spent {}{}  {}  {}",
        text(account, "id"),
        text(account, "standing"),
        text(account, "balance"),
        text(account, "held"),
        text(account, "spent"),
        budget_words(account),
        text(account, "owner"),
        text(account, "label")
    )
}

fn budget_words(of: &Value) -> String {
    match of.get("budget").filter(|budget| !budget.is_null()) {
        Some(_) => format!(" of {}", text(of, "budget")),
        None => String::new(),
    }
}

fn shown(account: &Value) -> String {
    let keys = account
        .get("keys")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let keys = keys.map(|key| {
        let (id, spent, label) = (text(key, "id"), text(key, "spent"), text(key, "label"));
        format!("\n  {id}  spent {spent}{}  {label}", budget_words(key))
    });
    keys.fold(line(account), |mut shown, key| {
        shown.push_str(&key);
        shown
    })
}

fn entry_line(entry: &Value) -> String {
    format!(
        "{}  {:<8} {:>14}  balance {:>14}  {}",
        text(entry, "at"),
        text(entry, "kind"),
        text(entry, "amount"),
        text(entry, "balance"),
        text(entry, "reference")
    )
}

fn credited_words(credited: &Value) -> String {
    let (id, balance) = (text(credited, "id"), text(credited, "balance"));
    let again = credited.get("again").and_then(Value::as_bool).unwrap_or_default();
    let before = if again { "; the same was put in before" } else { "" };
    format!("{id} has {balance} USD{before}")
}
