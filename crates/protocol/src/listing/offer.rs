//! What a listing says, without who says it and when (§9).

use super::{ListingKind, attributes, decimal, kind, optional_bool, tags};
use crate::error::Refusal;
use crate::json::{Json, Object};
use crate::members::{invalid, optional_text, optional_time, require, text};
use crate::time::Timestamp;

/// What a listing needs in order to say something.
const NEEDED: [&str; 3] = ["listing_id", "kind", "name"];
/// The members that have a field here.
const FIELDS: [&str; 11] = [
    "listing_id",
    "kind",
    "name",
    "description",
    "lang",
    "tags",
    "price",
    "currency",
    "available",
    "attributes",
    "expires_at",
];
/// What a signed listing adds: who says it, when, and the proof.
const FRAME: [&str; 7] = ["aip", "agent", "version", "created_at", "deleted", "kid", "sig"];

/// What is offered: all of a listing but its agent, version, time and signature. A provider hands listings in like this, one
/// object a line; an agent signs it as a [`super::ListingDraft`].
///
/// Two offers are equal when publishing the second after the first would change nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Unique per agent.
    pub listing_id: String,
    /// What kind of thing is offered.
    pub kind: ListingKind,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Language of name and description (BCP 47).
    pub lang: Option<String>,
    /// Further words to find it by.
    pub tags: Vec<String>,
    /// Plain decimal digits with an optional fraction.
    pub price: Option<String>,
    /// The price's currency, three upper-case letters.
    pub currency: Option<String>,
    /// Whether it can be had now.
    pub available: Option<bool>,
    /// Strings, integers and booleans; `category` and `brand` among them.
    pub attributes: Object,
    /// After this moment it is no longer offered.
    pub expires_at: Option<Timestamp>,
    /// The other members: `input_schema`, `output_schema`, `invoke`, and what is unknown here.
    pub extra: Object,
}

impl Offer {
    /// An offer with the needed members only.
    pub fn new(kind: ListingKind, listing_id: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            listing_id: listing_id.into(),
            kind,
            name: name.into(),
            description: String::new(),
            lang: None,
            tags: Vec::new(),
            price: None,
            currency: None,
            available: None,
            attributes: Object::new(),
            expires_at: None,
            extra: Object::new(),
        }
    }

    /// Reads an offer by the rules of a signed listing: `member_missing`, `member_invalid`, `json_invalid`. A listing that is
    /// signed may be given as well; its agent, version, time and signature are left out. `description` may be absent.
    pub fn from_json(json: &Json) -> Result<Self, Refusal> {
        json.check()?;
        let object = json
            .as_object()
            .ok_or_else(|| invalid("a listing", "is an object"))?;
        require(object, &NEEDED)?;
        Self::read(object)
    }

    /// The members that are needed are known to be there.
    pub(super) fn read(object: &Object) -> Result<Self, Refusal> {
        let owned = |name| optional_text(object, name).map(|text| text.map(str::to_owned));
        Ok(Self {
            listing_id: text(object, "listing_id")?.to_owned(),
            kind: kind(object)?,
            name: text(object, "name")?.to_owned(),
            description: owned("description")?.unwrap_or_default(),
            lang: owned("lang")?,
            tags: tags(object)?,
            price: decimal(owned("price")?)?,
            currency: owned("currency")?,
            available: optional_bool(object, "available")?,
            attributes: attributes(object)?,
            expires_at: optional_time(object, "expires_at")?,
            extra: object.without(&FIELDS).without(&FRAME),
        })
    }

    /// The members, as a provider hands them in and as an agent signs them. What is empty is left out, but for
    /// `description`, which a listing needs.
    pub fn to_object(&self) -> Object {
        let mut object = self.extra.without(&FIELDS).without(&FRAME);
        object.insert("listing_id", self.listing_id.as_str());
        object.insert("kind", self.kind.as_str());
        object.insert("name", self.name.as_str());
        object.insert("description", self.description.as_str());
        let expires_at = self.expires_at.map(|moment| moment.to_string());
        for (name, text) in [
            ("lang", &self.lang),
            ("price", &self.price),
            ("currency", &self.currency),
            ("expires_at", &expires_at),
        ] {
            if let Some(text) = text {
                object.insert(name, text.as_str());
            }
        }
        if let Some(available) = self.available {
            object.insert("available", available);
        }
        if !self.tags.is_empty() {
            object.insert("tags", self.tags.clone());
        }
        if !self.attributes.is_empty() {
            object.insert("attributes", self.attributes.clone());
        }
        object
    }
}
