//! Which documents of a segment pass a filter.

use std::collections::HashMap;

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use tantivy::columnar::StrColumn;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, SegmentReader, TERMINATED, Term};

use crate::price::Price;
use crate::query::Filter;
use crate::trust::TrustScores;

use super::analysis;
use super::bits::Bits;
use super::document::{attribute, availability};
use super::schema::{Fields, column};

/// A filter, ready to be asked of segments.
pub(super) struct Admission<'a> {
    /// Of each of these, one term must be in the document.
    terms: Vec<Vec<Term>>,
    price: Option<(u64, u64)>,
    updated_after: Option<i64>,
    trust: Option<(f64, &'a dyn TrustScores)>,
    now: i64,
}

impl<'a> Admission<'a> {
    pub(super) fn new(fields: &Fields, filter: &Filter, trust: &'a dyn TrustScores, now: Timestamp) -> Self {
        let has_price = filter.price_min.is_some() || filter.price_max.is_some();
        let (least, most) = (
            filter.price_min.map_or(0, Price::units),
            filter.price_max.map_or(u64::MAX, Price::units),
        );
        let updated_after = filter.updated_after.map(|moment| {
            let millis = moment.unix_millis();
            // The column is in whole milliseconds, rounded down.
            millis + i64::from(Timestamp::from_unix_millis(millis) < moment)
        });
        Self {
            terms: terms(fields, filter),
            price: has_price.then_some((least, most)),
            updated_after,
            trust: filter
                .trust_min
                .filter(|least| *least > 0.0)
                .map(|least| (least, trust)),
            now: now.unix_millis(),
        }
    }

    /// The documents that pass and are not deleted; none where all do.
    pub(super) fn of_segment(&self, segment: &SegmentReader) -> tantivy::Result<Option<Bits>> {
        let passing = self.passing(segment)?;
        if !segment.has_deletes() {
            return Ok(passing);
        }
        let mut bits = passing.unwrap_or_else(|| Bits::all(segment.max_doc()));
        bits.retain(|document| !segment.is_deleted(document));
        Ok(Some(bits))
    }

    /// The documents that pass, deleted ones among them; none where all do. Whoever looks at few documents asks for each of
    /// them whether it is deleted: that costs less than to ask for all.
    pub(super) fn passing(&self, segment: &SegmentReader) -> tantivy::Result<Option<Bits>> {
        let by_terms = self.by_terms(segment)?;
        let expires_at = segment.fast_fields().column_opt::<i64>(column::EXPIRES_AT)?;
        let expires_at = expires_at.filter(|moments| moments.min_value() < self.now);
        let has_ranges = self.price.is_some()
            || self.updated_after.is_some()
            || self.trust.is_some()
            || expires_at.is_some();
        if !has_ranges {
            return Ok(by_terms);
        }
        let mut bits = by_terms.unwrap_or_else(|| Bits::all(segment.max_doc()));
        if let Some(expires_at) = expires_at {
            bits.retain(|document| expires_at.first(document).is_none_or(|moment| moment >= self.now));
        }
        self.by_ranges(segment, &mut bits)?;
        Ok(Some(bits))
    }

    fn by_terms(&self, segment: &SegmentReader) -> tantivy::Result<Option<Bits>> {
        let mut bits: Option<Bits> = None;
        for terms in &self.terms {
            let mut found = Bits::none(segment.max_doc());
            for term in terms {
                let postings = segment
                    .inverted_index(term.field())?
                    .read_postings(term, IndexRecordOption::Basic)?;
                let Some(mut postings) = postings else { continue };
                while postings.doc() != TERMINATED {
                    found.insert(postings.doc());
                    postings.advance();
                }
            }
            match &mut bits {
                Some(bits) => bits.intersect(&found),
                None => bits = Some(found),
            }
        }
        Ok(bits)
    }

