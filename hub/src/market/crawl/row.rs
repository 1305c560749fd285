//! A tool of a peer's manifest, as it is taken up here: what cannot be read, or could mislead, is left out.

use aip_market::money::Usd;
use aip_market::offer::is_id;
use aip_market::peers::peer_url;
use aip_market::schema::Schema;
use aip_protocol::market::Value;
use serde_json::Value as Plain;

use super::words::plain;
use crate::market::limits::{
    PEER_NAME_CHARS_MAX, PEER_PRICE_USD_MAX, PEER_SCHEMA_LEVELS_MAX, PEER_TEXT_CHARS_MAX, PEER_WORD_CHARS_MAX,
};

/// A capability of a peer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) product_id: String,
    pub(super) capability_id: String,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) category: Option<String>,
    pub(super) price: Usd,
    pub(super) input_schema: Option<Plain>,
    pub(super) output_schema: Option<Plain>,
}

/// Why a tool is not taken up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum LeftOut {
    /// Another hub sells it: it is taken up from that one, or not at all.
    Resold,
    /// It is no object, or has no ids in their form.
    Unnamed,
    /// It has no price, or none from 0 to 1,000 dollars.
    Unpriced,
    /// Its input schema is none, or too large or deep.
    Schema,
    /// It says itself that it cannot be had.
    NotOffered,
    /// Its ids are those of a tool before it.
    Twice,
    /// It is beyond the number of tools that are looked at.
    TooMany,
}

impl Row {
    /// Reads a tool of the peer at `url`.
    ///
    /// # Errors
    /// It is left out, and why.
    pub(super) fn read(tool: &Value, url: &str) -> Result<Self, LeftOut> {
        let text = |name: &str| tool.get(name).and_then(Value::as_str);
        if !is_its_own(tool, url) {
            return Err(LeftOut::Resold);
        }
        let id = |name: &str| text(name).filter(|id| is_id(id)).map(str::to_owned);
        let (Some(product_id), Some(capability_id)) = (id("product_id"), id("capability_id")) else {
            return Err(LeftOut::Unnamed);
        };
        let is_withheld = tool.get("offerable").and_then(Value::as_bool) == Some(false)
            || text("access_mode") == Some("operator_gated")
            || text("route_status") == Some("unavailable");
        if is_withheld {
            return Err(LeftOut::NotOffered);
        }
        let name = ["display_name", "name"].into_iter().filter_map(text);
        let mut names = name
            .map(|name| plain(name, PEER_NAME_CHARS_MAX))
            .filter(|name| !name.is_empty());
        let category = text("category").map(|category| plain(category, PEER_WORD_CHARS_MAX));
        Ok(Self {
            price: price(tool).ok_or(LeftOut::Unpriced)?,
            input_schema: schema(tool.get("input_schema"))?,
            // What it is worth is seen when a result comes; without one there is nothing to see.
            output_schema: schema(tool.get("output_schema")).unwrap_or_default(),
            name: names.next().unwrap_or_else(|| capability_id.clone()),
            description: text("description")
                .map_or_else(String::new, |text| plain(text, PEER_TEXT_CHARS_MAX)),
            category: category.filter(|category| !category.is_empty()),
            product_id,
            capability_id,
        })
    }
}

/// Whether the peer says that it sells this itself. What it has from others, and be it from this hub, came here on its own.
fn is_its_own(tool: &Value, url: &str) -> bool {
    match tool.get("source_hub") {
        None | Some(Value::Null) => true,
        Some(Value::Str(hub)) => {
            matches!(hub.as_str(), "" | "local") || peer_url(hub).is_some_and(|hub| hub == url)
        }
        Some(_) => false,
    }
}

/// What is finer than a millionth is rounded up: nobody sells below the price that was named.
fn price(tool: &Value) -> Option<Usd> {
    let named = ["price_per_call_usd", "price_usd"]
        .into_iter()
        .find_map(|name| tool.get(name));
    let dollars = named?.as_number()?.as_f64();
    if !(0.0..=PEER_PRICE_USD_MAX).contains(&dollars) {
        return None;
    }
    let near = Usd::from_f64(dollars).ok()?;
    if near.to_f64() >= dollars {
        return Some(near);
    }
    Usd::from_micros(near.micros() + 1)
}

/// A schema that can be checked, if there is one.
fn schema(given: Option<&Value>) -> Result<Option<Plain>, LeftOut> {
    let Some(given) = given.filter(|given| **given != Value::Null) else {
        return Ok(None);
    };
    if !has_levels(given, PEER_SCHEMA_LEVELS_MAX) {
        return Err(LeftOut::Schema);
    }
    let schema = Plain::from(given.clone());
    let is_usable = Schema::new(schema.clone()).is_ok_and(|schema| schema.is_usable());
    is_usable.then_some(Some(schema)).ok_or(LeftOut::Schema)
}

/// Whether a value has at most so many levels of objects and arrays.
fn has_levels(value: &Value, levels: usize) -> bool {
    let inside = |item: &Value| levels > 0 && has_levels(item, levels - 1);
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(inside),
        Value::Object(members) => levels > 0 && members.values().all(inside),
        _ => true,
    }
}
