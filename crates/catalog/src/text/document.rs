//! A listing as a document of the index, and back.

use std::collections::BTreeMap;

use aip_protocol::listing::ListingKind;
use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use tantivy::TantivyDocument;

use crate::entry::{AttributeValue, Entry};
use crate::price::Price;

use super::analysis::{self, Terms};
use super::schema::Fields;
use super::terms::SEPARATOR;

/// What a listing without a moment of expiry has in its column.
pub(super) const NEVER: i64 = i64::MAX;

/// The document of a listing.
pub(super) fn document(fields: &Fields, entry: &Entry) -> Result<TantivyDocument, serde_json::Error> {
    let lang = language(entry);
    let mut document = TantivyDocument::new();
    add_terms(fields, entry, lang.as_deref(), &mut document);
    add_labels(fields, entry, lang.as_deref(), &mut document);
    document.add_u64(fields.number, entry.number);
    document.add_text(fields.id, &entry.id);
    if let Some(price) = entry
        .price_text
        .as_deref()
        .and_then(|price| Price::parse(price).ok())
    {
        document.add_u64(fields.price, price.units());
    }
    document.add_i64(fields.updated_at, entry.updated_at.unix_millis());
    document.add_i64(
        fields.expires_at,
        entry.expires_at.map_or(NEVER, Timestamp::unix_millis),
    );
    document.add_text(fields.entry, serde_json::to_string(&Stored::of(entry))?);
    Ok(document)
}

/// The language that the listing says, else the one its text is in.
pub(super) fn language(entry: &Entry) -> Option<String> {
    let said = entry
        .lang
        .as_deref()
        .map(analysis::primary)
        .filter(|lang| !lang.is_empty());
    said.or_else(|| analysis::detect(&format!("{}\n{}", entry.name, entry.description)).map(str::to_owned))
}

/// The term of an attribute's value.
pub(super) fn attribute(key: &str, value: &str) -> String {
    format!("{}={}", analysis::label(key), analysis::label(value))
}

/// The term of being available or not.
pub(super) const fn availability(is_available: bool) -> &'static str {
    if is_available { "yes" } else { "no" }
}

/// The texts of a listing that words are looked for in, each with the name it is explained by.
pub(super) fn texts(entry: &Entry) -> Vec<(&'static str, String)> {
    let mut texts = vec![
        ("name", entry.name.clone()),
        ("description", entry.description.clone()),
    ];
    texts.extend(entry.tags.iter().map(|tag| ("tags", tag.clone())));
    texts.extend(
        entry
            .category
            .iter()
            .map(|category| ("category", category.clone())),
    );
    texts.extend(entry.brand.iter().map(|brand| ("brand", brand.clone())));
    let others = entry
        .attributes
        .iter()
        .filter(|(key, _)| !matches!(key.as_str(), "category" | "brand"));
    texts.extend(others.filter_map(|(key, value)| {
        let text = match value {
            AttributeValue::Text(text) => text.clone(),
            AttributeValue::Int(number) => number.to_string(),
            // What is true is said by its name.
            AttributeValue::Bool(true) => key.clone(),
            AttributeValue::Bool(false) => return None,
        };
        Some(("attributes", text))
    }));
    texts
}

fn add_terms(fields: &Fields, entry: &Entry, lang: Option<&str>, document: &mut TantivyDocument) {
    let mut terms = Terms::default();
    for (_, text) in texts(entry) {
        terms.add(&text, lang);
    }
    document.add_text(fields.words, terms.words.join(SEPARATOR));
    document.add_text(fields.forms, terms.forms.join(SEPARATOR));
    document.add_text(fields.codes, terms.codes.join(SEPARATOR));
    document.add_text(fields.grams, terms.grams.join(SEPARATOR));
    document.add_text(fields.name, analysis::name_key(&entry.name));
}

fn add_labels(fields: &Fields, entry: &Entry, lang: Option<&str>, document: &mut TantivyDocument) {
    document.add_text(fields.agent, entry.agent.as_str());
    document.add_text(fields.kind, entry.kind.as_str());
    document.add_text(fields.domain, entry.source_hub.as_str());
    document.add_text(fields.available, availability(entry.available.unwrap_or(true)));
    for (key, value) in &entry.attributes {
        document.add_text(fields.attributes, attribute(key, &value.to_string()));
    }
    let optional = [
        (fields.category, entry.category.as_deref().map(analysis::label)),
        (fields.brand, entry.brand.as_deref().map(analysis::label)),
        (fields.lang, lang.map(str::to_owned)),
        (fields.currency, entry.currency.clone()),
    ];
    for (field, label) in optional {
        if let Some(label) = label {
            document.add_text(field, label);
        }
    }
}

/// A listing as it is kept in the index.
#[derive(Serialize, Deserialize)]
struct Stored {
    id: String,
    number: u64,
    agent: String,
    hub: String,
    kind: u8,
    name: String,
    description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lang: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    brand: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    currency: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    available: Option<bool>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<String, AttributeValue>,
    created_at: i128,
    updated_at: i128,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<i128>,
}

const KINDS: [(u8, ListingKind); 3] = [
    (0, ListingKind::Capability),
    (1, ListingKind::Product),
    (2, ListingKind::Concept),
];

impl Stored {
    fn of(entry: &Entry) -> Self {
        let kind = KINDS
            .iter()
            .find(|(_, kind)| *kind == entry.kind)
            .map_or(0, |(number, _)| *number);
        Self {
            id: entry.id.clone(),
            number: entry.number,
            agent: entry.agent.as_str().to_owned(),
            hub: entry.source_hub.as_str().to_owned(),
            kind,
            name: entry.name.clone(),
            description: entry.description.clone(),
            lang: entry.lang.clone(),
            tags: entry.tags.clone(),
            category: entry.category.clone(),
            brand: entry.brand.clone(),
            price: entry.price_text.clone(),
            currency: entry.currency.clone(),
            available: entry.available,
            attributes: entry.attributes.clone(),
            created_at: entry.created_at.unix_nanos(),
            updated_at: entry.updated_at.unix_nanos(),
            expires_at: entry.expires_at.map(Timestamp::unix_nanos),
        }
    }
}

/// The listing that was stored; none where the text is not what this module wrote.
pub(super) fn read_stored(text: &str) -> Option<Entry> {
    let stored: Stored = serde_json::from_str(text).ok()?;
    Some(Entry {
        id: stored.id,
        number: stored.number,
        agent: Did::parse(&stored.agent).ok()?,
        source_hub: Domain::parse(&stored.hub).ok()?,
        kind: KINDS.iter().find(|(number, _)| *number == stored.kind)?.1,
        name: stored.name,
        description: stored.description,
        lang: stored.lang,
        tags: stored.tags,
        category: stored.category,
        brand: stored.brand,
        price_text: stored.price,
        currency: stored.currency,
        available: stored.available,
        attributes: stored.attributes,
        created_at: Timestamp::from_unix_nanos(stored.created_at),
        updated_at: Timestamp::from_unix_nanos(stored.updated_at),
        expires_at: stored.expires_at.map(Timestamp::from_unix_nanos),
    })
}
