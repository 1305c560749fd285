//! `aip deactivate --yes`: ends the agent, for ever.

use serde_json::json;

use super::Outcome;
use crate::context::Context;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Yes, for ever: the name stays taken, and nothing brings the agent back
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let client = context.client()?;
    let handle = client.keys()?.did().handle();
    if !args.yes {
        return Err(Failure::Usage(format!(
            "this ends {handle} for ever; if that is meant, add --yes"
        )));
    }
    let identity = client.deactivate().await?;
    let value = json!({"did": identity.did(), "deactivated": identity.is_deactivated()});
    Ok(context.output.show(&value, &format!("{handle} has ended"))?)
}
