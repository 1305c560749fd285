//! Ids and trust of listings that are known by number.

use std::collections::HashMap;

use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, Searcher, SegmentReader, TERMINATED, Term};

use crate::trust::TrustScores;

use super::filter::Trusted;
use super::schema::{Fields, column};

/// What a list needs to know of a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// The hub's id of the listing.
    pub id: String,
    /// The trust in its agent, 0 to 1.
    pub trust: f64,
}

/// Ids and trust of the listings of these numbers, without those that are not in the index.
pub(super) fn named(
    searcher: &Searcher,
    fields: &Fields,
    numbers: &[u64],
    trust: &dyn TrustScores,
) -> tantivy::Result<HashMap<u64, Named>> {
    let mut named = HashMap::with_capacity(numbers.len());
    for segment in searcher.segment_readers() {
        if named.len() == numbers.len() {
            break;
        }
        of_segment(segment, fields, numbers, trust, &mut named)?;
    }
    Ok(named)
}

fn of_segment(
    segment: &SegmentReader,
    fields: &Fields,
    numbers: &[u64],
    trust: &dyn TrustScores,
    named: &mut HashMap<u64, Named>,
) -> tantivy::Result<()> {
    let columns = segment.fast_fields();
    let (Some(ids), Some(agents)) = (columns.str(column::ID)?, columns.str(column::AGENT)?) else {
        return Ok(());
    };
    let mut trusted = Trusted::new(&agents, trust);
    for number in numbers {
        if named.contains_key(number) {
            continue;
        }
        let Some(document) = document(segment, fields, *number)? else {
            continue;
        };
        let Some(ord) = ids.ords().first(document) else {
            continue;
        };
        let mut id = String::new();
        if ids.ord_to_str(ord, &mut id)? {
            let trust = trusted.score(document);
            named.insert(*number, Named { id, trust });
        }
    }
    Ok(())
}

fn document(segment: &SegmentReader, fields: &Fields, number: u64) -> tantivy::Result<Option<DocId>> {
    let index = segment.inverted_index(fields.number)?;
    let term = Term::from_field_u64(fields.number, number);
    let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic)? else {
        return Ok(None);
    };
    while postings.doc() != TERMINATED {
        if !segment.is_deleted(postings.doc()) {
            return Ok(Some(postings.doc()));
        }
        postings.advance();
    }
    Ok(None)
}
