//! Listings: what an agent offers, signed by it (§9).

use crate::error::{ErrorCode, Refusal};
use crate::identity::Identity;
use crate::json::{Json, Object};
use crate::members::{check_version, invalid, require, text, time, verifying_kid};
use crate::multikey::VerifyingKey;
use crate::name::Did;
use crate::signature::{Signature, SignedBytes, Tag};
use crate::time::Timestamp;

mod draft;
mod id;
mod offer;
mod wording;

pub use draft::ListingDraft;
pub use id::{hub_id, is_hub_id};
pub use offer::Offer;
pub use wording::Wording;

const MEMBERS: [&str; 10] = [
    "aip",
    "agent",
    "listing_id",
    "version",
    "kind",
    "name",
    "description",
    "created_at",
    "kid",
    "sig",
];

/// What kind of thing is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListingKind {
    /// Something callable.
    Capability,
    /// A thing with a price.
    Product,
    /// Knowledge.
    Concept,
}

impl ListingKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Capability, Self::Product, Self::Concept];

    /// As written in the listing.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Capability => "capability",
            Self::Product => "product",
            Self::Concept => "concept",
        }
    }

    /// The kind that is written like this.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A listing of good form. Whether its agent signed it, [`Listing::verify`] tells.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Listing {
    /// Whose offer it is.
    pub agent: Did,
    /// Unique per agent.
    pub listing_id: String,
    /// A higher one replaces a lower one.
    pub version: u64,
    /// What kind of thing is offered.
    pub kind: ListingKind,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Language of name and description.
    pub lang: Option<String>,
    /// Further words to find it by.
    pub tags: Vec<String>,
    /// Plain decimal digits with an optional fraction.
    pub price: Option<String>,
    /// The price's currency.
    pub currency: Option<String>,
    /// Whether it can be had now.
    pub available: Option<bool>,
    /// Strings, integers and booleans.
    pub attributes: Object,
    /// When this version was made.
    pub created_at: Timestamp,
    /// After this moment it is no longer offered.
    pub expires_at: Option<Timestamp>,
    /// Takes the listing away.
    pub deleted: bool,
    /// The agent's signing key: DID, `#`, Multikey.
    pub kid: String,
    /// Over the listing without `sig`.
    pub sig: Signature,
    /// The whole listing: schemas, `invoke` and members unknown here included.
    pub json: Json,
    bytes: SignedBytes,
}

