//! `aip status ID`: what became of a message that was sent.

use aip_client::protocol::name::Did;
use uuid::Uuid;

use super::Outcome;
use crate::cli::values;
use crate::context::Context;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The message
    id: Uuid,
    /// Its recipient, when the same id went to several
    #[arg(long, value_name = "ID", value_parser = values::agent)]
    to: Option<Did>,
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let client = context.client()?;
    let status = client.status(args.id, args.to.as_ref().map(Did::as_str)).await?;
    let value = serde_json::to_value(&status).map_err(std::io::Error::from)?;
    // `expired` with the code `expired` says it once.
    let code = status.code.as_ref().filter(|code| **code != status.status);
    let code = code.map(|code| format!(" ({code})"));
    let to = status.to.as_ref().map(|to| format!(" for {}", to.handle()));
    let at = status.at.map(|at| format!(" at {at}"));
    let parts = [Some(format!("{} {}", status.id, status.status)), code, to, at];
    let lines: String = parts.into_iter().flatten().collect();
    Ok(context.output.show(&value, &lines)?)
}