    fn by_ranges(&self, segment: &SegmentReader, bits: &mut Bits) -> tantivy::Result<()> {
        if let Some((least, most)) = self.price {
            let prices = segment.fast_fields().column_opt::<u64>(column::PRICE)?;
            let price = |document| prices.as_ref().and_then(|prices| prices.first(document));
            bits.retain(|document| price(document).is_some_and(|price| (least..=most).contains(&price)));
        }
        if let Some(moment) = self.updated_after {
            let column = segment.fast_fields().column_opt::<i64>(column::UPDATED_AT)?;
            let updated_at = |document| column.as_ref().and_then(|column| column.first(document));
            bits.retain(|document| updated_at(document).is_some_and(|updated| updated >= moment));
        }
        if let (Some((least, trust)), Some(agents)) = (self.trust, segment.fast_fields().str(column::AGENT)?)
        {
            let mut trusted = Trusted::new(&agents, trust);
            bits.retain(|document| trusted.score(document) >= least);
        }
        Ok(())
    }
}

/// The trust in the agents of one segment; each is asked for once.
pub(super) struct Trusted<'a> {
    agents: &'a StrColumn,
    trust: &'a dyn TrustScores,
    known: HashMap<u64, f64>,
    name: String,
}

impl<'a> Trusted<'a> {
    pub(super) fn new(agents: &'a StrColumn, trust: &'a dyn TrustScores) -> Self {
        Self {
            agents,
            trust,
            known: HashMap::new(),
            name: String::new(),
        }
    }

    /// Asks for the trust in the agents of these documents, so that their names are read in one go.
    pub(super) fn learn(&mut self, documents: impl Iterator<Item = u32>) -> tantivy::Result<()> {
        let mut ords: Vec<u64> = documents
            .filter_map(|document| self.agents.ords().first(document))
            .collect();
        ords.sort_unstable();
        ords.dedup();
        let mut scores = Vec::with_capacity(ords.len());
        self.agents
            .dictionary()
            .sorted_ords_to_term_cb(&ords, |name| scores.push(score(name, self.trust)))?;
        self.known.extend(ords.into_iter().zip(scores));
        Ok(())
    }

    /// The trust in the agent of a document, 0 to 1.
    pub(super) fn score(&mut self, document: u32) -> f64 {
        let Some(ord) = self.agents.ords().first(document) else {
            return 0.0;
        };
        if let Some(score) = self.known.get(&ord) {
            return *score;
        }
        self.name.clear();
        let is_found = self.agents.ord_to_str(ord, &mut self.name).unwrap_or(false);
        let score = if is_found {
            score(self.name.as_bytes(), self.trust)
        } else {
            0.0
        };
        self.known.insert(ord, score);
        score
    }
}

/// The trust in the agent of this name; 0 where it is none.
fn score(name: &[u8], trust: &dyn TrustScores) -> f64 {
    let did = std::str::from_utf8(name)
        .ok()
        .and_then(|name| Did::parse(name).ok());
    did.map_or(0.0, |did| bounded(trust.score(&did)))
}

/// A score within 0 and 1; NaN is 0.
fn bounded(score: f64) -> f64 {
    if score.is_nan() {
        0.0
    } else {
        score.clamp(0.0, 1.0)
    }
}

fn terms(fields: &Fields, filter: &Filter) -> Vec<Vec<Term>> {
    let term = |field: Field, text: &str| Term::from_field_text(field, text);
    let mut terms: Vec<Vec<Term>> = Vec::new();
    if !filter.kinds.is_empty() {
        terms.push(
            filter
                .kinds
                .iter()
                .map(|kind| term(fields.kind, kind.as_str()))
                .collect(),
        );
    }
    let labels = [
        (fields.category, filter.category.as_deref().map(analysis::label)),
        (fields.brand, filter.brand.as_deref().map(analysis::label)),
        (fields.currency, filter.currency.clone()),
        (
            fields.available,
            filter.available.map(|is| availability(is).to_owned()),
        ),
        (
            fields.domain,
            filter.domain.as_ref().map(|domain| domain.as_str().to_owned()),
        ),
        (fields.lang, filter.lang.as_deref().map(analysis::primary)),
    ];
    terms.extend(
        labels
            .into_iter()
            .filter_map(|(field, label)| Some(vec![term(field, &label?)])),
    );
    terms.extend(
        filter
            .attributes
            .iter()
            .map(|(key, value)| vec![term(fields.attributes, &attribute(key, value))]),
    );
    terms
}
