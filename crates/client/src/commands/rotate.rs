//! `aip rotate`: replaces the keys.

use aip_client::Rotation;
use serde_json::json;

use super::Outcome;
use super::show::identity_line;
use crate::context::Context;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Call the old keys compromised: nobody accepts them from now on. Without it they stay good for 15 minutes, for
    /// messages on their way
    #[arg(long)]
    revoke_old: bool,
    /// Replace the rotation key too
    #[arg(long)]
    rotation: bool,
}

pub(crate) async fn run(context: &Context, args: Args) -> Outcome {
    let client = context.client()?;
    let rotation = Rotation {
        revoke_old: args.revoke_old,
        rotation_key: args.rotation,
    };
    let identity = client.rotate(rotation).await?;
    let kid = client.keys()?.kid();
    let value =
        json!({"did": identity.did(), "seq": identity.seq(), "head": identity.head_hash(), "kid": kid});
    let lines = format!("{}\nmessages are now signed with {kid}", identity_line(&identity));
    Ok(context.output.show(&value, &lines)?)
}
