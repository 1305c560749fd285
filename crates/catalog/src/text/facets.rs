//! How many of what passes a filter are of which kind, category, and so on.

use std::collections::HashMap;

use tantivy::{Searcher, SegmentReader};

use crate::limits::FACET_VALUES_MAX;

use super::bits::Bits;
use super::schema::column;

/// A value and how many listings have it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FacetCount {
    /// The value, in lower case where filters do not tell cases apart.
    pub value: String,
    /// Listings.
    pub count: u64,
}

/// The most frequent values, at most [`FACET_VALUES_MAX`] each, highest count first, equal ones by value.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Facets {
    /// By kind.
    pub kind: Vec<FacetCount>,
    /// By category.
    pub category: Vec<FacetCount>,
    /// By brand.
    pub brand: Vec<FacetCount>,
    /// By currency.
    pub currency: Vec<FacetCount>,
    /// By language.
    pub lang: Vec<FacetCount>,
    /// By domain of the hub.
    pub domain: Vec<FacetCount>,
}

pub(super) fn facets(searcher: &Searcher, admitted: &[Option<Bits>]) -> tantivy::Result<Facets> {
    let counts = |name: &str| count(searcher, admitted, name);
    Ok(Facets {
        kind: counts(column::KIND)?,
        category: counts(column::CATEGORY)?,
        brand: counts(column::BRAND)?,
        currency: counts(column::CURRENCY)?,
        lang: counts(column::LANG)?,
        domain: counts(column::DOMAIN)?,
    })
}

fn count(searcher: &Searcher, admitted: &[Option<Bits>], name: &str) -> tantivy::Result<Vec<FacetCount>> {
    let mut counts = HashMap::new();
    for (segment, bits) in searcher.segment_readers().iter().zip(admitted) {
        count_segment(segment, bits.as_ref(), name, &mut counts)?;
    }
    let mut counts: Vec<FacetCount> = counts
        .into_iter()
        .map(|(value, count)| FacetCount { value, count })
        .collect();
    counts.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.value.cmp(&b.value)));
    counts.truncate(FACET_VALUES_MAX);
    Ok(counts)
}

fn count_segment(
    segment: &SegmentReader,
    bits: Option<&Bits>,
    name: &str,
    counts: &mut HashMap<String, u64>,
) -> tantivy::Result<()> {
    let Some(values) = segment.fast_fields().str(name)? else {
        return Ok(());
    };
    let mut by_ord = vec![0_u64; values.num_terms()];
    let mut take = |document| {
        let ord = values
            .ords()
            .first(document)
            .and_then(|ord| usize::try_from(ord).ok());
        if let Some(count) = ord.and_then(|ord| by_ord.get_mut(ord)) {
            *count += 1;
        }
    };
    match bits {
        Some(bits) => bits.iter().for_each(&mut take),
        None => (0..segment.max_doc()).for_each(&mut take),
    }
    let found: Vec<(u64, u64)> = (0..).zip(by_ord).filter(|(_, count)| *count > 0).collect();
    let ords: Vec<u64> = found.iter().map(|(ord, _)| *ord).collect();
    let mut found = found.iter();
    values.dictionary().sorted_ords_to_term_cb(&ords, |value| {
        if let Some((_, count)) = found.next() {
            *counts
                .entry(String::from_utf8_lossy(value).into_owned())
                .or_default() += count;
        }
    })?;
    Ok(())
}
