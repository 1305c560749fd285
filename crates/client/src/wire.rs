//! What a hub answers, as it stands on the wire (spec §3, §5, §6). Unknown members are ignored, so that a hub may grow.

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use uuid::Uuid;

/// The part of a hub's discovery document that a client uses (spec §8).
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct HubInfo {
    /// The domain of the hub's agents.
    pub domain: String,
    /// The URL under which the hub wants to be reached.
    pub hub: String,
    /// What it can do.
    #[serde(default)]
    pub features: Vec<String>,
    /// Its limits, by name.
    #[serde(default)]
    pub limits: Map<String, Value>,
    /// Name and version of its software.
    #[serde(default)]
    pub software: Value,
}

/// The answer of `GET /api/v1/resolve/…` (spec §3).
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct ResolveAnswer {
    /// `alice#aigentix.org`.
    pub handle: String,
    /// `did:aip:aigentix.org:alice`.
    pub did: Did,
    /// `direct` or `relay`.
    pub route_mode: String,
    /// Where envelopes are posted to.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// The DID document.
    pub did_document: Value,
    /// Where the identity history stands.
    pub history: HistorySummary,
    /// Until when the answer may be kept.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
}

/// `{seq, genesis, head}` of an identity history.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct HistorySummary {
    /// Number of the newest operation.
    pub seq: u64,
    /// Hash of operation 0.
    pub genesis: String,
    /// Hash of the newest operation.
    pub head: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct HistoryPage {
    pub(crate) operations: Vec<Box<RawValue>>,
    #[serde(default)]
    pub(crate) next_cursor: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ChallengeAnswer {
    pub(crate) challenge: String,
}

/// Not `Debug`: it holds a token.
#[derive(Deserialize)]
pub(crate) struct TokenAnswer {
    pub(crate) token: String,
    pub(crate) expires_at: Timestamp,
}

/// That a hub has taken a message (spec §5).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Sent {
    /// The message.
    #[serde(with = "uuid_text")]
    pub id: Uuid,
    /// `stored`, `delivered`, `queued`, or `duplicate`: the hub had these very bytes already.
    pub status: SentStatus,
    /// `mailbox`, `direct` or `peer`.
    #[serde(default)]
    pub route: Option<String>,
    /// Its place in the recipient's mailbox.
    #[serde(default)]
    pub seq: Option<u64>,
}

/// How a hub has taken a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SentStatus {
    /// In the recipient's mailbox, durably.
    Stored,
    /// The recipient's own endpoint has taken it.
    Delivered,
    /// In the outbox to the recipient's hub, durably.
    Queued,
    /// These very bytes were taken before; `seq` is that of the first time.
    Duplicate,
}

/// What became of a message, for its sender (spec §5). Also the shape of a status frame.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct MessageStatus {
    /// The message.
    #[serde(with = "uuid_text")]
    pub id: Uuid,
    /// Its recipient.
    #[serde(default)]
    pub to: Option<Did>,
    /// `queued`, `stored`, `delivered`, `acked`, `expired`, `refused` or `dead`.
    pub status: String,
    /// Why, where it was refused or is dead.
    #[serde(default)]
    pub code: Option<String>,
    /// When it last changed.
    #[serde(default)]
    pub at: Option<Timestamp>,
    /// The other members: the times of each state, as the hub gives them.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A UUID as its text.
pub(crate) mod uuid_text {
    use serde::{Deserialize, Deserializer, Serializer};
    use uuid::Uuid;

    pub(crate) fn serialize<S: Serializer>(id: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// One page of `GET /api/v1/inbox` (spec §6).
#[derive(Debug, Deserialize)]
pub(crate) struct InboxAnswer {
    pub(crate) epoch: String,
    pub(crate) floor: u64,
    pub(crate) items: Vec<InboxItem>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct InboxItem {
    pub(crate) seq: u64,
    pub(crate) attempt: u32,
    pub(crate) accepted_at: Timestamp,
    pub(crate) envelope: Box<RawValue>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct DeadAnswer {
    pub(crate) items: Vec<DeadItem>,
    #[serde(default)]
    pub(crate) next_cursor: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct DeadItem {
    pub(crate) seq: u64,
    pub(crate) code: String,
    pub(crate) at: Timestamp,
    pub(crate) envelope: Box<RawValue>,
}

/// A cursor of the hub's, to be given back as it is: text or a number.
pub(crate) fn cursor_text(cursor: &Value) -> Option<String> {
    match cursor {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// One path segment or query value, percent-encoded.
pub(crate) fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, RESERVED).to_string()
}

/// Everything but the unreserved characters of RFC 3986 §2.3.
const RESERVED: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_a_message_is_read() {
        let text = r#"{"id":"6f8f3f5e-2a52-4e0b-9a5f-6f0c6f1d7c11","status":"duplicate","route":"mailbox","seq":7,"x":1}"#;
        let sent: Sent = serde_json::from_str(text).unwrap();
        assert_eq!((sent.status, sent.seq), (SentStatus::Duplicate, Some(7)));
    }

    #[test]
    fn cursors_are_opaque() {
        assert_eq!(cursor_text(&Value::Null), None);
        assert_eq!(cursor_text(&Value::from("a:1")), Some("a:1".to_owned()));
        assert_eq!(cursor_text(&Value::from(9)), Some("9".to_owned()));
        assert_eq!(encoded("a:1/é"), "a%3A1%2F%C3%A9");
    }
}
