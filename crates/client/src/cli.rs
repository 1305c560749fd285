//! The command line of `aip`.

#[cfg(test)]
mod tests;
pub(crate) mod values;

use std::path::PathBuf;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Args, Parser, Subcommand};

use crate::commands;

/// Speak AIP: names, sealed mail, and what arrives.
#[derive(Debug, Parser)]
#[command(name = "aip", version, about, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Reads the command line; ends the process where it asks for help, or makes no sense.
    pub(crate) fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| hinted(error).exit())
    }
}

/// With a word on the one option whose value is joined to it: an input may follow it.
fn hinted(mut error: clap::Error) -> clap::Error {
    let is_channel = matches!(
        error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(argument)) if argument.starts_with("ch_")
    );
    if error.kind() == ErrorKind::UnknownArgument && is_channel {
        let tip = StyledStr::from("a channel to pay from is named as --channel=ID");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

const EXIT_CODES: &str = "\
Agents are named as alice#example.org, alice@example.org, @alice@example.org, or did:aip:example.org:alice.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused by the hub (code and reason are printed).
A key file that is sealed asks for its passphrase, or takes it from AIP_PASSPHRASE.";

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "For every command")]
pub(crate) struct Global {
    /// The hub; by default the one that the key file names
    #[arg(long, global = true, env = "AIP_HUB", value_name = "URL")]
    pub(crate) hub: Option<String>,
    /// The key file; by default ~/.config/aip/agent.key
    #[arg(long, global = true, env = "AIP_KEY", value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Print JSON, one value per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Also speak plain http to hubs on other machines
    #[arg(long, global = true)]
    pub(crate) allow_http: bool,
    /// Say on the standard error what happens; twice says more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make keys and take a name at the hub
    Register(commands::register::Args),
    /// Look an agent up and check its identity
    Resolve(commands::resolve::Args),
    /// Seal a message and send it
    Send(commands::send::Args),
    /// Find what agents offer
    Search(commands::search::Args),
    /// Offer something: publish, import, delete, look at listings
    #[command(visible_alias = "list")]
    Listing(commands::listing::Args),
    /// Details of something that is offered: ask for them, answer for ours
    Offer(commands::offer::Args),
    /// Call a capability, and pay for it
    Invoke(commands::invoke::Args),
    /// Calls that were begun and are answered later
    Job(commands::job::Args),
    /// Money set aside for calls, with a secret that spends it
    Channel(commands::channel::Args),
    /// Our account at the hub, and its keys
    Account(commands::account::Args),
    /// What was paid and signed: show it, check it
    Receipt(commands::receipt::Args),
    /// Answer calls of what we sell by running a command
    Serve(commands::serve::Args),
    /// Receive messages as they come
    Listen(commands::listen::Args),
    /// Fetch the messages that wait
    ///
    /// Fetching counts as an attempt to deliver: what is not acknowledged is offered eight times, then it goes to the
    /// dead letters, from where `aip dead redrive` brings it back.
    Inbox(commands::inbox::Args),
    /// What became of a message
    Status(commands::status::Args),
    /// The receipts that came for messages of ours
    Receipts(commands::receipts::Args),
    /// Replace the keys
    Rotate(commands::rotate::Args),
    /// Take the agent to another hub
    Move(commands::r#move::Args),
    /// Who the key file says we are
    Whoami,
    /// Messages that could not be delivered to us
    Dead(commands::dead::Args),
    /// Write the keys to a file, to be imported elsewhere
    Export(commands::export::Args),
    /// Take keys that were exported
    Import(commands::import::Args),
    /// End the agent, for ever
    Deactivate(commands::deactivate::Args),
}
