//! Ids and trust of listings that are known by number.

use std::collections::HashMap;

use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, InvertedIndexReader, Searcher, SegmentReader, TERMINATED, Term};

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
    let mut missing = numbers.to_vec();
    for segment in searcher.segment_readers() {
        if missing.is_empty() {
            break;
        }
        of_segment(segment, fields, &missing, trust, &mut named)?;
        missing.retain(|number| !named.contains_key(number));
    }
    Ok(named)
}

/// A document that was found.
#[derive(Debug, Clone, Copy)]
struct Found {
    number: u64,
    document: DocId,
    /// The place of its id among all of the segment.
    id: u64,
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
    let mut found = Vec::new();
    for (number, document) in documents(segment, fields, numbers)? {
        found.extend(
            ids.ords()
                .first(document)
                .map(|id| Found { number, document, id }),
        );
    }
    // In their order, the dictionary is read once from front to back.
    found.sort_unstable_by_key(|found| found.id);
    let ords: Vec<u64> = found.iter().map(|found| found.id).collect();
    let mut names = Vec::with_capacity(ords.len());
    ids.dictionary()
        .sorted_ords_to_term_cb(&ords, |id| names.push(String::from_utf8_lossy(id).into_owned()))?;
    let mut trusted = Trusted::new(&agents, trust);
    trusted.learn(found.iter().map(|found| found.document))?;
    for (found, id) in found.iter().zip(names) {
        let trust = trusted.score(found.document);
        named.insert(found.number, Named { id, trust });
    }
    Ok(())
}

/// Where in the segment the listings of these numbers are. Those that cannot be in it, since its numbers are higher or lower,
/// are not looked for: a new listing has a new number, so segments hold few of each other's.
fn documents(
    segment: &SegmentReader,
    fields: &Fields,
    numbers: &[u64],
) -> tantivy::Result<Vec<(u64, DocId)>> {
    let Some(column) = segment.fast_fields().column_opt::<u64>(column::NUMBER)? else {
        return Ok(Vec::new());
    };
    let held = column.min_value()..=column.max_value();
    let index = segment.inverted_index(fields.number)?;
    let mut documents = Vec::new();
    for number in numbers.iter().filter(|number| held.contains(*number)) {
        let term = Term::from_field_u64(fields.number, *number);
        documents.extend(document(segment, &index, &term)?.map(|document| (*number, document)));
    }
    Ok(documents)
}

fn document(
    segment: &SegmentReader,
    index: &InvertedIndexReader,
    term: &Term,
) -> tantivy::Result<Option<DocId>> {
    let Some(mut postings) = index.read_postings(term, IndexRecordOption::Basic)? else {
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
