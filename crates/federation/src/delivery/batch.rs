//! The body of a push, which is also that of backfill, built around the envelopes as they are stored.

use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;
use bytes::Bytes;
use serde::Deserialize;
use uuid::Uuid;

use super::Bounce;
use crate::outbox::{Fate, OutboxItem};

/// What an item needs in a body besides its envelope, at most.
pub(super) const ITEM_BYTES: usize = 96;
/// What a body needs besides its items, at most: a domain and an epoch.
pub(super) const FRAME_BYTES: usize = 512;

/// A message on its way, without its envelope.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) seq: u64,
    pub(super) accepted_at: Timestamp,
    pub(super) sender: Did,
    pub(super) recipient: Did,
    pub(super) id: Uuid,
}

impl Sent {
    pub(super) fn of(item: &OutboxItem) -> Self {
        Self {
            seq: item.peer_seq,
            accepted_at: item.accepted_at,
            sender: item.sender.clone(),
            recipient: item.recipient.clone(),
            id: item.id,
        }
    }

    /// What its sender is told, if there is something to tell.
    pub(super) fn bounce(&self, fate: &Fate) -> Option<Bounce> {
        let bounce = || Bounce {
            sender: self.sender.clone(),
            recipient: self.recipient.clone(),
            id: self.id,
            accepted_at: self.accepted_at,
            fate: fate.clone(),
        };
        matches!(fate, Fate::Refused(_) | Fate::Dead(_)).then(bounce)
    }
}

/// `{"aip":"1","domain","epoch","floor","items":[{"peer_seq","accepted_at","envelope"}]}`; the envelopes byte for byte.
pub(crate) fn body(domain: &Domain, epoch: &str, floor: u64, items: &[OutboxItem]) -> Bytes {
    let wires: usize = items.iter().map(|item| item.wire.len() + ITEM_BYTES).sum();
    let mut body = Vec::with_capacity(wires + FRAME_BYTES);
    // An epoch is the store's; whatever is in it, it becomes a JSON string.
    let epoch = serde_json::Value::from(epoch);
    body.extend_from_slice(
        format!("{{\"aip\":\"1\",\"domain\":\"{domain}\",\"epoch\":{epoch},\"floor\":{floor},\"items\":[")
            .as_bytes(),
    );
    for (place, item) in items.iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        let (seq, accepted_at) = (item.peer_seq, item.accepted_at);
        let head = format!("{comma}{{\"peer_seq\":{seq},\"accepted_at\":\"{accepted_at}\",\"envelope\":");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&item.wire);
        body.push(b'}');
    }
    body.extend_from_slice(b"]}");
    body.into()
}

/// The only member of an envelope that delivery reads.
#[derive(Deserialize)]
struct Expiring<'a> {
    #[serde(borrow, default)]
    expires_at: Option<std::borrow::Cow<'a, str>>,
}

/// The envelope's own expiry. It was checked when the message was accepted; one that cannot be read is none.
pub(super) fn expires_at(wire: &[u8]) -> Option<Timestamp> {
    let expiring: Expiring<'_> = serde_json::from_slice(wire).ok()?;
    Timestamp::parse(&expiring.expires_at?).ok()
}

#[cfg(test)]
mod tests {
    use aip_protocol::json::Json;
    use aip_protocol::peer::Batch;

    use super::*;

    fn item(seq: u64, wire: &'static str) -> OutboxItem {
        OutboxItem {
            peer_seq: seq,
            accepted_at: Timestamp::from_unix_millis(1_796_000_000_123),
            sender: Did::parse("did:aip:alpha.example:alice").unwrap(),
            recipient: Did::parse("did:aip:beta.example:bob").unwrap(),
            id: Uuid::from_u128(7),
            wire: Bytes::from_static(wire.as_bytes()),
        }
    }

    #[test]
    fn a_body_is_a_batch_and_holds_the_envelopes_as_they_are() {
        let domain = Domain::parse("alpha.example:8080").unwrap();
        let odd = r#"{ "b" : 1,"a":"é" }"#;
        let bytes = body(&domain, "a\"b", 2, &[item(3, odd), item(u64::MAX >> 12, "{}")]);
        let text = std::str::from_utf8(&bytes).unwrap();
        assert!(text.contains(&format!("\"envelope\":{odd}}}")), "{text}");
        let batch = Batch::from_json(&Json::parse(&bytes).unwrap(), "alpha.example:8080").unwrap();
        assert_eq!((batch.epoch.as_str(), batch.items.len()), ("a\"b", 2));
        assert_eq!(batch.items[0].peer_seq, 3);
        let empty = body(&domain, "e", 0, &[]);
        assert_eq!(
            &empty[..],
            br#"{"aip":"1","domain":"alpha.example:8080","epoch":"e","floor":0,"items":[]}"#
        );
        assert!(bytes.len() - odd.len() - 2 <= FRAME_BYTES + 2 * ITEM_BYTES);
    }

    #[test]
    fn the_expiry_is_read_and_nothing_else() {
        let at = expires_at(br#"{"x":[1.5,{"expires_at":"no"}],"expires_at":"2026-12-06T20:15:30Z"}"#);
        assert_eq!(at, Some(Timestamp::parse("2026-12-06T20:15:30Z").unwrap()));
        assert_eq!(expires_at(br#"{"a":1}"#), None);
        assert_eq!(expires_at(b"not json"), None);
    }
}
