//! What of a listing is sold, and how: the reading of `kind: capability` listings as offers (docs/protocol/market.md).

use aip_market::money::Usd;
use aip_market::offer::{Changed, Notes, Offer, PeerSource, Source, Terms, Way, is_id};
use aip_market::schema::{Schema, SchemaError};
use aip_protocol::error::Refusal;
use aip_protocol::json::Json;
use aip_protocol::listing::{ListingKind, Offer as Listed};
use aip_protocol::market::evm::Address;
use aip_protocol::name::Did;
use aip_registry::listings::{Origin, Rewording, StoredListing};
use serde_json::Value;

/// Why a listing makes no offer at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoOffer {
    /// It is no capability.
    OtherKind,
    /// It cannot be read.
    Unreadable,
    /// Its product or its capability has an id that is none of AIMarket's.
    IdInvalid,
}

impl From<Refusal> for NoOffer {
    fn from(_: Refusal) -> Self {
        Self::Unreadable
    }
}

/// The offer that a listing makes. What it says about its price, its schemas or how it is called may not be in its form: then
/// it stands here, holds its name, and cannot be invoked.
///
/// # Errors
/// It is no offer, and why.
pub fn offer(stored: &StoredListing) -> Result<Offer, NoOffer> {
    let listed = Listed::from_json(&Json::parse(&stored.json)?)?;
    if listed.kind != ListingKind::Capability {
        return Err(NoOffer::OtherKind);
    }
    let (product_id, capability_id) = ids(&listed, &stored.agent)?;
    let source = source(stored, &listed);
    let invoke = listed.extra.get("invoke");
    let terms = invoke.and_then(|invoke| Terms::read(invoke).ok());
    let price = price(&listed);
    let is_local = source == Source::Local;
    let schemas = ["input_schema", "output_schema"].map(|name| schema(&listed, name, is_local));
    let is_sold = listed.available.unwrap_or(true) && price.is_some() && schemas.iter().all(Result::is_ok);
    let (way, timeout, free_tier, provider_key) = match terms {
        // Who it is that sells what a peer does is known by where it came from, and not by what it says.
        _ if !is_local => (Some(Way::Peer), None, None, None),
        Some(terms) => (Some(terms.way), terms.timeout, terms.free_tier, terms.public_key),
        None => (None, None, None, None),
    };
    let notes = notes(stored, &listed);
    let [input_schema, output_schema] = schemas.map(Result::unwrap_or_default);
    Ok(Offer {
        id: stored.id.clone(),
        agent: stored.agent.clone(),
        source,
        product_id,
        capability_id,
        version: stored.version,
        price: price.unwrap_or(Usd::ZERO),
        category: attribute(&listed, "category").map(str::to_owned),
        input_schema,
        output_schema,
        way: way.filter(|_| is_sold),
        timeout,
        free_tier,
        provider_key,
        payout: attribute(&listed, "payout_address").and_then(|text| Address::parse(text).ok()),
        notes,
        name: listed.name,
        description: listed.description,
    })
}

fn notes(stored: &StoredListing, listed: &Listed) -> Notes {
    let (wording, trail) = (listed.wording(), &stored.trail);
    let changed = |rewording: Rewording| Changed {
        at: rewording.at,
        previous_sha256: hex::encode(rewording.before),
    };
    Notes {
        description_sha256: hex::encode(wording.description),
        schema_sha256: hex::encode(wording.schemas),
        flags: stored.flags.clone(),
        description_changed: trail.description.map(changed),
        schema_changed: trail.schemas.map(changed),
    }
}

/// Where it is sold: what the crawler put here, at the hub that it was found at.
fn source(stored: &StoredListing, listed: &Listed) -> Source {
    let Origin::Peer { hub } = &stored.origin else {
        return Source::Local;
    };
    let name = listed.extra.get("source_hub_name").and_then(Json::as_str);
    Source::Peer(PeerSource {
        hub: hub.clone(),
        name: name.unwrap_or(hub).to_owned(),
    })
}

