//! Making listings, on the side of the agent.

use super::{Listing, ListingKind, Offer};
use crate::error::Refusal;
use crate::json::Json;
use crate::multikey::SigningKey;
use crate::name::Did;
use crate::signature::{Tag, sign};
use crate::time::Timestamp;

/// A listing before it is signed.
///
/// The result is to be kept until the hub has it: a retry sends the same bytes again, since other bytes of one version are a
/// conflict.
#[derive(Debug, Clone)]
pub struct ListingDraft {
    /// Whose offer it is.
    pub agent: Did,
    /// A higher one replaces a lower one; at most 2^53-1.
    pub version: u64,
    /// Now.
    pub created_at: Timestamp,
    /// Takes the listing away.
    pub deleted: bool,
    /// What it says.
    pub offer: Offer,
}

impl ListingDraft {
    /// A draft that offers something.
    pub fn new(agent: Did, version: u64, created_at: Timestamp, offer: Offer) -> Self {
        Self {
            agent,
            version,
            created_at,
            deleted: false,
            offer,
        }
    }

    /// A draft that takes the listing away: nothing of what it said stays in it but its id and its kind.
    pub fn deletion(
        agent: Did,
        version: u64,
        created_at: Timestamp,
        kind: ListingKind,
        listing_id: &str,
    ) -> Self {
        let offer = Offer::new(kind, listing_id, listing_id);
        Self {
            deleted: true,
            ..Self::new(agent, version, created_at, offer)
        }
    }

    /// Signs. Refuses what a hub would refuse for its form.
    pub fn sign(self, key: &SigningKey) -> Result<Listing, Refusal> {
        let mut object = self.offer.to_object();
        object.insert("kid", format!("{}#{}", self.agent, key.public()));
        object.insert("aip", "1");
        object.insert("agent", self.agent.as_str());
        object.insert("version", Json::try_from(self.version)?);
        object.insert("created_at", self.created_at.to_string());
        if self.deleted {
            object.insert("deleted", true);
        }
        let unsigned = Json::Object(object.clone());
        object.insert("sig", sign(key, Tag::Listing, &unsigned).to_string());
        Listing::from_json(Json::Object(object))
    }
}
