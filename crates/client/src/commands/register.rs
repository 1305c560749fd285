//! `aip register NAME`: makes keys and takes a name at the hub.

use aip_client::{Client, KeyFile, Registration, Resolved};
use serde_json::json;

use super::Outcome;
use crate::cli::values::{self, Wanted};
use crate::context::{Context, new_passphrase};
use crate::failure::Failure;
use crate::output::note;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The name to take, such as alice
    #[arg(value_parser = values::wanted)]
    name: Wanted,
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
    let path = context.key_path()?;
    let had_keys = KeyFile::at(&path).exists();
    let file = key_file(context, args.passphrase)?;
    let client = context.client_without_keys(Some(file.clone()))?;
    check_hub(&client, &args.name, &file).await?;
    let registration = Registration {
        invite: args.invite.clone(),
        direct: args.direct.clone(),
        profile: None,
    };
    let resolved = client.register(args.name.name.as_str(), registration).await?;
    if had_keys {
        say_what_was_not_used(&args, &file, &resolved)?;
    }
    let handle = resolved.identity.did().handle();
    let value = json!({
        "handle": handle,
        "did": resolved.identity.did(),
        "route_mode": resolved.answer.route_mode,
        "endpoint": resolved.answer.endpoint,
        "hub": client.hub_url(),
        "key_file": file.path(),
        "had_keys": had_keys,
    });
    let keys = file.path().display();
    let keys = if had_keys {
        format!("The keys in {keys} were there before, and were used as they are.")
    } else {
        format!("The keys are in {keys}; keep a copy with `aip export`.")
    };
    let lines = format!("You are {handle} ({}).\n{keys}", resolved.identity.did());
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

/// A name is taken at the hub that is asked, with keys of that hub or fresh ones: anything else is a mistake, and is
/// called one before something is sent.
async fn check_hub(client: &Client, wanted: &Wanted, file: &KeyFile) -> Result<(), Failure> {
    let own = client.did();
    if let Some(own) = own.as_ref().filter(|own| own.name() != wanted.name.as_str()) {
        return Err(Failure::Usage(format!(
            "{} holds the keys of {}; to be {} as well, name another key file with --key or AIP_KEY",
            file.path().display(),
            own.handle(),
            wanted.name,
        )));
    }
    if own.is_none() && wanted.domain.is_none() {
        return Ok(());
    }
    let (url, domain) = (client.hub_url(), client.hub().await?.domain.as_str());
    if let Some(own) = own.filter(|own| own.domain().as_str() != domain) {
        return Err(Failure::Usage(format!(
            "{} holds the keys of {}, and the hub at {url} is that of {domain}; name another key file with --key \
             or AIP_KEY",
            file.path().display(),
            own.handle(),
        )));
    }
    if let Some(asked) = wanted.domain.as_ref().filter(|asked| asked.as_str() != domain) {
        return Err(Failure::Usage(format!(
            "the hub at {url} gives names of {domain}, not of {}; give the name alone, as `aip register {}`, or \
             name the other hub with --hub",
            asked.as_str(),
            wanted.name,
        )));
    }
    Ok(())
}

/// Keys that were there keep their form, and an agent that has registered keeps its endpoint.
fn say_what_was_not_used(args: &Args, file: &KeyFile, resolved: &Resolved) -> Result<(), Failure> {
    if args.passphrase && !file.is_sealed()? {
        note(
            "--passphrase was not used: the key file was there before; `aip export` writes a sealed copy of it",
        );
    }
    let endpoint = resolved.answer.endpoint.as_deref();
    if args.direct.is_some() && args.direct.as_deref() != endpoint {
        note("--direct was not used: the agent has registered before");
    }
    Ok(())
}
