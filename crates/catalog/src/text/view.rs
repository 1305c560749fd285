//! A snapshot of the index, and what it answers.

use std::collections::HashMap;
use std::sync::Arc;

use aip_protocol::time::Timestamp;
use tantivy::schema::{Field, IndexRecordOption, Value};
use tantivy::{DocAddress, DocSet, Searcher, TERMINATED, TantivyDocument, Term};

use crate::entry::Entry;
use crate::error::CatalogError;
use crate::numbers::NumberSet;
use crate::query::Filter;
use crate::trust::TrustScores;

use super::analysis::{self, Asked, Language};
use super::bits::Bits;
use super::browse::{self, Browsed};
use super::document::read_stored;
use super::explain::{self, Matched};
use super::facets::{self, Facets};
use super::filter::Admission;
use super::named::{self, Named};
use super::plan::{self, Plan};
use super::scan::{self, Candidate};
use super::schema::{Fields, column};

/// A listing that says what is looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct TextHit {
    /// The store's number of the listing.
    pub number: u64,
    /// The hub's id of the listing.
    pub id: String,
    /// Higher is better; only to be compared within one search.
    pub score: f64,
    /// The share of the query that is in it, each word weighed by how rare it is; 0 to 1.
    pub coverage: f64,
    /// It holds a code of the query, or what stood in quotes, or is named just as the query.
    pub exact: bool,
}

/// What a search found, and what it tells of the query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextHits {
    /// Best first; equal ones by id.
    pub hits: Vec<TextHit>,
    /// The best coverage of the first three hits.
    pub coverage: f64,
    /// The share of the query that is codes, weighed as the coverage is.
    pub code_share: f64,
    /// How much the best hit says: its score, counted in words that only one listing says.
    pub evidence: f64,
}

/// The index as it was when the view was taken.
#[derive(Clone)]
pub struct TextView {
    searcher: Searcher,
    fields: Arc<Fields>,
}

impl std::fmt::Debug for TextView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextView")
            .field("listings", &self.len())
            .finish_non_exhaustive()
    }
}

impl TextView {
    pub(super) fn new(searcher: Searcher, fields: Arc<Fields>) -> Self {
        Self { searcher, fields }
    }

    /// Listings in it, expired ones too.
    pub fn len(&self) -> u64 {
        self.searcher.num_docs()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The listings that say what the text says and pass the filter, at most `depth`, best first. No text is an error.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn search(
        &self,
        text: &str,
        filter: &Filter,
        trust: &dyn TrustScores,
        now: Timestamp,
        depth: usize,
    ) -> Result<TextHits, CatalogError> {
        let asked = self.asked(text)?;
        let plan = plan::plan(&self.searcher, &self.fields, &asked)?;
        if plan.lists.is_empty() {
            return Ok(TextHits::default());
        }
        let passing = self.passing_by_segment(filter, trust, now)?;
        let best = scan::best(&self.searcher, &plan.lists, &passing, depth)?;
        let hits = self.hits(&plan, best)?;
        let coverage = hits.iter().take(3).map(|hit| hit.coverage).fold(0.0, f64::max);
        let code_share = plan.code_share(&asked);
        let evidence = hits.first().map_or(0.0, |hit| hit.score / plan.rarest);
        Ok(TextHits {
            hits,
            coverage,
            code_share,
            evidence,
        })
    }

    /// The numbers of the listings that pass the filter; none where all do.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn admitted(
        &self,
        filter: &Filter,
        trust: &dyn TrustScores,
        now: Timestamp,
    ) -> Result<Option<NumberSet>, CatalogError> {
        let passing = self.passing_by_segment(filter, trust, now)?;
        if passing.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut set = NumberSet::new();
        for (segment, bits) in self.searcher.segment_readers().iter().zip(passing) {
            let Some(numbers) = segment.fast_fields().column_opt::<u64>(column::NUMBER)? else {
                continue;
            };
            let bits = bits.unwrap_or_else(|| Bits::all(segment.max_doc()));
            let alive = bits.iter().filter(|document| !segment.is_deleted(*document));
            set.extend(alive.filter_map(|document| numbers.first(document)));
        }
        Ok(Some(set))
    }

