//! What is stored of a listing, as the catalog keeps it.

use aip_catalog::{AttributeValue, Entry};
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::json::Json;
use aip_protocol::listing::Offer;
use aip_protocol::name::Domain;
use aip_protocol::time::Timestamp;
use aip_registry::listings::StoredListing;

/// The entry of a listing that this hub, of the domain `source_hub`, holds.
///
/// # Errors
/// What is stored is no listing: it was damaged, or judged by other rules.
pub fn entry(stored: &StoredListing, source_hub: Domain) -> Result<Entry, Refusal> {
    let json = Json::parse(&stored.json)?;
    let offer = Offer::from_json(&json)?;
    let created_at = json
        .get("created_at")
        .and_then(Json::as_str)
        .map(Timestamp::parse);
    let Some(Ok(created_at)) = created_at else {
        return Err(Refusal::new(ErrorCode::MemberInvalid, "`created_at` is no time"));
    };
    let text = |name: &str| {
        offer
            .attributes
            .get(name)
            .and_then(Json::as_str)
            .map(str::to_owned)
    };
    let (category, brand) = (text("category"), text("brand"));
    let attributes = offer.attributes.iter().filter_map(|(name, value)| {
        let value = match value {
            Json::Bool(truth) => AttributeValue::Bool(*truth),
            Json::Int(number) => AttributeValue::Int(*number),
            Json::Str(text) => AttributeValue::Text(text.clone()),
            Json::Null | Json::Array(_) | Json::Object(_) => return None,
        };
        Some((name.to_owned(), value))
    });
    Ok(Entry {
        id: stored.id.clone(),
        number: stored.number,
        agent: stored.agent.clone(),
        source_hub,
        kind: offer.kind,
        attributes: attributes.collect(),
        name: offer.name,
        description: offer.description,
        lang: offer.lang,
        tags: offer.tags,
        category,
        brand,
        price_text: offer.price,
        currency: offer.currency,
        available: offer.available,
        created_at,
        updated_at: stored.stored_at,
        expires_at: offer.expires_at,
    })
}
