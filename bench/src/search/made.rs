//! Listings made from the real sets: as many as are wished, each another, the same for the same number every time.
//!
//! A listing has the name, the labels and the text of one document, and the text of another of its set behind it, so that
//! words have the frequencies that they have in the sets; it has a code that only it has, an agent of a thousand, and a
//! price of its own.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::ops::Range;
use std::path::Path;

use aip_catalog::{AttributeValue, Change, Entry};
use aip_protocol::name::Did;
use anyhow::{anyhow, ensure};

use crate::quality::{corpus, sets};

/// Bytes of one document's text that a listing says: the sets hold articles, an offer is shorter.
const TEXT_BYTES_MAX: usize = 300;

/// Agents whose listings they are.
const AGENTS: u32 = 1_000;

/// The documents that listings are made of.
#[derive(Debug)]
pub(super) struct Made {
    documents: Vec<Document>,
    agents: Vec<Did>,
}

#[derive(Debug)]
struct Document {
    entry: Entry,
    /// The documents of its set.
    set: Range<usize>,
}

impl Made {
    /// Reads all corpora of the folder.
    pub(super) fn read(data: &Path) -> anyhow::Result<Self> {
        let corpora: BTreeSet<_> = sets::read(data, &[])?.into_iter().map(|run| run.corpus).collect();
        let mut documents = Vec::new();
        for path in corpora {
            let entries = corpus::read(&path)?;
            let set = documents.len()..documents.len() + entries.len();
            documents.extend(entries.into_iter().map(|mut entry| {
                let end = entry.description.floor_char_boundary(TEXT_BYTES_MAX);
                entry.description.truncate(end);
                // Lines tell the parts of a listing's text from each other.
                entry.description = entry.description.replace('\n', " ");
                entry.name = entry.name.replace('\n', " ");
                Document {
                    entry,
                    set: set.clone(),
                }
            }));
        }
        ensure!(!documents.is_empty(), "no document in {}", data.display());
        let agent = |number| {
            Did::parse(&format!("did:aip:market.example:agent{number}"))
                .map_err(|refusal| anyhow!("{refusal}"))
        };
        Ok(Self {
            documents,
            agents: (0..AGENTS).map(agent).collect::<anyhow::Result<_>>()?,
        })
    }

    /// The documents, as listings of their own.
    pub(super) fn documents(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.documents.iter().map(|document| &document.entry)
    }

    /// The listing of this number.
    pub(super) fn entry(&self, number: u64) -> Option<Entry> {
        let first = self
            .documents
            .get(draw(&(number, "first"), self.documents.len()))?;
        let second = first.set.start + draw(&(number, "second"), first.set.len());
        let second = self.documents.get(second)?;
        let mut entry = first.entry.clone();
        entry.id = format!("lst_{:016x}", mixed(&(number, "id")));
        entry.number = number;
        entry.agent = self
            .agents
            .get(draw(&(number, "agent"), self.agents.len()))?
            .clone();
        entry.description = format!("{}\n{}", entry.description, second.entry.description);
        if entry.price_text.is_some() {
            let price = draw(&(number, "price"), 100_000);
            entry.price_text = Some(format!("{}.{:02}", price / 100, price % 100));
            entry.currency = Some("EUR".to_owned());
        }
        entry
            .attributes
            .insert("sku".to_owned(), AttributeValue::Text(code(number)));
        Some(entry)
    }

    /// The listing as the store's change of that number.
    pub(super) fn change(&self, number: u64) -> Change {
        Change {
            seq: number,
            number,
            entry: self.entry(number),
        }
    }
}

/// The code that only the listing of this number has.
pub(super) fn code(number: u64) -> String {
    let letter = |salt: &str| {
        char::from_digit(u32::try_from(10 + draw(&(number, salt), 26)).unwrap_or(10), 36).unwrap_or('x')
    };
    format!("{}{}-{number:07}", letter("a"), letter("b")).to_uppercase()
}

/// A number below `most` that hangs on the key only.
pub(super) fn draw<K: Hash>(key: &K, most: usize) -> usize {
    let most = u64::try_from(most.max(1)).unwrap_or(u64::MAX);
    usize::try_from(mixed(key) % most).unwrap_or(0)
}

/// A number that hangs on the key only.
pub(super) fn mixed<K: Hash + ?Sized>(key: &K) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