    /// The listings that pass the filter by the trust in their agents, highest first, then by id: those after `after`, at most
    /// `limit`.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn browse(
        &self,
        filter: &Filter,
        trust: &dyn TrustScores,
        now: Timestamp,
        after: Option<(f64, &str)>,
        limit: usize,
    ) -> Result<Vec<Browsed>, CatalogError> {
        let admitted = self.admitted_by_segment(filter, trust, now)?;
        Ok(browse::browse(&self.searcher, &admitted, trust, after, limit)?)
    }

    /// How many of the listings that pass the filter are of which kind, category, brand, currency, language and domain.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn facets(
        &self,
        filter: &Filter,
        trust: &dyn TrustScores,
        now: Timestamp,
    ) -> Result<Facets, CatalogError> {
        let admitted = self.admitted_by_segment(filter, trust, now)?;
        Ok(facets::facets(&self.searcher, &admitted)?)
    }

    /// The listing of a number, expired or not; none where it is not in the index.
    pub fn entry(&self, number: u64) -> Option<Entry> {
        let address = self.address(&Term::from_field_u64(self.fields.number, number))?;
        let document: TantivyDocument = self.searcher.doc(address).ok()?;
        read_stored(document.get_first(self.fields.entry)?.as_str()?)
    }

    /// Whether the listing of this number is in the index, expired or not.
    pub fn holds(&self, number: u64) -> bool {
        self.address(&Term::from_field_u64(self.fields.number, number))
            .is_some()
    }

    /// Ids and trust of the listings of these numbers, expired or not, without those that are not in the index.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn named(
        &self,
        numbers: &[u64],
        trust: &dyn TrustScores,
    ) -> Result<HashMap<u64, Named>, CatalogError> {
        Ok(named::named(&self.searcher, &self.fields, numbers, trust)?)
    }

    /// The number of the listing of this id, expired or not.
    pub fn number_of(&self, id: &str) -> Option<u64> {
        let address = self.address(&Term::from_field_text(self.fields.id, id))?;
        let segment = self.searcher.segment_reader(address.segment_ord);
        segment
            .fast_fields()
            .column_opt::<u64>(column::NUMBER)
            .ok()??
            .first(address.doc_id)
    }

    /// Which words of the text the listing says, and where. None where it is not in the index.
    pub fn explain(&self, number: u64, text: &str) -> Option<Vec<Matched>> {
        let entry = self.entry(number)?;
        Some(explain::matched(&entry, &self.asked(text).ok()?))
    }

    /// The language that a listing's text is taken to be in: as it says, else as it reads; none where that is uncertain.
    pub fn language_of(entry: &Entry) -> Option<String> {
        super::document::language(entry)
    }

    fn asked(&self, text: &str) -> Result<Asked, CatalogError> {
        Ok(analysis::asked(text, &self.languages()?))
    }

    /// The languages that listings are in, the most frequent first; English always, since texts of no certain language are
    /// read as English.
    fn languages(&self) -> Result<Vec<Language>, CatalogError> {
        let mut counts = Vec::new();
        for language in Language::ALL {
            let count = self
                .searcher
                .doc_freq(&Term::from_field_text(self.fields.lang, language.code()))?;
            if count > 0 || language == Language::English {
                counts.push((count, language));
            }
        }
        counts.sort_by_key(|(count, language)| (std::cmp::Reverse(*count), *language));
        Ok(counts.into_iter().map(|(_, language)| language).collect())
    }

    fn admitted_by_segment(
        &self,
        filter: &Filter,
        trust: &dyn TrustScores,
        now: Timestamp,
    ) -> Result<Vec<Option<Bits>>, CatalogError> {
        let admission = Admission::new(&self.fields, filter, trust, now);
        let segments = self.searcher.segment_readers().iter();
        Ok(segments
            .map(|segment| admission.of_segment(segment))
            .collect::<tantivy::Result<_>>()?)
    }

    fn passing_by_segment(
        &self,
        filter: &Filter,
        trust: &dyn TrustScores,
        now: Timestamp,
    ) -> Result<Vec<Option<Bits>>, CatalogError> {
        let admission = Admission::new(&self.fields, filter, trust, now);
        let segments = self.searcher.segment_readers().iter();
        Ok(segments
            .map(|segment| admission.passing(segment))
            .collect::<tantivy::Result<_>>()?)
    }

    fn hits(&self, plan: &Plan, best: Vec<Candidate>) -> Result<Vec<TextHit>, CatalogError> {
        let masks = scan::matches(&self.searcher, &plan.lists, &best)?;
        let mut numbers = Vec::new();
        for segment in self.searcher.segment_readers() {
            numbers.push(segment.fast_fields().column_opt::<u64>(column::NUMBER)?);
        }
        let hits = best.into_iter().zip(masks).filter_map(|(candidate, mask)| {
            let column = numbers.get(candidate.segment as usize)?.as_ref()?;
            Some(TextHit {
                number: column.first(candidate.document)?,
                score: candidate.score(),
                coverage: plan.coverage(mask),
                exact: plan.is_exact(mask),
                id: candidate.id,
            })
        });
        Ok(hits.collect())
    }

    /// Where the one document is that holds the term and is not deleted.
    fn address(&self, term: &Term) -> Option<DocAddress> {
        let field: Field = term.field();
        for (place, segment) in (0_u32..).zip(self.searcher.segment_readers()) {
            let index = segment.inverted_index(field).ok()?;
            let Some(mut postings) = index.read_postings(term, IndexRecordOption::Basic).ok()? else {
                continue;
            };
            while postings.doc() != TERMINATED {
                if !segment.is_deleted(postings.doc()) {
                    return Some(DocAddress::new(place, postings.doc()));
                }
                postings.advance();
            }
        }
        None
    }
}
