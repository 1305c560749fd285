//! `aip whoami`: who the key file says we are. Asks no hub.

use serde_json::json;

use super::Outcome;
use crate::context::Context;

pub(crate) fn run(context: &Context) -> Outcome {
    let file = context.key_file()?;
    let sealed = file.is_sealed()?;
    let keys = file.load()?;
    let (did, handle) = (keys.did(), keys.did().handle());
    let unfinished = keys.has_unfinished_change();
    let value = json!({
        "handle": handle,
        "did": did,
        "hub": keys.hub(),
        "kid": keys.kid(),
        "key_file": file.path(),
        "sealed": sealed,
        "opening_keys": keys.opening().count(),
        "unfinished_change": unfinished,
    });
    let mut lines = format!(
        "{handle}\n{did}\nhub: {}\nsigns with: {}\nkey file: {}{}",
        keys.hub().unwrap_or("unknown"),
        keys.kid(),
        file.path().display(),
        if sealed { ", sealed with a passphrase" } else { "" },
    );
    if unfinished {
        lines.push_str("\na change of the identity is not confirmed yet; it is finished by the next one");
    }
    Ok(context.output.show(&value, &lines)?)
}
