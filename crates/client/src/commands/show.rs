//! How messages and agents are shown, the same in every command.

use aip_client::protocol::envelope::Envelope;
use aip_client::protocol::identity::Identity;
use aip_client::{Body, Content, Incoming};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

/// A message as JSON: header and content.
pub(super) fn message_json(message: &Incoming) -> Value {
    let mut value = json!({
        "epoch": message.epoch,
        "seq": message.seq,
        "attempt": message.attempt,
        "accepted_at": message.accepted_at,
        "from": message.from,
        "handle": message.from.handle(),
        "id": message.id.to_string(),
        "type": message.kind,
        "created_at": message.envelope.created_at,
        "thread": message.thread,
        "reply_to": message.reply_to,
    });
    if let Some(members) = value.as_object_mut() {
        members.extend(content_json(&message.content));
    }
    value
}

/// Content as JSON; bytes are base64url, and named differently so that nobody takes them for text.
pub(super) fn content_json(content: &Content) -> Map<String, Value> {
    let (name, value) = match &content.body {
        Body::Json(value) => ("body", value.clone()),
        Body::Text(text) => ("body", Value::from(text.as_str())),
        Body::Bytes(bytes) => ("body_base64url", Value::from(URL_SAFE_NO_PAD.encode(bytes))),
    };
    let content_type = (
        "content_type".to_owned(),
        Value::from(content.content_type.as_str()),
    );
    [content_type, (name.to_owned(), value)].into_iter().collect()
}

/// A message for people: a line about it, then what it says.
pub(super) fn message_text(message: &Incoming) -> String {
    let thread = message
        .thread
        .as_ref()
        .map(|thread| format!(" in {thread}"))
        .unwrap_or_default();
    let again = match message.attempt {
        0 | 1 => String::new(),
        attempt => format!(" (offered for the {} time)", ordinal(attempt)),
    };
    let (seq, kind, from) = (message.seq, &message.kind, message.from.handle());
    format!(
        "#{seq} {kind} from {from}{thread}{again}\n{}",
        content_text(&message.content)
    )
}

/// 2nd, 3rd, 11th, 22nd.
fn ordinal(number: u32) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// Content for people.
pub(super) fn content_text(content: &Content) -> String {
    match &content.body {
        Body::Text(text) | Body::Json(Value::String(text)) => text.clone(),
        Body::Json(value) => format!("{value:#}"),
        Body::Bytes(bytes) => format!("({} bytes of {})", bytes.len(), content.content_type),
    }
}

/// The header of an envelope whose sender was not verified, as JSON.
pub(super) fn envelope_json(envelope: &Envelope) -> Map<String, Value> {
    let value = json!({
        "from": envelope.from,
        "id": envelope.id.to_string(),
        "type": envelope.kind,
        "created_at": envelope.created_at,
    });
    value.as_object().cloned().unwrap_or_default()
}

/// Where an identity stands, in a line.
pub(super) fn identity_line(identity: &Identity) -> String {
    let changes = match identity.seq() {
        0 => "never changed".to_owned(),
        1 => "changed once".to_owned(),
        times => format!("changed {times} times"),
    };
    format!("{} ({changes}, head {})", identity.did(), identity.head_hash())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_are_english() {
        let said = [1, 2, 3, 4, 10, 11, 12, 13, 21, 22, 23, 101, 111, 112].map(ordinal);
        assert_eq!(
            said.join(" "),
            "1st 2nd 3rd 4th 10th 11th 12th 13th 21st 22nd 23rd 101st 111th 112th"
        );
    }
}
