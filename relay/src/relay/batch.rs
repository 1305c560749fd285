//! Several envelopes in one request (spec §5): each judged on its own, mailbox order as in the array.

use std::fmt;
use std::sync::Arc;

use aip_protocol::envelope::Envelope;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::name::Did;
use bytes::Bytes;
use futures_util::future::join_all;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;
use tokio::task::coop::unconstrained;
use uuid::Uuid;

use super::outcome::{BatchItem, SendError, Submission};
use super::outlive::Outlive;
use super::{Admitted, Relay, Way};
use crate::admission::Door;

/// Whether a body holds several envelopes: its first character opens an array.
pub fn is_batch(body: &[u8]) -> bool {
    body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

impl Relay {
    /// Takes in an array of envelopes. The results have the order of the array; one that is refused does not touch
    /// the others, and the messages to one mailbox are stored in the order of the array.
    ///
    /// # Errors
    ///
    /// The array as a whole is refused when it is no JSON array, holds too many envelopes or too many bytes.
    pub async fn submit_batch(self: &Arc<Self>, body: Bytes, door: &Door) -> Result<Vec<BatchItem>, Refusal> {
        let wires = split(
            &body,
            self.config.batch_envelopes_max,
            self.config.batch_bytes_max,
        )?;
        let mut items = Vec::with_capacity(wires.len());
        let mut groups: Vec<Group> = Vec::new();
        for (index, wire) in wires.iter().enumerate() {
            // Judging one costs a signature check: let other requests of this thread have their turn in between.
            tokio::task::yield_now().await;
            match self.admit(wire, door).await {
                Ok(admitted) => {
                    let id = Some(admitted.candidate.envelope.id);
                    // Until its group is done.
                    items.push(BatchItem {
                        id,
                        result: Err(SendError::Interrupted),
                    });
                    put(&mut groups, index, admitted);
                }
                Err(error) => {
                    self.stats.count_error(&error);
                    items.push(BatchItem {
                        id: id_of(wire, self.config.envelope_bytes_max),
                        result: Err(error),
                    });
                }
            }
        }
        let relay = Arc::clone(self);
        let deliveries =
            async move { join_all(groups.into_iter().map(|group| relay.deliver_group(group))).await };
        for (index, result) in Outlive::new(&self.tasks, deliveries).await.into_iter().flatten() {
            if let Some(item) = items.get_mut(index) {
                item.result = result;
            }
        }
        Ok(items)
    }

    /// The messages to one recipient, in order.
    async fn deliver_group(&self, group: Group) -> Vec<(usize, Result<Submission, SendError>)> {
        let Group { members, .. } = group;
        let is_direct = |admitted: &Admitted| matches!(admitted.way, Way::Direct(_));
        if !members.iter().any(|(_, admitted)| is_direct(admitted)) {
            // Started in order, which is the order in the mailbox, and committed together. Without the runtime's
            // budget: one that is made to yield half-way would start the rest in another order.
            let appends = members
                .into_iter()
                .map(async |(index, admitted)| (index, self.deliver(admitted).await));
            return unconstrained(join_all(appends)).await;
        }
        let began = self.seams.clock.now();
        let mut results = Vec::with_capacity(members.len());
        for (index, mut admitted) in members {
            // One request may keep a caller waiting for one time limit in all; the rest goes to the mailbox.
            let waited = self.seams.clock.now().millis_since(began);
            if u128::try_from(waited).unwrap_or(0) >= self.config.direct.timeout.as_millis() {
                admitted.way = Way::Mailbox;
            }
            results.push((index, self.deliver(admitted).await));
        }
        results
    }
}

/// The admitted messages to one recipient, with their places in the array.
struct Group {
    recipient: Did,
    members: Vec<(usize, Admitted)>,
}

fn put(groups: &mut Vec<Group>, index: usize, admitted: Admitted) {
    let recipient = &admitted.candidate.envelope.to;
    match groups.iter_mut().find(|group| group.recipient == *recipient) {
        Some(group) => group.members.push((index, admitted)),
        None => groups.push(Group {
            recipient: recipient.clone(),
            members: vec![(index, admitted)],
        }),
    }
}

/// The envelope's id, for the answer to one that was refused; one that is too large is not read for it.
fn id_of(wire: &[u8], bytes_max: usize) -> Option<Uuid> {
    let readable = wire.len() <= bytes_max;
    readable
        .then(|| Envelope::parse(wire).ok())
        .flatten()
        .map(|envelope| envelope.id)
}

/// Cuts an array into the bytes of its items, each as it stands in the body.
fn split(body: &Bytes, envelopes_max: usize, bytes_max: usize) -> Result<Vec<Bytes>, Refusal> {
    if body.len() > bytes_max {
        let detail = format!("The array is larger than {bytes_max} bytes; send fewer envelopes at once.");
        return Err(Refusal::new(ErrorCode::BodyTooLarge, detail).with("limit_bytes", bytes_max));
    }
    let mut too_many = false;
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let items = deserializer.deserialize_seq(Items {
        envelopes_max,
        too_many: &mut too_many,
    });
    if too_many {
        let detail =
            format!("At most {envelopes_max} envelopes fit into one request; send the rest in another.");
        return Err(Refusal::new(ErrorCode::BodyTooLarge, detail).with("limit_envelopes", envelopes_max));
    }
    match (items, deserializer.end()) {
        (Ok(items), Ok(())) => Ok(items
            .into_iter()
            .map(|item| body.slice_ref(item.get().as_bytes()))
            .collect()),
        _ => Err(Refusal::new(
            ErrorCode::JsonInvalid,
            "The body is no JSON array of envelopes.",
        )),
    }
}

/// Reads items unparsed, and stops as soon as there are too many.
struct Items<'a> {
    envelopes_max: usize,
    too_many: &'a mut bool,
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of envelopes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = array.next_element()? {
            if items.len() == self.envelopes_max {
                *self.too_many = true;
                return Err(A::Error::custom("too many envelopes"));
            }
            items.push(item);
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(body: &str) -> Result<Vec<String>, ErrorCode> {
        let items = split(&Bytes::copy_from_slice(body.as_bytes()), 3, 60);
        let text = |item: Bytes| String::from_utf8(item.to_vec()).unwrap();
        items
            .map(|items| items.into_iter().map(text).collect())
            .map_err(|refusal| refusal.code)
    }

    #[test]
    fn items_keep_their_bytes() {
        let body = " [ {\"b\": 1.50, \"b\":[ ]} ,null,\"\\u00e9\" ] \n";
        let items = ["{\"b\": 1.50, \"b\":[ ]}", "null", "\"\\u00e9\""];
        assert_eq!(texts(body).unwrap(), items);
        assert_eq!(texts("[]").unwrap(), [""; 0]);
    }

    #[test]
    fn row_83_too_many_items_or_bytes_refuse_the_whole() {
        assert_eq!(texts("[1,2,3]").unwrap().len(), 3);
        assert_eq!(texts("[1,2,3,4]"), Err(ErrorCode::BodyTooLarge));
        assert_eq!(texts("[1,2,3,4,oops"), Err(ErrorCode::BodyTooLarge));
        assert_eq!(texts(&format!("[{}]", " ".repeat(58))).unwrap().len(), 0);
        assert_eq!(
            texts(&format!("[{}]", " ".repeat(59))),
            Err(ErrorCode::BodyTooLarge)
        );
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for body in [
            "",
            "[",
            "[1",
            "[1,]",
            "[1]]",
            "[1] 2",
            "{}",
            "null",
            "[1 2]",
            "[\"\\ud800\"",
            "[tru]",
        ] {
            assert_eq!(texts(body), Err(ErrorCode::JsonInvalid), "{body}");
        }
        let bytes = Bytes::from_static(b"[\"\xff\"]");
        assert_eq!(split(&bytes, 3, 60).unwrap_err().code, ErrorCode::JsonInvalid);
        // Nesting is for the strict parser to judge; cutting does not recurse.
        let deep = format!("[{}{}]", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(split(&Bytes::from(deep), 3, 1_000_000).unwrap().len(), 1);
    }

    #[test]
    fn the_first_character_tells_one_from_many() {
        assert!(is_batch(b" \r\n\t[") && is_batch(b"[]"));
        assert!(!is_batch(b"{\"a\":[]}") && !is_batch(b"") && !is_batch(b"   "));
    }
}
