//! `aip.commerce.offer.request`: the details of something that is offered, asked by message (spec §11,
//! `docs/protocol/types/`). Where a listing says so (`"commerce": {"answered_by": "hub"}`) the hub answers from it; of every
//! other one it says whom to ask.

use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::{Json, Object};
use aip_protocol::listing::Offer;
use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_registry::listings::StoredListing;
use serde::Serialize;

use super::limits::{CONTACT_MEMBERS_MAX, ITEM_ID_BYTES_MAX, MEDIA_MAX};
use super::search::{Found, body, raw, room_bytes};
use crate::app::App;
use crate::catalog::Quarantine;
use crate::error::ApiError;

/// The type of a request.
pub(super) const REQUEST: &str = "aip.commerce.offer.request";

/// The word of a listing for who answers.
const BY_HUB: &str = "hub";

/// What is answered.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    item_id: &'a str,
    /// `offered`, or `elsewhere`: ask the one under `ask`.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ask: Option<Party>,
    #[serde(flatten)]
    details: Option<Facts<'a>>,
}

/// An agent.
#[derive(Debug, Serialize)]
struct Party {
    did: String,
    /// As people write it: `shop#hub.example`.
    handle: String,
}

impl Party {
    fn of(did: &Did) -> Self {
        Self {
            did: did.to_string(),
            handle: did.handle().to_string(),
        }
    }
}

/// What is offered.
#[derive(Debug, Serialize)]
struct Facts<'a> {
    /// Who answers: the hub, in the words of the listing.
    answered_by: &'static str,
    agent: Party,
    listing_id: &'a str,
    version: u64,
    kind: &'static str,
    name: &'a str,
    description: &'a str,
    details: &'a Object,
    price: Option<Price<'a>>,
    available: Option<bool>,
    media: Vec<Json>,
    contact: Object,
    flags: &'a [String],
    updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_until: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
struct Price<'a> {
    amount: &'a str,
    currency: Option<&'a str>,
}

/// Answers an opened request.
///
/// # Errors
/// `json_invalid`, `member_missing`, `member_invalid`; 404 `not_found` for what is not offered here, or not any more; 413
/// `body_too_large` for an answer that does not fit into an envelope.
pub(super) async fn respond(app: &App, plaintext: &[u8]) -> Result<Found, ApiError> {
    let body = body(plaintext)?;
    let item_id = item_id(&body)?;
    let stored = app.listings.get(item_id).await?;
    let stored = match stored {
        Some(stored) if is_open(app, &stored).await? => stored,
        _ => {
            let detail = "This hub offers no such item: `item_id` is the `id` of a search result.";
            return Err(ApiError::refused(ErrorCode::NotFound, detail));
        }
    };
    let json = Json::parse(&stored.json)?;
    let offer = Offer::from_json(&json)?;
    let commerce = offer.extra.get("commerce").and_then(Json::as_object);
    let by_hub =
        commerce.filter(|commerce| commerce.get("answered_by").and_then(Json::as_str) == Some(BY_HUB));
    let answer = Answer {
        item_id,
        status: if by_hub.is_some() { "offered" } else { "elsewhere" },
        ask: by_hub.is_none().then(|| Party::of(&stored.agent)),
        details: by_hub.map(|commerce| Facts::of(&stored, &offer, commerce)),
    };
    let text = raw(&answer)?;
    if text.get().len() > room_bytes(app.settings.relay.envelope_bytes_max) {
        let detail = "The offer does not fit into an envelope. Read the listing over HTTP.";
        return Err(ApiError::refused(ErrorCode::BodyTooLarge, detail));
    }
    Ok(text)
}

fn item_id(body: &Json) -> Result<&str, Refusal> {
    let member = |code: ErrorCode, detail: String| Err(Refusal::new(code, detail).with("member", "item_id"));
    match body.get("item_id") {
        None => member(
            ErrorCode::MemberMissing,
            "The member `item_id` is missing.".to_owned(),
        ),
        Some(Json::Str(id)) if (1..=ITEM_ID_BYTES_MAX).contains(&id.len()) => Ok(id),
        Some(_) => {
            let detail = format!("`item_id` is text of 1 to {ITEM_ID_BYTES_MAX} bytes.");
            member(ErrorCode::MemberInvalid, detail)
        }
    }
}

/// Whether whoever searches can find it.
async fn is_open(app: &App, stored: &StoredListing) -> Result<bool, ApiError> {
    let is_over = stored.expires_at.is_some_and(|end| end <= app.clock.now());
    let is_held = Quarantine::new(&app.settings.search.quarantine)
        .of(stored)
        .is_held();
    if stored.deleted || is_over || is_held {
        return Ok(false);
    }
    let agent = app.registry.resolve(&stored.agent).await?;
    Ok(agent.is_none_or(|agent| agent.takes_part()))
}

impl<'a> Facts<'a> {
    fn of(stored: &'a StoredListing, offer: &'a Offer, commerce: &Object) -> Self {
        let price = offer.price.as_deref().map(|amount| Price {
            amount,
            currency: offer.currency.as_deref(),
        });
        Self {
            answered_by: BY_HUB,
            agent: Party::of(&stored.agent),
            listing_id: &offer.listing_id,
            version: stored.version,
            kind: offer.kind.as_str(),
            name: &offer.name,
            description: &offer.description,
            details: &offer.attributes,
            price,
            available: offer.available,
            media: media(commerce),
            contact: contact(commerce),
            flags: &stored.flags,
            updated_at: stored.stored_at,
            valid_until: stored.expires_at,
        }
    }
}

/// Those that have the address of something, by `https` or `http`; what is none is left out.
fn media(commerce: &Object) -> Vec<Json> {
    let items = commerce.get("media").and_then(Json::as_array).unwrap_or_default();
    let is_address = |item: &&Json| {
        let url = item.get("url").and_then(Json::as_str).unwrap_or_default();
        url.starts_with("https://") || url.starts_with("http://")
    };
    items.iter().filter(is_address).take(MEDIA_MAX).cloned().collect()
}

/// How to reach somebody: members that are text.
fn contact(commerce: &Object) -> Object {
    let members = commerce.get("contact").and_then(Json::as_object);
    let texts = members
        .into_iter()
        .flat_map(Object::iter)
        .filter(|(_, value)| value.as_str().is_some());
    texts
        .take(CONTACT_MEMBERS_MAX)
        .map(|(name, value)| (name, value.clone()))
        .collect()
}
