//! What hubs push to each other: batches of items, each judged on its own (§8).
//!
//! The order of the checks is the protocol's; stores and look-ups are the hub's. It runs
//! [`Item::admit`], resolves the sender at the sender's domain, runs [`verify_sender`], looks at
//! its recipient and its dedup records, and notes the outcome in [`Received`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::envelope::{Envelope, check_expiry, check_window};
use crate::error::{ErrorCode, Refusal};
use crate::identity::Identity;
use crate::json::{Json, Object};
use crate::limits::{BATCH_ITEMS_MAX, TRANSIT_SECS_MAX};
use crate::members::{check_version, invalid, require, text, time};
use crate::name::Domain;
use crate::time::Timestamp;

/// The object around the items of a push.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Batch {
    /// The sending hub's domain.
    pub domain: Domain,
    /// The epoch of the sending hub's outbox.
    pub epoch: String,
    /// The items in the order they were sent.
    pub items: Vec<Item>,
}

/// One item of a batch: a message that the sending hub accepted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Item {
    /// Its place in the outbox of this peer and epoch; counts from 1.
    pub peer_seq: u64,
    json: Object,
}

/// An item that passed every check that needs no look-up.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AdmittedItem {
    /// The envelope as its sender signed it.
    pub envelope: Envelope,
    /// When the first hub accepted it.
    pub accepted_at: Timestamp,
}

impl Batch {
    /// Reads a push whose request was signed by a key of `keyid_domain`. The caller has capped the
    /// size of the body.
    ///
    /// Refuses the whole request with `member_missing`, `member_invalid`, `version_unsupported`,
    /// `from_domain_mismatch`, or `body_too_large` for more than 64 items.
    pub fn from_json(json: &Json, keyid_domain: &str) -> Result<Self, Refusal> {
        json.check()?;
        let object = json
            .as_object()
            .ok_or_else(|| invalid("a batch", "is an object"))?;
        require(object, &["aip", "domain", "epoch", "items"])?;
        check_version(object)?;
        let epoch = text(object, "epoch")?.to_owned();
        let items = object
            .get("items")
            .and_then(Json::as_array)
            .ok_or_else(|| invalid("items", "is a list"))?;
        let domain = object
            .get("domain")
            .and_then(Json::as_str)
            .filter(|domain| *domain == keyid_domain);
        let domain = domain.and_then(|domain| Domain::parse(domain).ok());
        let domain = domain.ok_or_else(|| {
            Refusal::new(
                ErrorCode::FromDomainMismatch,
                "domain is not that of the key that signed the request",
            )
        })?;
        if items.len() > BATCH_ITEMS_MAX {
            let refusal = Refusal::new(ErrorCode::BodyTooLarge, format!("up to {BATCH_ITEMS_MAX} items"));
            return Err(refusal.with("limit", BATCH_ITEMS_MAX));
        }
        let items = items.iter().map(Item::from_json).collect::<Result<_, _>>()?;
        Ok(Self { domain, epoch, items })
    }
}

impl Item {
    /// Reads an item as far as it takes to answer it: without a `peer_seq` the whole push is
    /// refused.
    pub fn from_json(json: &Json) -> Result<Self, Refusal> {
        let object = json
            .as_object()
            .ok_or_else(|| invalid("items", "holds objects"))?;
        let peer_seq = object
            .get("peer_seq")
            .and_then(Json::as_int)
            .and_then(|seq| u64::try_from(seq).ok());
        let peer_seq = peer_seq
            .filter(|seq| *seq > 0)
            .ok_or_else(|| invalid("peer_seq", "is an integer from 1 on"))?;
        Ok(Self {
            peer_seq,
            json: object.clone(),
        })
    }

    /// Every check before the sender is looked up: the envelope's form, the two domains, its age
    /// at `accepted_at`, its transit, its expiry. A refusal is final.
    pub fn admit(self, peer: &Domain, own: &Domain, now: Timestamp) -> Result<AdmittedItem, Refusal> {
        let mut json = self.json;
        let envelope = json
            .remove("envelope")
            .ok_or_else(|| invalid("envelope", "is needed in an item"))?;
        let envelope = Envelope::from_json(envelope)?;
        if envelope.from.domain() != *peer {
            let detail = "a hub speaks for its own agents only";
            return Err(Refusal::new(ErrorCode::FromDomainMismatch, detail));
        }
        if envelope.to.domain() != *own {
            let detail = "the recipient is no agent of this hub's domain";
            return Err(Refusal::new(ErrorCode::ToDomainMismatch, detail));
        }
        let accepted_at = time(&json, "accepted_at")?;
        check_window(envelope.created_at, accepted_at)?;
        if accepted_at + Duration::from_secs(TRANSIT_SECS_MAX) < now {
            return Err(Refusal::new(
                ErrorCode::TransitTooLong,
                "more than five days in transit",
            ));
        }
        check_expiry(envelope.expires_at, now)?;
        Ok(AdmittedItem {
            envelope,
            accepted_at,
        })
    }
}

/// Checks the sender's own signature against its history: `key_unknown`, `key_invalid`,
/// `signature_invalid`.
///
/// A key that was dropped after `accepted_at` stays good, one revoked by then does not.
pub fn verify_sender(item: &AdmittedItem, sender: &Identity) -> Result<(), Refusal> {
    let envelope = &item.envelope;
    let key = sender.signing_key_accepted(&envelope.kid, envelope.created_at, item.accepted_at);
    let key = key.ok_or_else(|| envelope.unknown_key())?;
    if envelope.verify(key) {
        return Ok(());
    }
    Err(Refusal::new(
        ErrorCode::SignatureInvalid,
        "the envelope's signature does not verify",
    ))
}

/// What is remembered of the items of one peer and epoch: for ever, and in little room, since
/// the sequence is contiguous.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Received {
    floor: u64,
    above: BTreeSet<u64>,
    refused: BTreeMap<u64, ErrorCode>,
}

/// Whether an item was met before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Never.
    New,
    /// It was stored.
    Duplicate,
    /// It was refused with this code, and is again.
    Refused(ErrorCode),
}

impl Received {
    /// Everything up to `floor` was settled, and so were those in `above`.
    pub fn new(floor: u64, above: impl IntoIterator<Item = u64>) -> Self {
        let mut received = Self {
            floor,
            ..Self::default()
        };
        above.into_iter().for_each(|seq| received.settle(seq));
        received
    }

    /// Whether this item was met before.
    pub fn known(&self, peer_seq: u64) -> Known {
        match self.refused.get(&peer_seq) {
            Some(code) => Known::Refused(*code),
            None if peer_seq <= self.floor || self.above.contains(&peer_seq) => Known::Duplicate,
            None => Known::New,
        }
    }

    /// The item is stored, here or under another `peer_seq`.
    pub fn settle(&mut self, peer_seq: u64) {
        if peer_seq > self.floor {
            self.above.insert(peer_seq);
        }
        while self.above.first() == Some(&self.floor.saturating_add(1)) {
            self.above.pop_first();
            self.floor += 1;
        }
    }

    /// The item is refused for good; it is passed over.
    pub fn refuse(&mut self, peer_seq: u64, code: ErrorCode) {
        self.refused.insert(peer_seq, code);
        self.settle(peer_seq);
    }

    /// Everything up to here is settled, refused items too.
    pub fn acked_through(&self) -> u64 {
        self.floor
    }

    /// What else is settled, in ascending order.
    pub fn above(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.above.iter().copied()
    }
}
