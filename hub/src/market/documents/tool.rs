//! A capability, as documents describe it.

use aip_market::offer::{Notes, Offer};
use aip_market::schema::Schema;
use aip_protocol::market::{Members, Number, Value, time_text};
use aip_protocol::time::Timestamp;

use super::Facts;

/// A tool of the manifest.
pub(super) fn tool(facts: &Facts, offer: &Offer, now: Timestamp) -> Value {
    let mut tool = priced(facts, offer);
    let name = format!("{}.{}", offer.product_id, offer.capability_id);
    let mode = if offer.price.micros() == 0 {
        "public_free"
    } else {
        "paid"
    };
    let members = [
        ("name", Value::from(name)),
        ("display_name", offer.name.as_str().into()),
        ("description", offer.description.as_str().into()),
        ("listing_id", offer.id.as_str().into()),
        ("version", offer.version.into()),
        ("publisher_id", offer.agent.as_str().into()),
        ("input_schema", schema(offer.input_schema.as_ref())),
        ("output_schema", schema(offer.output_schema.as_ref())),
        ("price_per_call_usd", Value::usd(offer.price.micros())),
        ("access_mode", mode.into()),
        ("offerable", true.into()),
        // The hub's own: the address of the provider is nobody else's business.
        ("invoke_url", facts.url("/ai-market/v2/invoke")),
    ];
    tool.extend(members.map(|(name, value)| (name.to_owned(), value)));
    if let Some(category) = &offer.category {
        tool.insert("category".to_owned(), category.as_str().into());
    }
    if let Some(tier) = &offer.free_tier
        && let Some(max) = Number::float(tier.max)
    {
        let tier = [(tier.field.clone(), Value::from(max))];
        tool.insert("free_tier_max".to_owned(), Members::from(tier).into());
    }
    if let Some(payout) = offer.payout.filter(|_| facts.x402.is_some()) {
        tool.insert("payout_address".to_owned(), payout.to_string().into());
    }
    tool.extend(noted(&offer.notes, now));
    tool.into()
}

/// What a reader should know about its words.
fn noted(notes: &Notes, now: Timestamp) -> Members {
    let hash = |hash: &String| Value::from(hash.as_str());
    let mut noted = Members::from([
        ("description_sha256".to_owned(), hash(&notes.description_sha256)),
        ("schema_sha256".to_owned(), hash(&notes.schema_sha256)),
    ]);
    if !notes.flags.is_empty() {
        let flags: Vec<Value> = notes.flags.iter().map(hash).collect();
        noted.insert("flags".to_owned(), flags.into());
    }
    for (name, changed) in notes.told(now) {
        let told = [
            ("at", Value::from(time_text(changed.at))),
            ("previous_sha256", hash(&changed.previous_sha256)),
        ];
        noted.insert(name.to_owned(), told.into());
    }
    noted
}

/// What a capability costs, and where it is.
pub(super) fn priced(facts: &Facts, offer: &Offer) -> Members {
    let routed = facts.peers.routed(offer);
    let members = [
        ("product_id", Value::from(offer.product_id.as_str())),
        ("capability_id", offer.capability_id.as_str().into()),
        ("routed_price_usd", Value::usd(routed.price.micros())),
        ("routing_fee_bps", u32::from(routed.fee_bps).into()),
        ("source_hub", routed.hub.into()),
        ("source_hub_name", routed.name.unwrap_or(&facts.domain).into()),
        ("route_status", routed.status.into()),
    ];
    members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// An object always: readers count on one.
fn schema(schema: Option<&Schema>) -> Value {
    let given = schema.map(Schema::value).filter(|value| value.is_object());
    given.map_or_else(
        || [("type", Value::from("object"))].into(),
        |value| value.clone().into(),
    )
}