impl Listing {
    /// Reads strict JSON and checks members and forms.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        Self::from_json(Json::parse(bytes)?)
    }

    /// The same for a value that was parsed already.
    pub fn from_json(json: Json) -> Result<Self, Refusal> {
        json.check()?;
        let object = json
            .as_object()
            .ok_or_else(|| invalid("a listing", "is an object"))?;
        require(object, &MEMBERS)?;
        check_version(object)?;
        let agent = Did::parse(text(object, "agent")?)?;
        let version = object
            .get("version")
            .and_then(Json::as_int)
            .and_then(|version| u64::try_from(version).ok());
        let version = version.ok_or_else(|| invalid("version", "is an integer from 0 on"))?;
        let offer = Offer::read(object)?;
        let created_at = time(object, "created_at")?;
        if offer
            .expires_at
            .is_some_and(|expires_at| expires_at <= created_at)
        {
            return Err(invalid("expires_at", "is later than created_at"));
        }
        let kid = text(object, "kid")?.to_owned();
        verifying_kid(&kid, agent.as_str(), "kid")?;
        let sig = Signature::parse(object.get("sig").and_then(Json::as_str).unwrap_or_default())?;
        Ok(Self {
            listing_id: offer.listing_id,
            kind: offer.kind,
            name: offer.name,
            description: offer.description,
            lang: offer.lang,
            tags: offer.tags,
            price: offer.price,
            currency: offer.currency,
            available: offer.available,
            attributes: offer.attributes,
            expires_at: offer.expires_at,
            deleted: optional_bool(object, "deleted")?.unwrap_or(false),
            bytes: SignedBytes::of(Tag::Listing, object),
            agent,
            version,
            created_at,
            kid,
            sig,
            json,
        })
    }

    /// What it says, without who says it and when.
    pub fn offer(&self) -> Result<Offer, Refusal> {
        Offer::from_json(&self.json)
    }

    /// SHA-256 of the canonical bytes: the same version with another digest is a conflict.
    pub fn digest(&self) -> [u8; 32] {
        self.bytes.digest
    }

    /// Whether a signing key of the agent that is good at `at` signed it: `key_unknown`,
    /// `signature_invalid`. For a hub that is handed the listing at `at`.
    pub fn verify(&self, agent: &Identity, at: Timestamp) -> Result<(), Refusal> {
        self.verify_with(agent.signing_key(&self.kid, at))
    }

    /// The same for whoever reads it later, from a hub that took it at `accepted_at`: a key that was revoked afterwards
    /// takes nothing back.
    pub fn verify_accepted(&self, agent: &Identity, accepted_at: Timestamp) -> Result<(), Refusal> {
        self.verify_with(agent.signing_key_accepted(&self.kid, accepted_at, accepted_at))
    }

    fn verify_with(&self, key: Option<&VerifyingKey>) -> Result<(), Refusal> {
        let key =
            key.ok_or_else(|| Refusal::new(ErrorCode::KeyUnknown, "kid names no valid key of the agent"))?;
        if key.verify_bytes(&self.bytes.input, self.sig.as_bytes()) {
            return Ok(());
        }
        Err(Refusal::new(
            ErrorCode::SignatureInvalid,
            "the listing's signature does not verify",
        ))
    }
}

fn kind(object: &Object) -> Result<ListingKind, Refusal> {
    let kind = object
        .get("kind")
        .and_then(Json::as_str)
        .and_then(ListingKind::parse);
    kind.ok_or_else(|| invalid("kind", "is capability, product or concept"))
}

fn optional_bool(object: &Object, name: &str) -> Result<Option<bool>, Refusal> {
    let member = object.get(name);
    let truth = member.and_then(Json::as_bool);
    if member.is_some() && truth.is_none() {
        Err(invalid(name, "is true or false"))
    } else {
        Ok(truth)
    }
}

fn tags(object: &Object) -> Result<Vec<String>, Refusal> {
    let refusal = || invalid("tags", "is a list of texts");
    let Some(tags) = object.get("tags") else {
        return Ok(Vec::new());
    };
    let tags = tags.as_array().ok_or_else(refusal)?;
    tags.iter()
        .map(|tag| tag.as_str().map(str::to_owned).ok_or_else(refusal))
        .collect()
}

fn attributes(object: &Object) -> Result<Object, Refusal> {
    let Some(attributes) = object.get("attributes") else {
        return Ok(Object::new());
    };
    let is_plain = |value: &Json| matches!(value, Json::Str(_) | Json::Int(_) | Json::Bool(_));
    let attributes = attributes
        .as_object()
        .filter(|attributes| attributes.iter().all(|(_, value)| is_plain(value)));
    attributes
        .cloned()
        .ok_or_else(|| invalid("attributes", "holds strings, integers and booleans"))
}

fn decimal(price: Option<String>) -> Result<Option<String>, Refusal> {
    if price.as_deref().is_some_and(|price| !is_decimal(price)) {
        return Err(invalid(
            "price",
            "is text of decimal digits with an optional fraction",
        ));
    }
    Ok(price)
}

/// Digits without a leading zero, and perhaps a fraction.
fn is_decimal(text: &str) -> bool {
    let (whole, fraction) = text
        .split_once('.')
        .map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    is_digits(whole) && (whole == "0" || !whole.starts_with('0')) && fraction.is_none_or(is_digits)
}

#[cfg(test)]
mod tests;
