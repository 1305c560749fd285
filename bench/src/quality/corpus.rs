//! The documents of a set, as listings.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use aip_catalog::{AttributeValue, Entry, Price};
use aip_protocol::listing::ListingKind;
use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;
use anyhow::{Context as _, anyhow};
use flate2::read::GzDecoder;
use serde_json::{Map, Value};

/// The hub and the agent of all listings.
const HUB: &str = "sets.example";
const AGENT: &str = "did:aip:sets.example:sets";

/// The lines of a file, gzipped or not.
pub(crate) fn lines(path: &Path) -> anyhow::Result<Vec<String>> {
    let mut file = File::open(path).with_context(|| format!("{}", path.display()))?;
    let mut text = String::new();
    if path.extension().is_some_and(|end| end == "gz") {
        GzDecoder::new(file).read_to_string(&mut text)?;
    } else {
        file.read_to_string(&mut text)?;
    }
    // A text may hold other ends of lines than this one.
    Ok(text
        .split('\n')
        .filter(|line| !line.trim().is_empty())
        .map(str::to_owned)
        .collect())
}

/// The listings of a corpus, numbered from 1.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<Entry>> {
    let lines = lines(path)?;
    let entries = (1_u64..)
        .zip(&lines)
        .map(|(number, line)| entry(number, serde_json::from_str(line)?));
    entries.collect()
}

/// `title` is the name and `text` the description; `price`, `category`, `brand` and `lang` are what they are called; whatever
/// else there is, is an attribute.
fn entry(number: u64, mut row: Map<String, Value>) -> anyhow::Result<Entry> {
    let mut take = |name: &str| {
        row.remove(name)
            .map(|value| text(&value))
            .filter(|text| !text.is_empty())
    };
    let id = take("id").ok_or_else(|| anyhow!("a document without `id`"))?;
    let (name, description) = (
        take("title").unwrap_or_default(),
        take("text").unwrap_or_default(),
    );
    let (price, lang) = (take("price"), take("lang"));
    let attributes: BTreeMap<String, AttributeValue> = row
        .iter()
        .map(|(name, value)| (name.clone(), text(value)))
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name, AttributeValue::Text(value)))
        .collect();
    let attribute = |name: &str| attributes.get(name).map(AttributeValue::to_string);
    let stored_at = Timestamp::from_unix_secs(0);
    Ok(Entry {
        id,
        number,
        agent: Did::parse(AGENT).map_err(|refusal| anyhow!("{refusal:?}"))?,
        source_hub: Domain::parse(HUB).map_err(|refusal| anyhow!("{refusal:?}"))?,
        kind: if price.is_some() {
            ListingKind::Product
        } else {
            ListingKind::Capability
        },
        name,
        description,
        lang,
        tags: Vec::new(),
        category: attribute("category"),
        brand: attribute("brand"),
        price_text: price.filter(|price| Price::parse(price).is_ok()),
        currency: None,
        available: None,
        attributes,
        created_at: stored_at,
        updated_at: stored_at,
        expires_at: None,
    })
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
