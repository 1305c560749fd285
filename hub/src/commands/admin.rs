//! `aip-hub admin`: agents, quotas and invites of the running hub.

use std::process::ExitCode;

use aip_protocol::name::Name;
use aip_registry::grants::InviteId;
use anyhow::Context as _;
use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

use super::operator::{Operator, block_on};
use super::output;
use super::source::Source;
use crate::routes::admin::{AGENTS_PATH, INVITE_PATH, INVITES_PATH, QUOTA_PATH, STANDING_PATH};

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
    /// Lists the agents of this hub
    List,
    /// Ends sending and receiving of an agent; its mail stays
    Suspend {
        /// Its name, such as alice
        name: String,
    },
    /// Lets a suspended agent back in
    Unsuspend {
        /// Its name
        name: String,
    },
    /// Sets the mailbox quota of an agent; an option that is left out means the hub's own
    Quota {
        /// Its name
        name: String,
        /// Unacked messages in its mailbox
        #[arg(long)]
        mailbox_messages: Option<u64>,
        /// Their bytes
        #[arg(long)]
        mailbox_bytes: Option<u64>,
        /// Unacked messages of one sender in it
        #[arg(long)]
        sender_messages: Option<u64>,
    },
    /// Invites, for hubs that register by invite
    #[command(subcommand)]
    Invite(Invite),
}

#[derive(Debug, Subcommand)]
enum Invite {
    /// Makes an invite and prints its code, which is shown only this once
    Create {
        /// How many agents it lets in
        #[arg(long, default_value_t = 1)]
        uses: u32,
        /// After how many days it ends; never, if left out
        #[arg(long)]
        days: Option<u32>,
        /// A note for yourself
        #[arg(long, default_value = "")]
        note: String,
    },
    /// Lists all invites
    List,
    /// Ends an invite
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
            Self::List => list(operator, as_json, AGENTS_PATH, agent_line).await,
            Self::Invite(invite) => invite.carry_out(operator, as_json).await,
            Self::Suspend { name } => {
                put(operator, STANDING_PATH, name, &json!({ "standing": "suspended" })).await?;
                done(name, as_json, &json!({ "standing": "suspended" }), "is suspended")
            }
            Self::Unsuspend { name } => {
                put(operator, STANDING_PATH, name, &json!({ "standing": "active" })).await?;
                done(name, as_json, &json!({ "standing": "active" }), "is active")
            }
            Self::Quota {
                name,
                mailbox_messages,
                mailbox_bytes,
                sender_messages,
            } => {
                let quota = json!({
                    "mailbox_messages": mailbox_messages,
                    "mailbox_bytes": mailbox_bytes,
                    "sender_messages": sender_messages,
                });
                put(operator, QUOTA_PATH, name, &quota).await?;
                done(name, as_json, &json!({ "quota": &quota }), &quota_words(&quota))
            }
        }
    }
}

async fn put(operator: &Operator, path: &str, name: &str, body: &Value) -> anyhow::Result<()> {
    // Parsed here, so that what is put into the path is a name and nothing else.
    let name = Name::parse(name).map_err(|refusal| anyhow::anyhow!("{name:?} is no name: {refusal}"))?;
    operator
        .call(Method::PUT, &path.replace("{name}", name.as_str()), body)
        .await?;
    Ok(())
}

/// Says what is so now of an agent: `change` for programs, `words` for people.
fn done(name: &str, as_json: bool, change: &Value, words: &str) -> anyhow::Result<()> {
    let mut said = json!({ "name": name });
    if let (Some(said), Some(change)) = (said.as_object_mut(), change.as_object()) {
        said.extend(change.clone());
    }
    print(&said, as_json, |_| format!("{name} {words}"))
}

fn quota_words(quota: &Value) -> String {
    match own_quota(quota) {
        own if own.is_empty() => "has the hub's own quota".to_owned(),
        own => format!(
            "has the quota {}; what is not named is the hub's own",
            own.trim_start()
        ),
    }
}

impl Invite {
    async fn carry_out(&self, operator: &Operator, as_json: bool) -> anyhow::Result<()> {
        match self {
            Self::List => list(operator, as_json, INVITES_PATH, invite_line).await,
            Self::Create { uses, days, note } => {
                let body = json!({ "uses": uses, "days": days, "note": note });
                let invite = operator.call(Method::POST, INVITES_PATH, &body).await?;
                print(&invite, as_json, |invite| text(invite, "code"))
            }
            Self::Revoke { id } => {
                let id = InviteId::parse(id).context("an invite's id is 16 hexadecimal digits, as listed")?;
                operator.delete(&INVITE_PATH.replace("{id}", id.as_str())).await?;
                let said = json!({ "id": id.as_str(), "state": "revoked" });
                print(&said, as_json, |_| format!("{id} is revoked"))
            }
        }
    }
}

/// Follows the pages to the end; one line an item.
pub(super) async fn list(
    operator: &Operator,
    as_json: bool,
    path: &str,
    line: fn(&Value) -> String,
) -> anyhow::Result<()> {
    let mut after: Option<String> = None;
    loop {
        // Cursors are names, ids, domains and numbers: none needs an encoding.
        let query = after.map_or_else(String::new, |after| format!("?after={after}"));
        let page = operator.get(&format!("{path}{query}")).await?;
        for item in page.get("items").and_then(Value::as_array).into_iter().flatten() {
            print(item, as_json, line)?;
        }
        let cursor = page.get("next_cursor").filter(|cursor| !cursor.is_null());
        after = cursor.map(|_| text(&page, "next_cursor"));
        if after.is_none() {
            return Ok(());
        }
    }
}

pub(super) fn print(item: &Value, as_json: bool, line: impl Fn(&Value) -> String) -> anyhow::Result<()> {
    output::line(&if as_json { item.to_string() } else { line(item) })?;
    Ok(())
}

fn agent_line(agent: &Value) -> String {
    let own = agent.get("quota").map(own_quota).unwrap_or_default();
    let (standing, registered_at) = (text(agent, "standing"), text(agent, "registered_at"));
    format!("{standing:<10} {registered_at}  {}{own}", text(agent, "name"))
}

/// What of a quota is the agent's own.
fn own_quota(quota: &Value) -> String {
    let members = quota.as_object().into_iter().flatten();
    let own = members.filter(|(_, value)| !value.is_null());
    let own: Vec<String> = own.map(|(key, value)| format!("  {key}={value}")).collect();
    own.concat()
}

fn invite_line(invite: &Value) -> String {
    format!(
        "{}  {:<8} {} of {} uses left  {}",
        text(invite, "id"),
        text(invite, "state"),
        text(invite, "uses_left"),
        text(invite, "uses_max"),
        text(invite, "note")
    )
}

pub(super) fn text(value: &Value, member: &str) -> String {
    match value.get(member) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => "-".to_owned(),
        Some(other) => other.to_string(),
    }
}
