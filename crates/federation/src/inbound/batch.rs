//! Reading a push: what is around the items strictly and as a whole, each envelope by itself.
//!
//! By itself for two reasons. An envelope may be nested as deep as the protocol allows, and here it already lies three levels
//! down; and one that is no strict JSON is that item's fault, not that of its 63 neighbours. So its bytes are at hand anyway,
//! and go on as they came in: the recipient gets what the sender's hub sent, byte for byte, and not this hub's spelling of it.

use std::collections::BTreeSet;
use std::fmt;

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::{Json, Object};
use aip_protocol::limits::BATCH_ITEMS_MAX;
use aip_protocol::name::Domain;
use aip_protocol::peer::{Batch, Item};
use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::limits::EPOCH_BYTES_MAX;

/// A push of good form.
#[derive(Debug)]
pub(super) struct Push {
    pub(super) epoch: String,
    /// Everything up to here has left the peer's outbox and will not come any more.
    pub(super) floor: Option<u64>,
    /// In the order of the batch.
    pub(super) items: Vec<Arrival>,
}

/// One item, and its envelope as it came in.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) seq: u64,
    /// Or why its envelope cannot be read at all.
    pub(super) item: Result<Item, ErrorCode>,
    pub(super) wire: Bytes,
}

/// Reads the body of a push of `domain`.
pub(super) fn read(body: &[u8], domain: &Domain) -> Result<Push, Refusal> {
    let Members(mut members) = parse(body)?;
    let items = take(&mut members, "items");
    let mut around = values(&members)?;
    let floor = around.get("floor").map(floor).transpose()?;
    if let Some(items) = items {
        // Whether it is a list is said below; the items are read one by one.
        let is_list = items.get().starts_with('[');
        around.insert(
            "items",
            if is_list {
                Json::Array(Vec::new())
            } else {
                Json::Null
            },
        );
    }
    let batch = Batch::from_json(&Json::Object(around), domain.as_str())?;
    if batch.epoch.is_empty() || batch.epoch.len() > EPOCH_BYTES_MAX {
        return Err(invalid("epoch", "is 1 to 128 bytes"));
    }
    let Items(items) = parse(items.map_or("[]", RawValue::get).as_bytes())?;
    if items.len() > BATCH_ITEMS_MAX {
        let refusal = Refusal::new(ErrorCode::BodyTooLarge, format!("up to {BATCH_ITEMS_MAX} items"));
        return Err(refusal.with("limit", BATCH_ITEMS_MAX));
    }
    let items = items
        .iter()
        .map(|item| arrival(item))
        .collect::<Result<Vec<_>, _>>()?;
    let mut seqs = BTreeSet::new();
    if !items.iter().all(|item| seqs.insert(item.seq)) {
        return Err(invalid("peer_seq", "comes once in a batch"));
    }
    Ok(Push {
        epoch: batch.epoch,
        floor,
        items,
    })
}

fn arrival(item: &RawValue) -> Result<Arrival, Refusal> {
    let Members(mut members) = parse(item.get().as_bytes())?;
    let envelope = take(&mut members, "envelope")
        .map_or("", RawValue::get)
        .as_bytes();
    let mut around = values(&members)?;
    let seq = Item::from_json(&Json::Object(around.clone()))?.peer_seq;
    let read = if envelope.is_empty() {
        // Its refusal is the protocol's to word.
        Item::from_json(&Json::Object(around))
    } else {
        Json::parse(envelope).and_then(|envelope| {
            around.insert("envelope", envelope);
            Item::from_json(&Json::Object(around))
        })
    };
    Ok(Arrival {
        seq,
        item: read.map_err(|refusal| refusal.code),
        wire: Bytes::copy_from_slice(envelope),
    })
}

fn floor(json: &Json) -> Result<u64, Refusal> {
    let floor = json.as_int().and_then(|floor| u64::try_from(floor).ok());
    floor.ok_or_else(|| invalid("floor", "is an integer from 0 on"))
}

fn take<'a>(members: &mut Vec<(String, &'a RawValue)>, name: &str) -> Option<&'a RawValue> {
    let index = members.iter().position(|(other, _)| other == name)?;
    Some(members.swap_remove(index).1)
}

fn values(members: &[(String, &RawValue)]) -> Result<Object, Refusal> {
    let value = |(name, raw): &(String, &RawValue)| Ok((name.clone(), Json::parse(raw.get().as_bytes())?));
    members.iter().map(value).collect()
}

fn parse<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, Refusal> {
    serde_json::from_slice(text).map_err(|error| Refusal::new(ErrorCode::JsonInvalid, error.to_string()))
}

fn invalid(member: &'static str, should: &'static str) -> Refusal {
    Refusal::new(ErrorCode::MemberInvalid, format!("{member} {should}")).with("member", member)
}

/// The members of an object, none twice, their values unread.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor).map(Self)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut names = BTreeSet::new();
        let mut members = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            if !names.insert(name.clone()) {
                return Err(A::Error::custom("a member name comes twice in one object"));
            }
            members.push((name, value));
        }
        Ok(members)
    }
}

/// The items of a list, unread; one more than a batch may have, at most.
struct Items<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ItemsVisitor).map(Self)
    }
}

struct ItemsVisitor;

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            if items.len() <= BATCH_ITEMS_MAX {
                items.push(item);
            }
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests;
