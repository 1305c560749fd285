//! `aip-hub peers`: hubs of other domains, as the running hub sees them, and what is decided about them.

use std::process::ExitCode;

use aip_protocol::name::{Did, Domain};
use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

use super::admin::{list, print, text};
use super::operator::{Operator, block_on};
use super::source::Source;
use crate::routes::admin::{
    HISTORY_PATH, PEER_AUDIT_PATH, PEER_EVIDENCE_PATH, PEER_LIMITS_PATH, PEER_PATH, PEER_REPIN_PATH,
    PEER_RETRY_PATH, PEER_STANCE_PATH, PEERS_PATH,
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
    /// Lists the peers that the hub has met
    List,
    /// Shows one peer: its keys, what waits for it, how sending to it goes
    Show {
        /// Its domain, such as two.example
        domain: String,
    },
    /// Lets mail and catalog pass, whatever the policy
    Allow {
        /// Its domain
        domain: String,
    },
    /// Takes nothing from it and sends nothing to it; what waits for it stays until it is too old
    Block {
        /// Its domain
        domain: String,
    },
    /// Lets mail pass, but no catalog; or sets how much it may do
    Limit(Limit),
    /// Leaves it to the hub's policy again
    Undecide {
        /// Its domain
        domain: String,
    },
    /// Takes the key that it shows now in place of the pinned one; ask its operator by another way first
    Repin {
        /// Its domain
        domain: String,
    },
    /// Sends what waits for it at once, whatever pause it is in
    Retry {
        /// Its domain
        domain: String,
    },
    /// Prints what was decided about peers, by the operator and by the hub itself
    Audit,
    /// Prints what peers signed and cannot take back
    Evidence,
    /// Takes the history that a remote agent's hub shows now, after it was found forked
    ForgetHistory {
        /// The agent's DID
        did: String,
    },
}

#[derive(Debug, clap::Args)]
struct Limit {
    /// Its domain
    domain: String,
    /// Messages per second that it may hand in
    #[arg(long)]
    items_per_sec: Option<u32>,
    /// Bytes per second that it may hand in
    #[arg(long)]
    bytes_per_sec: Option<u64>,
    /// Messages that may wait for it
    #[arg(long)]
    queue_items: Option<u32>,
    /// Takes back the limits that were set; combined with none of the others
    #[arg(long, conflicts_with_all = ["items_per_sec", "bytes_per_sec", "queue_items"])]
    reset: bool,
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
            Self::List => list(operator, as_json, PEERS_PATH, line).await,
            Self::Audit => list(operator, as_json, PEER_AUDIT_PATH, audit_line).await,
            Self::Evidence => list(operator, as_json, PEER_EVIDENCE_PATH, evidence_line).await,
            Self::Show { domain } => {
                let peer = operator.get(&path(PEER_PATH, domain)?).await?;
                print(&peer, as_json, |peer| {
                    serde_json::to_string_pretty(peer).unwrap_or_default()
                })
            }
            Self::Allow { domain } => stance(operator, as_json, domain, "allowed").await,
            Self::Block { domain } => stance(operator, as_json, domain, "blocked").await,
            Self::Undecide { domain } => stance(operator, as_json, domain, "undecided").await,
            Self::Limit(limit) => limit.carry_out(operator, as_json).await,
            Self::Repin { domain } => {
                tell(
                    operator,
                    as_json,
                    PEER_REPIN_PATH,
                    domain,
                    "repinned",
                    "shows a key that is taken at its next document",
                )
                .await
            }
            Self::Retry { domain } => {
                tell(
                    operator,
                    as_json,
                    PEER_RETRY_PATH,
                    domain,
                    "retried",
                    "is tried at once",
                )
                .await
            }
            Self::ForgetHistory { did } => forget_history(operator, as_json, did).await,
        }
    }
}

impl Limit {
    /// Without a number it is the stance `limited`.
    async fn carry_out(&self, operator: &Operator, as_json: bool) -> anyhow::Result<()> {
        let numbers = [
            self.items_per_sec.map(u64::from),
            self.bytes_per_sec,
            self.queue_items.map(u64::from),
        ];
        if !self.reset && numbers.iter().all(Option::is_none) {
            return stance(operator, as_json, &self.domain, "limited").await;
        }
        let [items, bytes, queue] = numbers;
        let body = json!({ "items_per_sec": items, "bytes_per_sec": bytes, "queue_items": queue });
        operator
            .call(Method::PUT, &path(PEER_LIMITS_PATH, &self.domain)?, &body)
            .await?;
        let said = json!({ "domain": self.domain, "limits": body });
        print(&said, as_json, |_| {
            format!("{} has the limits {body}", self.domain)
        })
    }
}

async fn stance(operator: &Operator, as_json: bool, domain: &str, stance: &str) -> anyhow::Result<()> {
    let body = json!({ "stance": stance });
    operator
        .call(Method::PUT, &path(PEER_STANCE_PATH, domain)?, &body)
        .await?;
    let said = json!({ "domain": domain, "stance": stance });
    print(&said, as_json, |_| format!("{domain} is {stance}"))
}

/// Asks for something to be done with a peer.
async fn tell(
    operator: &Operator,
    as_json: bool,
    template: &str,
    domain: &str,
    state: &str,
    words: &str,
) -> anyhow::Result<()> {
    operator
        .call(Method::POST, &path(template, domain)?, &json!({}))
        .await?;
    let said = json!({ "domain": domain, "state": state });
    print(&said, as_json, |_| format!("{domain} {words}"))
}

async fn forget_history(operator: &Operator, as_json: bool, did: &str) -> anyhow::Result<()> {
    let did = Did::parse_input(did).map_err(|refusal| anyhow::anyhow!("{did:?} is no DID: {refusal}"))?;
    operator
        .delete(&HISTORY_PATH.replace("{did}", &did.as_str().replace('%', "%25")))
        .await?;
    let said = json!({ "did": did.as_str(), "state": "forgotten" });
    print(&said, as_json, |_| {
        format!("what its hub shows of {did} is taken at the next look")
    })
}

/// A path with the domain in it. Parsed here, so that what is put into the path is a domain and nothing else.
fn path(template: &str, domain: &str) -> anyhow::Result<String> {
    let parsed =
        Domain::parse(domain).map_err(|refusal| anyhow::anyhow!("{domain:?} is no domain: {refusal}"))?;
    Ok(template.replace("{domain}", parsed.as_str()))
}

fn line(peer: &Value) -> String {
    let frozen = peer.get("frozen").filter(|frozen| !frozen.is_null());
    let state = frozen.map_or_else(
        || text(peer, "stance"),
        |frozen| format!("frozen: {}", text(frozen, "code")),
    );
    format!(
        "{:<30} {state:<20} last in {}  last out {}  {} messages taken in",
        text(peer, "domain"),
        text(peer, "last_in"),
        text(peer, "last_out"),
        text(peer, "good_items")
    )
}

fn audit_line(entry: &Value) -> String {
    format!(
        "{}  {:<8} {:<8} {}  {}",
        text(entry, "at"),
        text(entry, "actor"),
        text(entry, "action"),
        text(entry, "peer"),
        text(entry, "detail")
    )
}

fn evidence_line(evidence: &Value) -> String {
    let objects = evidence.get("objects").map(Value::to_string).unwrap_or_default();
    format!(
        "{}  {}  {}  {}  {objects}",
        text(evidence, "at"),
        text(evidence, "peer"),
        text(evidence, "code"),
        text(evidence, "subject")
    )
}
