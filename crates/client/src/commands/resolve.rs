//! `aip resolve ID`: looks an agent up and checks its identity.

use aip_client::protocol::identity::Operation;
use aip_client::protocol::json::Json;
use aip_client::protocol::name::Did;
use serde_json::{Value, json};

use super::Outcome;
use super::show::identity_line;
use crate::cli::values;
use crate::context::Context;
use crate::output::note;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The agent
    #[arg(value_name = "ID", value_parser = values::agent)]
    id: Did,
    /// Show every operation of its identity
    #[arg(long)]
    history: bool,
    /// Take the identity that the hub gives out now, although it does not extend the one known before
    #[arg(long)]
    repin: bool,
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let client = context.client_without_keys(None)?;
    if args.repin {
        let identity = client.repin(args.id.as_str()).await?;
        note(&format!("pinned: {}", identity_line(&identity)));
    }
    let resolved = client.resolve(args.id.as_str()).await?;
    let did = resolved.identity.did();
    if *did != args.id {
        note(&format!("{} has moved to {}", args.id.handle(), did.handle()));
    }
    if let Some(claimed) = resolved
        .identity
        .head()
        .json
        .get("moved_to")
        .and_then(Json::as_str)
    {
        note(&format!(
            "it says that it moved to {claimed}, which that agent does not confirm"
        ));
    }
    let mut value = serde_json::to_value(&resolved.answer).map_err(std::io::Error::from)?;
    let endpoint = resolved.answer.endpoint.as_deref().unwrap_or("nowhere");
    let mut lines = format!(
        "{}\n{}\nroute: {} to {endpoint}",
        resolved.identity.did().handle(),
        identity_line(&resolved.identity),
        resolved.answer.route_mode,
    );
    if args.history {
        let operations = client.history(args.id.as_str()).await?;
        let line = |operation: &Operation| {
            format!(
                "
{:>4} {} signed with {}",
                operation.seq, operation.created_at, operation.kid
            )
        };
        lines.extend(operations.iter().map(line));
        let operations: Vec<Value> = operations
            .into_iter()
            .map(|operation| operation.json.into())
            .collect();
        value = json!({"resolved": value, "operations": operations});
    }
    Ok(context.output.show(&value, &lines)?)
}
