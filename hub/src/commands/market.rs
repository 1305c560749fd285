//! `aip-hub market peers`: other hubs that sell at the running hub's market, and what is decided about them.

use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use serde_json::{Value, json};

use super::admin::{list, print, text};
use super::operator::{Operator, block_on};
use super::source::Source;
use crate::routes::admin::{
    MARKET_PEER_BLOCK_PATH, MARKET_PEER_CRAWL_PATH, MARKET_PEER_LOG_PATH, MARKET_PEER_MODE_PATH,
    MARKET_PEER_PATH, MARKET_PEER_REPIN_PATH, MARKET_PEERS_PATH,
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
    /// Other hubs that sell here
    #[command(subcommand)]
    Peers(Peers),
}

#[derive(Debug, Subcommand)]
enum Peers {
    /// Lists them, those that wait to be let in among them
    List,
    /// Shows one: its key, what it says about itself, how asking it goes, some of what a waiting one offers
    Show {
        /// Its address, such as `https://two.example`
        url: String,
    },
    /// Lets a hub sell here, and asks it for what it sells
    Add(Approve),
    /// Lets a hub sell here that waits, or was blocked
    Approve(Approve),
    /// Has nothing to do with it; what it sold here is taken down
    Block {
        /// Its address
        url: String,
    },
    /// Pins the key that it shows now, or another one, in place of the pinned one; ask its operator by another way first
    Repin(Approve),
    /// Says under which rules its capabilities are called
    Mode {
        /// Its address
        url: String,
        /// Who sells them to the buyers of this hub
        mode: Mode,
    },
    /// Asks it at once for what it sells
    Crawl {
        /// Its address
        url: String,
    },
    /// Forgets it; what it sold here is taken down
    Remove {
        /// Its address
        url: String,
    },
    /// Prints what was decided, by the operator and by the hub itself, newest first
    Log,
}

#[derive(Debug, clap::Args)]
struct Approve {
    /// Its address, such as `https://two.example`
    url: String,
    /// Its key in base64, as its operator tells it (`signer_public_key` of its discovery document)
    #[arg(long)]
    key: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
    /// It sells itself: what the buyer pays with goes through
    Broker,
    /// This hub sells, and settles with its operator elsewhere
    #[value(name = "sells-for")]
    SellsFor,
    /// This hub sells, and pays it with its key there (the file `market_peers.keys_file`)
    Reseller,
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Self::Broker => "broker",
            Self::SellsFor => "sells_for",
            Self::Reseller => "reseller",
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (settings, folder) = args.source.hub()?;
    let operator = Operator::running(&settings, &folder)?;
    let Command::Peers(command) = &args.command;
    block_on(command.carry_out(&operator, args.json))?;
    Ok(ExitCode::SUCCESS)
}

impl Peers {
    async fn carry_out(&self, operator: &Operator, as_json: bool) -> anyhow::Result<()> {
        let decide = async |method: Method, path: &str, body: Value| -> anyhow::Result<()> {
            let peer = operator.call(method, path, &body).await?;
            print(&peer, as_json, line)
        };
        match self {
            Self::List => list(operator, as_json, MARKET_PEERS_PATH, line).await,
            Self::Log => list(operator, as_json, MARKET_PEER_LOG_PATH, log_line).await,
            Self::Show { url } => {
                let peer = operator.get(&query(url)).await?;
                print(&peer, as_json, |peer| {
                    serde_json::to_string_pretty(peer).unwrap_or_default()
                })
            }
            Self::Add(Approve { url, key }) | Self::Approve(Approve { url, key }) => {
                decide(Method::POST, MARKET_PEERS_PATH, with_key(url, key.as_deref())).await
            }
            Self::Repin(Approve { url, key }) => {
                decide(
                    Method::POST,
                    MARKET_PEER_REPIN_PATH,
                    with_key(url, key.as_deref()),
                )
                .await
            }
            Self::Block { url } => decide(Method::POST, MARKET_PEER_BLOCK_PATH, json!({ "url": url })).await,
            Self::Crawl { url } => decide(Method::POST, MARKET_PEER_CRAWL_PATH, json!({ "url": url })).await,
            Self::Mode { url, mode } => {
                let body = json!({ "url": url, "mode": mode.word() });
                decide(Method::PUT, MARKET_PEER_MODE_PATH, body).await
            }
            Self::Remove { url } => {
                operator.delete(&query(url)).await?;
                let said = json!({ "url": url, "state": "removed" });
                print(&said, as_json, |_| format!("{url} is forgotten"))
            }
        }
    }
}

/// The path with an address in its query.
fn query(url: &str) -> String {
    format!(
        "{MARKET_PEER_PATH}?url={}",
        utf8_percent_encode(url, NON_ALPHANUMERIC)
    )
}

fn with_key(url: &str, key: Option<&str>) -> Value {
    match key {
        Some(key) => json!({ "url": url, "key": key }),
        None => json!({ "url": url }),
    }
}

fn line(peer: &Value) -> String {
    let error = peer.get("last_error").filter(|error| !error.is_null());
    let said = error.map_or_else(String::new, |_| format!("  {}", text(peer, "last_error")));
    let unpaid = text(peer, "mode") == "reseller" && peer.get("has_payment_key") == Some(&json!(false));
    let unpaid = if unpaid {
        "  no key of an account there"
    } else {
        ""
    };
    format!(
        "{:<40} {:<12} {:<9} {:>5} capabilities  last good {}{unpaid}{said}",
        text(peer, "url"),
        text(peer, "status"),
        text(peer, "mode"),
        text(peer, "capabilities"),
        text(peer, "last_crawl"),
    )
}

fn log_line(entry: &Value) -> String {
    format!(
        "{}  {:<8} {:<8} {}  {}",
        text(entry, "at"),
        text(entry, "actor"),
        text(entry, "action"),
        text(entry, "peer"),
        text(entry, "detail")
    )
}
