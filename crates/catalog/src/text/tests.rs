//! Tests of the full-text list.

mod codes;
mod filters;
mod hostile;
mod index;
mod languages;
mod order;

use std::collections::BTreeMap;

use aip_protocol::listing::ListingKind;
use aip_protocol::name::{Did, Domain};
use aip_protocol::time::Timestamp;

use crate::entry::{AttributeValue, Entry};
use crate::query::Filter;
use crate::source::Change;
use crate::trust::NoTrust;

use super::{TextHits, TextIndex, TextOptions, TextView};

const DEPTH: usize = 200;

fn now() -> Timestamp {
    Timestamp::from_unix_secs(1_800_000_000)
}

fn entry(number: u64, name: &str) -> Entry {
    Entry {
        id: format!("lst_{number:06}"),
        number,
        agent: Did::parse("did:aip:shop.example:seller").unwrap(),
        source_hub: Domain::parse("shop.example").unwrap(),
        kind: ListingKind::Product,
        name: name.to_owned(),
        description: String::new(),
        lang: None,
        tags: Vec::new(),
        category: None,
        brand: None,
        price_text: None,
        currency: None,
        available: None,
        attributes: BTreeMap::new(),
        created_at: now(),
        updated_at: now(),
        expires_at: None,
    }
}

fn with_lang(number: u64, name: &str, lang: &str) -> Entry {
    Entry {
        lang: Some(lang.to_owned()),
        ..entry(number, name)
    }
}

fn attribute(mut entry: Entry, key: &str, value: AttributeValue) -> Entry {
    entry.attributes.insert(key.to_owned(), value);
    entry
}

fn change(entry: Entry) -> Change {
    Change {
        seq: entry.number,
        number: entry.number,
        entry: Some(entry),
    }
}

fn memory() -> TextIndex {
    TextIndex::open(None, &TextOptions::default()).unwrap()
}

fn index_of(entries: Vec<Entry>) -> TextIndex {
    let index = memory();
    index
        .apply(&entries.into_iter().map(change).collect::<Vec<_>>())
        .unwrap();
    index
}

/// An index of products with these names, numbered from 1.
fn names(names: &[&str]) -> TextIndex {
    index_of(
        (1..)
            .zip(names)
            .map(|(number, name)| entry(number, name))
            .collect(),
    )
}

fn search(view: &TextView, text: &str) -> TextHits {
    view.search(text, &Filter::default(), &NoTrust, now(), DEPTH)
        .unwrap()
}

fn found(index: &TextIndex, text: &str) -> Vec<u64> {
    search(&index.view(), text)
        .hits
        .iter()
        .map(|hit| hit.number)
        .collect()
}
