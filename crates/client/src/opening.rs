//! From an offered envelope to an opened message: is it for us, who signed it, what does it say (spec §4, §6).

use aip_protocol::envelope::Envelope;
use aip_protocol::identity::Identity;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::identities::Freshness;
use crate::message::{Content, Incoming};
use crate::session::frame::Offered;

/// What to do with an offered message.
#[derive(Debug)]
pub(crate) enum Judged {
    /// It is good.
    Good(Box<Incoming>),
    /// It never will be: to the dead letters, with this code.
    Bad(&'static str),
    /// The sender's identity cannot be looked up just now.
    Later(Error),
}

/// Why a message is not good.
pub(crate) const UNREADABLE: &str = "unreadable";
const SIGNATURE_INVALID: &str = "signature_invalid";
const SENDER_UNKNOWN: &str = "sender_unknown";
const RECIPIENT_MISMATCH: &str = "recipient_mismatch";
const HISTORY_FORKED: &str = "history_forked";

/// Age is not looked at: how fresh a message is was judged once, by the first hub.
pub(crate) async fn judge(client: &Client, offered: &Offered, envelope: Envelope) -> Result<Judged> {
    if envelope.to != *client.keys()?.did() {
        return Ok(Judged::Bad(RECIPIENT_MISMATCH));
    }
    match check_signature(client, &envelope, offered.accepted_at).await {
        Ok(true) => {}
        Ok(false) => return Ok(Judged::Bad(SIGNATURE_INVALID)),
        Err(Error::Forked { .. }) => return Ok(Judged::Bad(HISTORY_FORKED)),
        Err(error @ Error::Refused(_)) if !error.is_transient() => return Ok(Judged::Bad(SENDER_UNKNOWN)),
        Err(error) => return Ok(Judged::Later(error)),
    }
    Ok(match open(client, &envelope).await? {
        Some(content) => Judged::Good(Box::new(incoming(offered, envelope, content))),
        None => Judged::Bad(UNREADABLE),
    })
}

/// The sender may have rotated since its identity was last looked at, so a signature that does not check is checked once
/// more against a fresh look.
async fn check_signature(client: &Client, envelope: &Envelope, accepted_at: Timestamp) -> Result<bool> {
    let remembered = client.look_up(&envelope.from, Freshness::Remembered).await?;
    if is_signed(&remembered, envelope, accepted_at) {
        return Ok(true);
    }
    let fresh = client.look_up(&envelope.from, Freshness::Refreshed).await?;
    Ok(is_signed(&fresh, envelope, accepted_at))
}

/// What a first hub accepted stays accepted when its sender rotates, revokes or ends afterwards.
fn is_signed(sender: &Identity, envelope: &Envelope, accepted_at: Timestamp) -> bool {
    let key = sender.signing_key_accepted(&envelope.kid, envelope.created_at, accepted_at);
    key.is_some_and(|key| envelope.verify(key))
}

/// Another process may have rotated our keys, so a key that is not known is looked for once more in the key file.
async fn open(client: &Client, envelope: &Envelope) -> Result<Option<Content>> {
    if let Some(opened) = open_with_known_keys(client, envelope)? {
        return Ok(opened);
    }
    client.reload_keys().await?;
    Ok(open_with_known_keys(client, envelope)?.flatten())
}

/// `None`: no such key. `Some(None)`: the key is there and the body does not open with it.
fn open_with_known_keys(client: &Client, envelope: &Envelope) -> Result<Option<Option<Content>>> {
    let keys = client.keys()?;
    let Some(key) = keys.opener(&envelope.body_kid) else {
        return Ok(None);
    };
    Ok(Some(envelope.open(key).ok().and_then(Content::from_plaintext)))
}

/// The content of a letter that is only looked at, such as a dead one.
pub(crate) fn peek(client: &Client, envelope: &Envelope) -> Option<Content> {
    open_with_known_keys(client, envelope).ok().flatten().flatten()
}

fn incoming(offered: &Offered, envelope: Envelope, content: Content) -> Incoming {
    Incoming {
        epoch: offered.epoch.clone(),
        seq: offered.seq,
        attempt: offered.attempt,
        accepted_at: offered.accepted_at,
        from: Did::clone(&envelope.from),
        id: envelope.id,
        kind: envelope.kind.clone(),
        thread: envelope.thread.clone(),
        reply_to: envelope.reply_to.clone(),
        content,
        envelope,
    }
}
