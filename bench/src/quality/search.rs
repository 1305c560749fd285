//! The catalog's own parts, filled with a set and asked.

use aip_catalog::catalog::{passage, passage_hash};
use aip_catalog::limits::{CHANGES_AT_ONCE_MAX, LEG_DEPTH_MIN};
use aip_catalog::ranking::{self, Meaning};
use aip_catalog::vectors::{NewVector, PROBES, Space};
use aip_catalog::{Change, Entry, Filter, NoTrust, TextHits, TextIndex, TextOptions};
use aip_protocol::fusion::Fusion;
use aip_protocol::time::Timestamp;

use super::vectors::Vectors;

/// An index and a space of vectors for each model.
pub(crate) struct Shelves {
    text: TextIndex,
    spaces: Vec<Space>,
    /// By number, from 1.
    ids: Vec<String>,
}

/// The three lists of ids, best first.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) fts: Vec<String>,
    pub(crate) semantic: Vec<String>,
    pub(crate) fused: Vec<String>,
}

impl Shelves {
    /// Indexes the listings and gives them vectors.
    pub(crate) async fn fill(entries: &[Entry], vectors: &mut [Vectors]) -> anyhow::Result<Self> {
        let text = TextIndex::open(None, &TextOptions::default())?;
        let changes: Vec<Change> = entries
            .iter()
            .map(|entry| Change {
                seq: entry.number,
                number: entry.number,
                entry: Some(entry.clone()),
            })
            .collect();
        for changes in changes.chunks(CHANGES_AT_ONCE_MAX) {
            text.apply(changes)?;
        }
        let passages: Vec<String> = entries.iter().map(passage).collect();
        let probes: Vec<String> = PROBES.iter().map(|probe| (*probe).to_owned()).collect();
        let mut spaces = Vec::new();
        for vectors in vectors {
            let space = Space::open(None, vectors.id(), vectors.dimensions())?;
            space.centre(&vectors.of_passages(&probes).await?)?;
            let found = vectors.of_passages(&passages).await?;
            let rows = entries.iter().zip(&passages).zip(found);
            let rows = rows.map(|((entry, passage), vector)| NewVector {
                number: entry.number,
                hash: passage_hash(passage),
                vector,
            });
            let rows: Vec<NewVector> = rows.collect();
            space.put(&rows)?;
            spaces.push(space);
        }
        Ok(Self {
            text,
            spaces,
            ids: entries.iter().map(|entry| entry.id.clone()).collect(),
        })
    }

    /// Asks: the text, and the vector of it in each space.
    pub(crate) fn find(&self, text: &str, vectors: &[&[f32]]) -> anyhow::Result<Found> {
        let now = Timestamp::from_unix_secs(0);
        let found = self
            .text
            .view()
            .search(text, &Filter::default(), &NoTrust, now, LEG_DEPTH_MIN)?;
        let fts: Vec<u64> = found.hits.iter().map(|hit| hit.number).collect();
        let alone = self.meanings(&TextHits::default(), vectors);
        let lists = ranking::lists(&found, &self.meanings(&found, vectors));
        let (ranked_fts, ranked_semantic) = (self.names(&lists.fts), self.names(&lists.semantic));
        let semantic = (!vectors.is_empty()).then_some(ranked_semantic.as_slice());
        let fused = Fusion::default().fuse(Some(&ranked_fts), semantic, |_| 0.0);
        let fused = fused.into_iter().map(|item| item.id.to_owned()).collect();
        let owned = |numbers: &[u64]| self.names(numbers).into_iter().map(str::to_owned).collect();
        Ok(Found {
            fts: owned(&fts),
            semantic: owned(&ranking::by_meaning(&alone)),
            fused,
        })
    }

    fn meanings(&self, text: &TextHits, vectors: &[&[f32]]) -> Vec<Meaning> {
        let spaces: Vec<(&Space, &[f32])> = self.spaces.iter().zip(vectors.iter().copied()).collect();
        ranking::meanings(text, &spaces, None, LEG_DEPTH_MIN)
    }

    fn names(&self, numbers: &[u64]) -> Vec<&str> {
        let place = |number: &u64| usize::try_from(*number).ok()?.checked_sub(1);
        numbers
            .iter()
            .filter_map(|number| self.ids.get(place(number)?))
            .map(String::as_str)
            .collect()
    }
}
