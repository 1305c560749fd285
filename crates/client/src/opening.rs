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
    /// That cannot be told just now, for this reason.
    Later(String),
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
        Ok(Signed::Yes) => {}
        Ok(Signed::No) => return Ok(Judged::Bad(SIGNATURE_INVALID)),
        Ok(Signed::AskLater) => return Ok(Judged::Later("its sender was looked up just now".to_owned())),
        Err(Error::Forked { .. }) => return Ok(Judged::Bad(HISTORY_FORKED)),
        // A proxy that has no hub to ask does not make a sender unknown.
        Err(Error::Refused(problem)) if problem.is_of_hub() && !problem.is_transient() => {
            return Ok(Judged::Bad(SENDER_UNKNOWN));
        }
        Err(error) => return Ok(Judged::Later(error.to_string())),
    }
    Ok(match open(client, &envelope).await? {
        Some(opened) => Judged::Good(Box::new(incoming(offered, envelope, opened))),
        None => Judged::Bad(UNREADABLE),
    })
}

enum Signed {
    Yes,
    No,
    AskLater,
}

/// The sender may have rotated since its identity was last looked at, so a signature that does not check is checked once
/// more against a fresh look. No message is called bad without one; where it was had just now, the message waits.
async fn check_signature(client: &Client, envelope: &Envelope, accepted_at: Timestamp) -> Result<Signed> {
    let remembered = client.look_up(&envelope.from, Freshness::Remembered).await?;
    if is_signed(&remembered, envelope, accepted_at) {
        return Ok(Signed::Yes);
    }
    if !client.may_doubt(&envelope.from) {
        return Ok(Signed::AskLater);
    }
    let fresh = client.look_up(&envelope.from, Freshness::Asked).await?;
    Ok(if is_signed(&fresh, envelope, accepted_at) {
        Signed::Yes
    } else {
        Signed::No
    })
}

/// What a first hub accepted stays accepted when its sender rotates, revokes or ends afterwards.
fn is_signed(sender: &Identity, envelope: &Envelope, accepted_at: Timestamp) -> bool {
    let key = sender.signing_key_accepted(&envelope.kid, envelope.created_at, accepted_at);
    key.is_some_and(|key| envelope.verify(key))
}

/// Another process may have rotated our keys, so a key that is not known is looked for once more in the key file.
async fn open(client: &Client, envelope: &Envelope) -> Result<Option<Opened>> {
    if client.keys()?.opener(&envelope.body_kid).is_none() {
        client.reload_keys().await?;
    }
    Ok(unseal(client, envelope))
}

/// What the sealed body says, and whether it asks for a receipt.
struct Opened {
    content: Content,
    asks_receipt: bool,
}

fn unseal(client: &Client, envelope: &Envelope) -> Option<Opened> {
    let keys = client.keys().ok()?;
    let plaintext = envelope.open(keys.opener(&envelope.body_kid)?).ok()?;
    Some(Opened {
        asks_receipt: plaintext.ask_receipt,
        content: Content::from_plaintext(plaintext)?,
    })
}

/// The content, if one of our keys opens it. Says nothing of who sealed it.
pub(crate) fn peek(client: &Client, envelope: &Envelope) -> Option<Content> {
    unseal(client, envelope).map(|opened| opened.content)
}

fn incoming(offered: &Offered, envelope: Envelope, opened: Opened) -> Incoming {
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
        content: opened.content,
        asks_receipt: opened.asks_receipt,
        envelope,
    }
}
