//! All that passes a filter, when nothing is looked for: by trust, then by id.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tantivy::columnar::StrColumn;
use tantivy::{DocId, Searcher, SegmentReader};

use crate::trust::TrustScores;

use super::bits::Bits;
use super::filter::Trusted;
use super::schema::column;

/// A listing that passed.
#[derive(Debug, Clone, PartialEq)]
pub struct Browsed {
    /// The store's number of the listing.
    pub number: u64,
    /// The hub's id of the listing.
    pub id: String,
    /// The trust in its agent, 0 to 1.
    pub trust: f64,
}

/// What is better is greater: trust as its bits, which rise with it from 0 on.
type Place = (u64, Reverse<u64>, DocId);

pub(super) fn browse(
    searcher: &Searcher,
    admitted: &[Option<Bits>],
    trust: &dyn TrustScores,
    after: Option<(f64, &str)>,
    limit: usize,
) -> tantivy::Result<Vec<Browsed>> {
    let mut all = Vec::new();
    for (segment, bits) in searcher.segment_readers().iter().zip(admitted) {
        all.extend(of_segment(segment, bits.as_ref(), trust, after, limit)?);
    }
    all.sort_by(|a, b| b.trust.total_cmp(&a.trust).then_with(|| a.id.cmp(&b.id)));
    all.truncate(limit);
    Ok(all)
}

fn of_segment(
    segment: &SegmentReader,
    bits: Option<&Bits>,
    trust: &dyn TrustScores,
    after: Option<(f64, &str)>,
    limit: usize,
) -> tantivy::Result<Vec<Browsed>> {
    let columns = segment.fast_fields();
    let (Some(ids), Some(agents)) = (columns.str(column::ID)?, columns.str(column::AGENT)?) else {
        return Ok(Vec::new());
    };
    let Some(numbers) = columns.column_opt::<u64>(column::NUMBER)? else {
        return Ok(Vec::new());
    };
    let after = after
        .map(|(trust, id)| Ok::<_, tantivy::TantivyError>((trust.to_bits(), first_after(&ids, id)?)))
        .transpose()?;
    let mut trusted = Trusted::new(&agents, trust);
    let mut best: BinaryHeap<Reverse<Place>> = BinaryHeap::new();
    let mut take = |document: DocId| {
        let Some(ord) = ids.ords().first(document) else {
            return;
        };
        let score = trusted.score(document).to_bits();
        let is_after = after.is_none_or(|(least, first)| score < least || (score == least && ord >= first));
        if is_after {
            best.push(Reverse((score, Reverse(ord), document)));
            if best.len() > limit {
                best.pop();
            }
        }
    };
    match bits {
        Some(bits) => bits.iter().for_each(&mut take),
        None => (0..segment.max_doc()).for_each(&mut take),
    }
    named(best, &ids, |document| numbers.first(document))
}

fn named(
    best: BinaryHeap<Reverse<Place>>,
    ids: &StrColumn,
    number: impl Fn(DocId) -> Option<u64>,
) -> tantivy::Result<Vec<Browsed>> {
    let mut browsed = Vec::with_capacity(best.len());
    for Reverse((score, Reverse(ord), document)) in best {
        let mut id = String::new();
        if let (true, Some(number)) = (ids.ord_to_str(ord, &mut id)?, number(document)) {
            browsed.push(Browsed {
                number,
                id,
                trust: f64::from_bits(score),
            });
        }
    }
    Ok(browsed)
}

/// The place of the first id after this one.
fn first_after(ids: &StrColumn, id: &str) -> tantivy::Result<u64> {
    let ids = ids.dictionary();
    // The least text after an id is the id and a NUL.
    let next = format!("{id}\0");
    Ok(match ids.term_ord_or_next(next)? {
        tantivy::columnar::TermOrdHit::Exact(ord) | tantivy::columnar::TermOrdHit::Next(ord) => ord,
    })
}
