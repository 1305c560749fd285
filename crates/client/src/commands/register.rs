//! `aip register NAME`: makes keys and takes a name at the hub.

use aip_client::{KeyFile, Registration};
use serde_json::json;

use super::Outcome;
use crate::context::{Context, new_passphrase};
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The name to take, such as alice
    name: String,
    /// The invitation that the hub asks for
    #[arg(long, value_name = "CODE")]
    invite: Option<String>,
    /// An https endpoint of your own that mail goes to
    #[arg(long, value_name = "URL")]
    direct: Option<String>,
    /// Seal the key file with a passphrase
    #[arg(long)]
    passphrase: bool,
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let file = key_file(context, args.passphrase)?;
    let client = context.client_without_keys(Some(file.clone()))?;
    let registration = Registration {
        invite: args.invite,
        direct: args.direct,
        profile: None,
    };
    let resolved = client.register(&args.name, registration).await?;
    let handle = resolved.identity.did().handle();
    let value = json!({
        "handle": handle,
        "did": resolved.identity.did(),
        "route_mode": resolved.answer.route_mode,
        "endpoint": resolved.answer.endpoint,
        "hub": client.hub_url(),
        "key_file": file.path(),
    });
    let lines = format!(
        "You are {handle} ({}).\nThe keys are in {}; keep a copy with `aip export`.",
        resolved.identity.did(),
        file.path().display()
    );
    Ok(context.output.show(&value, &lines)?)
}

/// A file that exists is used: that finishes a registration whose answer was lost.
fn key_file(context: &Context, sealed: bool) -> Result<KeyFile, Failure> {
    let file = KeyFile::at(context.key_path()?);
    if file.exists() {
        return context.key_file();
    }
    if sealed {
        return Ok(file.with_passphrase(new_passphrase()?.as_str()));
    }
    Ok(file)
}
