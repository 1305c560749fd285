//! The frames of spec §6 as text, both ways. Envelopes are cut out of frames and put into frames as bytes: what an
//! agent signed is never parsed and written anew.

use std::borrow::Cow;
use std::fmt::Write as _;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use aip_relay::inbox::{Item, Ready};
use aip_relay::mailbox::Epoch;
use aip_relay::presence::StatusUpdate;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::limits::REF_BYTES_MAX;

/// A frame of an agent.
pub(super) enum Frame {
    Auth(Auth),
    Ack {
        epoch: String,
        upto: u64,
        also: Vec<u64>,
    },
    Nak {
        epoch: String,
        seq: u64,
        retry_after_secs: u64,
    },
    Reject {
        epoch: String,
        seq: u64,
        code: String,
    },
    Credit {
        messages: u32,
    },
    Send {
        reference: String,
        envelope: Bytes,
    },
}

/// The members of `auth`; which of them are needed is judged when signing in.
pub(super) struct Auth {
    pub(super) did: Option<String>,
    pub(super) kid: Option<String>,
    pub(super) sig: Option<String>,
    pub(super) token: Option<String>,
    pub(super) credit: Option<u32>,
    pub(super) share: bool,
}

/// No frame of this protocol: close code 4400.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// All members of all frames. Unknown ones are ignored, so that a newer client can talk to an older hub; one that is
/// given twice is not.
#[derive(Deserialize)]
struct Members<'a> {
    t: String,
    did: Option<String>,
    kid: Option<String>,
    sig: Option<String>,
    token: Option<String>,
    credit: Option<u64>,
    share: Option<bool>,
    epoch: Option<String>,
    upto: Option<u64>,
    also: Option<Vec<u64>>,
    seq: Option<u64>,
    retry_after_s: Option<u64>,
    code: Option<String>,
    n: Option<u64>,
    r#ref: Option<String>,
    #[serde(borrow)]
    envelope: Option<&'a RawValue>,
}

impl Frame {
    /// Reads a text frame.
    pub(super) fn parse(text: &Bytes) -> Result<Self, Unreadable> {
        let members: Members<'_> = serde_json::from_slice(text).map_err(|_no_frame| Unreadable)?;
        members.into_frame(text).ok_or(Unreadable)
    }
}

impl Members<'_> {
    fn into_frame(self, text: &Bytes) -> Option<Frame> {
        let messages = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let frame = match self.t.as_str() {
            "auth" => Frame::Auth(Auth {
                did: self.did,
                kid: self.kid,
                sig: self.sig,
                token: self.token,
                credit: self.credit.map(messages),
                share: self.share.unwrap_or(false),
            }),
            "ack" => {
                let also = self.also.unwrap_or_default();
                Frame::Ack {
                    epoch: self.epoch?,
                    upto: self.upto?,
                    also,
                }
            }
            "nak" => Frame::Nak {
                epoch: self.epoch?,
                seq: self.seq?,
                retry_after_secs: self.retry_after_s?,
            },
            "reject" => Frame::Reject {
                epoch: self.epoch?,
                seq: self.seq?,
                code: self.code?,
            },
            "credit" => Frame::Credit {
                messages: messages(self.n?),
            },
            "send" => {
                let reference = self.r#ref.filter(|name| name.len() <= REF_BYTES_MAX)?;
                // A part of the frame's own bytes, not a copy.
                Frame::Send {
                    reference,
                    envelope: text.slice_ref(self.envelope?.get().as_bytes()),
                }
            }
            _ => return None,
        };
        Some(frame)
    }
}

/// The first frame: what the agent signs, and for whom.
pub(super) fn challenge(challenge: &str, domain: &Domain, server_time: Timestamp) -> String {
    json!({ "t": "challenge", "challenge": challenge, "domain": domain.as_str(), "server_time": server_time })
        .to_string()
}

/// The session has begun.
pub(super) fn ready(ready: &Ready) -> String {
    json!({
        "t": "ready",
        "session": ready.session.to_string(),
        "epoch": ready.epoch.as_str(),
        "floor": ready.floor,
        "pending": ready.pending,
    })
    .to_string()
}

/// A frame of the agent was refused.
pub(super) fn error(code: ErrorCode, detail: &str) -> String {
    json!({ "t": "error", "code": code, "detail": detail }).to_string()
}

/// An ack is durable.
pub(super) fn acked(epoch: &Epoch, floor: u64) -> String {
    format!("{{\"t\":\"acked\",\"epoch\":\"{epoch}\",\"floor\":{floor}}}")
}

/// News of a message that the agent sent.
pub(super) fn status(update: &StatusUpdate) -> String {
    let mut frame = json!({
        "t": "status",
        "id": update.id.hyphenated().to_string(),
        "to": update.to.as_str(),
        "status": update.status.as_str(),
        "at": update.at,
    });
    if let (Some(code), Some(members)) = (&update.code, frame.as_object_mut()) {
        members.insert("code".to_owned(), code.as_str().into());
    }
    frame.to_string()
}

/// The answer to a `send`.
pub(super) fn sent(reference: &str, mut answer: Map<String, Value>) -> String {
    answer.insert("t".to_owned(), "sent".into());
    answer.insert("ref".to_owned(), reference.into());
    Value::Object(answer).to_string()
}

/// The answer to a `send` that is refused before it is looked at.
pub(super) fn refusal(reference: &str, refusal: &Refusal) -> String {
    sent(reference, crate::routes::messages::refused(refusal))
}

/// A message. The envelope stands in it as the sender wrote it.
pub(super) fn message(epoch: &Epoch, item: &Item) -> String {
    // What the members around the envelope take at most.
    const AROUND_BYTES: usize = 192;
    let mut frame = String::with_capacity(item.wire.len() + AROUND_BYTES);
    let Item {
        seq,
        attempt,
        accepted_at,
        wire,
    } = item;
    // Writing to a string cannot fail.
    let _written = write!(
        frame,
        "{{\"t\":\"msg\",\"epoch\":\"{epoch}\",\"seq\":{seq},\"attempt\":{attempt},\
         \"accepted_at\":\"{accepted_at}\",\"envelope\":"
    );
    // The hub took it in as strict JSON, so it is UTF-8 and nothing is replaced.
    let envelope = str::from_utf8(wire).map_or_else(|_| String::from_utf8_lossy(wire), Cow::Borrowed);
    frame.push_str(&envelope);
    frame.push('}');
    frame
}

#[cfg(test)]
mod tests;