/// AIMarket's ids of a listing: `product_id` and `capability_id`, from its attributes, or the agent's name and the listing's
/// own id.
///
/// # Errors
/// One of them has another form.
pub fn ids(listed: &Listed, agent: &Did) -> Result<(String, String), NoOffer> {
    let product = attribute(listed, "product_id").unwrap_or(agent.name());
    let capability = attribute(listed, "capability_id").unwrap_or(&listed.listing_id);
    if [product, capability].into_iter().all(is_id) {
        Ok((product.to_owned(), capability.to_owned()))
    } else {
        Err(NoOffer::IdInvalid)
    }
}

fn attribute<'a>(listed: &'a Listed, name: &str) -> Option<&'a str> {
    listed.attributes.get(name).and_then(Json::as_str)
}

/// Without a price, or with one of nothing, it is free; with one, it is in dollars. `None`: it is not sold here.
fn price(listed: &Listed) -> Option<Usd> {
    let in_dollars = listed.currency.as_deref() == Some("USD");
    let price = match &listed.price {
        Some(price) => Usd::parse(price).ok()?,
        None => Usd::ZERO,
    };
    let is_sold = in_dollars || (price == Usd::ZERO && listed.currency.is_none());
    is_sold.then_some(price)
}

/// A schema, if there is one. That of a peer is there as text where it has numbers that no listing has.
///
/// # Errors
/// It cannot be checked.
fn schema(listed: &Listed, name: &str, is_local: bool) -> Result<Option<Schema>, SchemaError> {
    let Some(schema) = listed.extra.get(name).filter(|schema| !schema.is_null()) else {
        return Ok(None);
    };
    let value = match schema.as_str().filter(|_| !is_local) {
        Some(text) => serde_json::from_str(text).map_err(|_error| SchemaError::Form)?,
        None => Value::from(schema.clone()),
    };
    let schema = Schema::new(value)?;
    if schema.is_usable() {
        Ok(Some(schema))
    } else {
        Err(SchemaError::Form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aip_protocol::time::Timestamp;
    use serde_json::json;

    fn read(change: impl FnOnce(&mut Value)) -> Result<Offer, NoOffer> {
        read_from(Origin::Signed, change)
    }

    fn read_from(origin: Origin, change: impl FnOnce(&mut Value)) -> Result<Offer, NoOffer> {
        let mut listing = json!({
            "listing_id": "draw", "kind": "capability", "name": "Draw", "price": "0.01", "currency": "USD",
            "invoke": { "relay": true },
        });
        change(&mut listing);
        offer(&StoredListing {
            id: "lst_x".to_owned(),
            number: 1,
            agent: Did::parse("did:aip:hub.example:shop").unwrap(),
            listing_id: "draw".to_owned(),
            version: 3,
            deleted: false,
            json: listing.to_string().into_bytes(),
            digest: [0; 32],
            origin,
            flags: Vec::new(),
            change_seq: 1,
            stored_at: Timestamp::UNIX_EPOCH,
            expires_at: None,
            trail: aip_registry::listings::Trail::default(),
        })
    }

    #[test]
    fn a_listing_is_read_as_an_offer() {
        let plain = read(|_| {}).unwrap();
        assert_eq!(
            (plain.product_id.as_str(), plain.capability_id.as_str()),
            ("shop", "draw")
        );
        assert_eq!((plain.price.micros(), plain.way), (10_000, Some(Way::Relay)));
        let full = read(|listing| {
            listing["attributes"] = json!({ "product_id": "sortes", "capability_id": "sortes.draw@v1" });
            listing["input_schema"] = json!({ "type": "object" });
            listing["invoke"] = json!({
                "url": "https://shop.example/draw", "timeout_secs": 5,
                "free_tier": { "field": "puzzle.T", "max": 1_000_000 },
            });
        })
        .unwrap();
        assert_eq!(full.capability_id, "sortes.draw@v1");
        assert_eq!(full.way, Some(Way::Http("https://shop.example/draw".to_owned())));
        assert_eq!(full.timeout, Some(std::time::Duration::from_secs(5)));
        assert_eq!(
            full.free_tier.map(|tier| (tier.field, tier.max)),
            Some(("puzzle.T".to_owned(), 1e6))
        );
        assert_eq!(full.input_schema.unwrap().value(), &json!({ "type": "object" }));
    }

    #[test]
    fn without_a_price_it_is_free_and_without_a_way_it_is_only_listed() {
        let free = read(|listing| {
            for name in ["price", "currency", "invoke"] {
                listing.as_object_mut().unwrap().remove(name);
            }
        })
        .unwrap();
        assert_eq!((free.price, free.way), (Usd::ZERO, None));
        assert_eq!(
            read(|listing| listing["available"] = json!(false)).unwrap().way,
            None
        );
    }

    #[test]
    fn what_cannot_be_sold_holds_its_name_and_cannot_be_invoked() {
        let way = |change: &dyn Fn(&mut Value)| read(change).unwrap().way;
        assert_eq!(way(&|listing| listing["currency"] = json!("EUR")), None);
        assert_eq!(way(&|listing| listing["price"] = json!("99999999999")), None);
        assert_eq!(
            way(&|listing| drop(listing.as_object_mut().unwrap().remove("currency"))),
            None
        );
        for invoke in [
            json!("https://shop.example"),
            json!({}),
            json!({ "relay": false }),
            json!({ "url": "ftp://shop.example" }),
            json!({ "url": "https://shop.example", "relay": true }),
            json!({ "relay": true, "timeout_secs": 301 }),
            json!({ "relay": true, "free_tier": { "field": "T" } }),
        ] {
            assert_eq!(
                way(&|listing| listing["invoke"] = invoke.clone()),
                None,
                "{invoke}"
            );
        }
        for schema in [
            json!([]),
            json!({ "type": 7 }),
            json!({ "$ref": "https://elsewhere.example/schema" }),
        ] {
            assert_eq!(
                way(&|listing| listing["input_schema"] = schema.clone()),
                None,
                "{schema}"
            );
        }
    }

    #[test]
    fn what_a_peer_sells_is_known_by_where_it_came_from() {
        let words = |listing: &mut Value| {
            listing["invoke"] = json!({ "peer": true });
            listing["source_hub_name"] = json!("Peer");
            listing["input_schema"] = json!(r#"{"properties":{"t":{"maximum":0.5}}}"#);
        };
        let origin = Origin::Peer {
            hub: "https://peer.example".to_owned(),
        };
        let sold = read_from(origin, words).unwrap();
        let source = PeerSource {
            hub: "https://peer.example".to_owned(),
            name: "Peer".to_owned(),
        };
        assert_eq!((sold.source, sold.way), (Source::Peer(source), Some(Way::Peer)));
        let schema = json!({ "properties": { "t": { "maximum": 0.5 } } });
        assert_eq!(sold.input_schema.unwrap().value(), &schema);
        // An agent that says the same of itself sells nothing.
        let listed = read(words).unwrap();
        assert_eq!((listed.source, listed.way), (Source::Local, None));
        let sold = read(|listing| listing["input_schema"] = json!("{}")).unwrap();
        assert_eq!(sold.way, None, "a schema is an object");
    }

    #[test]
    fn what_is_no_offer_is_none() {
        let because = |change: fn(&mut Value)| read(change).unwrap_err();
        assert_eq!(
            because(|listing| listing["kind"] = json!("product")),
            NoOffer::OtherKind
        );
        assert_eq!(because(|listing| listing["name"] = json!(1)), NoOffer::Unreadable);
        assert_eq!(
            because(|listing| listing["attributes"] = json!({ "product_id": "../x" })),
            NoOffer::IdInvalid
        );
    }
}
