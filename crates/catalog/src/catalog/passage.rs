//! What of a listing is embedded.

use sha2::{Digest as _, Sha256};

use crate::entry::{AttributeValue, Entry};
use crate::limits::{PASSAGE_ATTRIBUTE_BYTES_MAX, PASSAGE_ATTRIBUTES_MAX, PASSAGE_BYTES_MAX};
use crate::vectors::TextHash;

/// Raised with every change of what is embedded: then everything is embedded anew.
const VERSION: &[u8] = b"aip passage, 1";

/// Name, brand, category, tags, some attributes that are words, and the description: in this order, since models read only
/// so far. Prices and numbers say nothing to them.
pub fn passage(entry: &Entry) -> String {
    let label = |text: &Option<String>| text.clone().into_iter();
    let words = label(&entry.brand)
        .chain(label(&entry.category))
        .chain(entry.tags.iter().cloned());
    let words: Vec<String> = words.chain(attributes(entry)).collect();
    let parts = [entry.name.clone(), words.join(", "), entry.description.clone()];
    let mut text = parts.join("\n");
    text.truncate(text.floor_char_boundary(PASSAGE_BYTES_MAX));
    text
}

fn attributes(entry: &Entry) -> impl Iterator<Item = String> {
    let others = entry
        .attributes
        .iter()
        .filter(|(name, _)| !["brand", "category"].contains(&name.as_str()));
    let words = others.filter_map(|(name, value)| match value {
        AttributeValue::Text(text) if text.len() <= PASSAGE_ATTRIBUTE_BYTES_MAX => {
            Some(format!("{name} {text}"))
        }
        _ => None,
    });
    words.take(PASSAGE_ATTRIBUTES_MAX)
}

/// What tells whether a text was embedded.
pub fn passage_hash(text: &str) -> TextHash {
    let digest: [u8; 32] = Sha256::new()
        .chain_update(VERSION)
        .chain_update(text)
        .finalize()
        .into();
    digest.first_chunk().copied().unwrap_or_default()
}
