//! `aip move --to HUB`: takes the agent to another hub.

use aip_client::Move;
use serde_json::json;

use super::Outcome;
use crate::context::Context;

/// The agent gets a new identity at the other hub, signed with the rotation key of the old one, and the old one names it: who
/// writes to the old name reaches the new one. Mail that was under way is received by `aip listen` as before. The same
/// command again finishes a move that was interrupted. Stop `aip listen` first.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The hub to move to
    #[arg(long, value_name = "URL")]
    to: String,
    /// Another name there
    #[arg(long)]
    name: Option<String>,
    /// An invite of that hub
    #[arg(long)]
    invite: Option<String>,
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let client = context.client()?;
    let options = Move {
        name: args.name,
        invite: args.invite,
    };
    let moved = client.move_to(&args.to, options).await?;
    let value = json!({"from": moved.from, "to": moved.to, "hub": moved.client.hub_url()});
    let (from, to) = (moved.from.handle(), moved.to.handle());
    let lines =
        format!("{from} is {to} now\nmail that was under way to {from} still comes with `aip listen`");
    Ok(context.output.show(&value, &lines)?)
}
