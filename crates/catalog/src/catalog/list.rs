//! Lists of results: fused once, kept for the pages that follow.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use aip_protocol::fusion::{Fused, Fusion, Ranks};
use moka::sync::Cache;

use super::found::ExplainText;
use crate::cursor::Fingerprint;
use crate::limits::{LISTS_BYTES_MAX, LISTS_KEPT_SECS};
use crate::ranking::{Lists, Meaning};
use crate::text::{Named, TextHits};

/// One result, as it was fused.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub number: u64,
    pub id: Box<str>,
    pub ranks: Ranks,
    pub rrf: f64,
    pub trust: f64,
    pub relevance: f64,
    pub score: f64,
}

/// Results, best first, as far as they were looked for.
#[derive(Debug, Clone)]
pub(super) struct ResultList {
    pub id: u64,
    pub fingerprint: Fingerprint,
    pub items: Vec<Listed>,
    /// How often it was made deeper.
    pub level: u8,
    /// There is more where it came from.
    pub is_cut: bool,
    /// It was made without the list by meaning.
    pub is_degraded: bool,
}

impl ResultList {
    /// Puts behind its end what a deeper search found, without what is in it already: what was shown keeps its place.
    pub(super) fn deepen(&mut self, deeper: Self) {
        let known: HashSet<u64> = self.items.iter().map(|item| item.number).collect();
        let new = deeper
            .items
            .into_iter()
            .filter(|item| !known.contains(&item.number));
        self.items.extend(new);
        self.level = deeper.level;
        self.is_cut = deeper.is_cut;
        self.is_degraded |= deeper.is_degraded;
    }

    /// The place after the result of this id that weighed so much; where it is gone, that of the first that weighs less, or
    /// as much and has a higher id.
    pub(super) fn after(&self, score: f64, id: &str) -> usize {
        let is_it = |item: &Listed| *item.id == *id;
        if let Some(at) = self.items.iter().position(is_it) {
            return at + 1;
        }
        let is_behind = |item: &Listed| item.score < score || (item.score <= score && *item.id > *id);
        self.items.iter().position(is_behind).unwrap_or(self.items.len())
    }

    fn bytes(&self) -> usize {
        let ids: usize = self.items.iter().map(|item| item.id.len()).sum();
        256 + ids + self.items.len() * size_of::<Listed>()
    }
}

/// Fuses two lists of numbers; one that has no name is in neither index any more.
pub(super) fn fuse(
    fusion: &Fusion,
    lists: &Lists,
    has_meaning: bool,
    named: &HashMap<u64, Named>,
) -> Vec<Listed> {
    let of = |numbers: &[u64]| -> Vec<&str> {
        numbers
            .iter()
            .filter_map(|number| named.get(number))
            .map(|named| named.id.as_str())
            .collect()
    };
    let numbers: HashMap<&str, (u64, f64)> = named
        .iter()
        .map(|(number, named)| (named.id.as_str(), (*number, named.trust)))
        .collect();
    let trust = |id: &str| numbers.get(id).map_or(0.0, |(_, trust)| *trust);
    let (fts, semantic) = (of(&lists.fts), of(&lists.semantic));
    let fused = fusion.fuse(Some(&fts), has_meaning.then_some(semantic.as_slice()), trust);
    let listed = |fused: Fused<'_>| {
        let (number, _) = numbers.get(fused.id)?;
        Some(Listed {
            number: *number,
            id: fused.id.into(),
            ranks: fused.ranks,
            rrf: fused.rrf,
            trust: fused.trust_score,
            relevance: fused.relevance_score,
            score: fused.final_score,
        })
    };
    fused.into_iter().filter_map(listed).collect()
}

/// What the lists say of a result, for those who want to know why it stands where it stands.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    text: HashMap<u64, ExplainText>,
    cosines: HashMap<u64, BTreeMap<String, f32>>,
}

impl Reasons {
    pub(super) fn of<'a>(text: &TextHits, meanings: impl Iterator<Item = (&'a str, &'a Meaning)>) -> Self {
        let mut reasons = Self::default();
        for hit in &text.hits {
            let reason = ExplainText {
                score: hit.score,
                coverage: hit.coverage,
                exact: hit.exact,
            };
            reasons.text.insert(hit.number, reason);
        }
        for (embedder, meaning) in meanings {
            let nearest = meaning.nearest.iter().map(|near| (near.number, near.score));
            for (number, cosine) in
                nearest.chain(meaning.others.iter().map(|(number, cosine)| (*number, *cosine)))
            {
                reasons
                    .cosines
                    .entry(number)
                    .or_default()
                    .insert(embedder.to_owned(), cosine);
            }
        }
        reasons
    }

    pub(super) fn text(&self, number: u64) -> Option<ExplainText> {
        self.text.get(&number).copied()
    }

    pub(super) fn cosines(&self, number: u64) -> BTreeMap<String, f32> {
        self.cosines.get(&number).cloned().unwrap_or_default()
    }
}

/// The lists that are kept.
#[derive(Debug)]
pub(super) struct Kept(Cache<u64, Arc<ResultList>>);

impl Kept {
    pub(super) fn new() -> Self {
        let bytes = |_: &u64, list: &Arc<ResultList>| u32::try_from(list.bytes()).unwrap_or(u32::MAX);
        let lists = Cache::builder().max_capacity(LISTS_BYTES_MAX).weigher(bytes);
        Self(lists.time_to_live(Duration::from_secs(LISTS_KEPT_SECS)).build())
    }

    /// The list of this id, where it is kept and is this query's.
    pub(super) fn get(&self, id: u64, fingerprint: &Fingerprint) -> Option<Arc<ResultList>> {
        self.0.get(&id).filter(|list| list.fingerprint == *fingerprint)
    }

    pub(super) fn keep(&self, list: Arc<ResultList>) {
        self.0.insert(list.id, list);
    }

    #[cfg(test)]
    pub(super) fn forget(&self) {
        self.0.invalidate_all();
    }
}
