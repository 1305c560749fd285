//! From what is asked to the lists of documents that are walked: which terms, how much each weighs, what it covers.

use std::sync::Arc;

use tantivy::postings::TermInfo;
use tantivy::query::{EnableScoring, PhraseQuery, Query as _};
use tantivy::schema::Field;
use tantivy::{DocId, DocSet, Searcher, TERMINATED, Term};

use crate::limits::{QUERY_TERMS_MAX, TEXT_CODES_MAX, TEXT_COMMON_HITS};

use super::analysis::{Asked, Code, Unit};
use super::expand::{self, Expansion};
use super::schema::Fields;

/// Saturation of repeated words, and how much length counts (BM25).
pub(super) const K1: f64 = 1.2;
const B: f64 = 0.75;

/// What lists weigh against words. Codes and grams as measured on product and tool names: what a code is made of counts as
/// words and grams already. A word that was only guessed weighs less than any that was said.
mod weight {
    pub(super) const WORD: f64 = 1.0;
    pub(super) const CODE: f64 = 0.5;
    pub(super) const GRAM: f64 = 0.5;
    pub(super) const WHOLE: f64 = 1.5;
    pub(super) const NEAR_CODE: f64 = 1.0;
    pub(super) const NAME: f64 = 1.0;
    pub(super) const PHRASE: f64 = 1.0;
    pub(super) const TYPO: f64 = 0.4;
    pub(super) const PREFIX: f64 = 0.3;
    pub(super) const HUMP: f64 = 0.6;
}

/// Why a list is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    Phrase,
    Name,
    Whole,
    Code,
    Word,
    Guess,
    Gram,
}

/// Where the documents of a list are.
#[derive(Debug, Clone)]
pub(super) enum Documents {
    /// Those that hold a term: where its postings are, for each segment.
    Term {
        field: Field,
        infos: Vec<Option<TermInfo>>,
    },
    /// These, for each segment.
    Found(Vec<Vec<DocId>>),
}

/// Documents that a query finds for one reason.
#[derive(Debug, Clone)]
pub(super) struct List {
    pub(super) reason: Reason,
    pub(super) documents: Documents,
    /// What a document gets that says it over and over.
    pub(super) weight: f64,
    /// The shares of length norms, where length counts.
    pub(super) norms: Option<Arc<Norms>>,
    /// The units of the query that it covers.
    pub(super) units: Vec<usize>,
    /// How far it covers them.
    pub(super) share: f64,
    /// The listing says just this code.
    pub(super) is_exact: bool,
}

/// The part of BM25 that depends on the length of a field, by its code.
pub(super) type Norms = [f64; 256];

/// What to walk.
#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    pub(super) lists: Vec<List>,
    /// The weight of each unit of the query in its coverage.
    pub(super) masses: Vec<f64>,
    /// The weight of a word that only one listing says.
    pub(super) rarest: f64,
}

/// Makes the plan.
pub(super) fn plan(searcher: &Searcher, fields: &Fields, asked: &Asked) -> tantivy::Result<Plan> {
    let documents: u64 = searcher
        .segment_readers()
        .iter()
        .map(|segment| u64::from(segment.max_doc()))
        .sum();
    if documents == 0 {
        return Ok(Plan::default());
    }
    let mut planner = Planner {
        searcher,
        fields,
        documents,
        plan: Plan::default(),
        words: norms(searcher, fields.words, documents)?,
        guesses: 0,
    };
    planner.plan.rarest = planner.idf(1);
    let last = asked.units.len().saturating_sub(1);
    for (place, unit) in asked.units.iter().enumerate() {
        planner.add_unit(place, unit, place == last)?;
    }
    planner.add_codes(asked)?;
    planner.add_grams(asked)?;
    planner.add_exact(asked)?;
    let mut plan = planner.plan;
    plan.lists.sort_by_key(|list| list.reason);
    plan.lists.truncate(QUERY_TERMS_MAX);
    Ok(plan)
}

struct Planner<'a> {
    searcher: &'a Searcher,
    fields: &'a Fields,
    documents: u64,
    plan: Plan,
    words: Arc<Norms>,
    guesses: usize,
}

impl Planner<'_> {
    fn add_unit(&mut self, place: usize, unit: &Unit, is_last: bool) -> tantivy::Result<()> {
        let field = if unit.is_unspaced && unit.form.chars().count() == 1 {
            self.fields.forms
        } else {
            self.fields.words
        };
        let mut found = Vec::new();
        let mut frequency = 0;
        for stem in &unit.stems {
            let (infos, documents) = self.look_up(field, stem)?;
            frequency += documents;
            if documents > 0 {
                found.push(infos);
            }
        }
        let mass = self.idf(frequency);
        self.plan.masses.push(mass);
        for infos in found {
            self.push(Reason::Word, field, infos, mass * weight::WORD, vec![place], 1.0);
        }
        if frequency == 0 && !unit.humps.is_empty() {
            self.add_humps(place, unit)?;
        }
        let is_few = frequency == 0 || (is_last && frequency < TEXT_COMMON_HITS);
        if is_few && !unit.has_digit && !unit.is_unspaced {
            self.add_guesses(place, unit, frequency)?;
        }
        Ok(())
    }

    fn add_humps(&mut self, place: usize, unit: &Unit) -> tantivy::Result<()> {
        let share = 1.0 / f64::from(u32::try_from(unit.humps.len()).unwrap_or(u32::MAX));
        for hump in &unit.humps {
            let (infos, documents) = self.look_up(self.fields.words, hump)?;
            if documents > 0 {
                let weight = self.idf(documents) * weight::HUMP;
                self.push(
                    Reason::Guess,
                    self.fields.words,
                    infos,
                    weight,
                    vec![place],
                    share,
                );
            }
        }
        Ok(())
    }

    /// Adds words that may have been meant: those it begins, and those that differ by a slip where it is unknown.
    fn add_guesses(&mut self, place: usize, unit: &Unit, frequency: u64) -> tantivy::Result<()> {
        if self.guesses >= expand::UNITS_MAX {
            return Ok(());
        }
        self.guesses += 1;
        if frequency == 0 {
            let begun = expand::begun_codes(self.searcher, self.fields.codes, &unit.form)?;
            self.push_codes(begun, &[place]);
        }
        let guesses = expand::guesses(self.searcher, self.fields.forms, &unit.form, frequency == 0)?;
        let together: u64 = guesses.iter().map(|guess| guess.documents).sum();
        // As rare as all of them together: a rare slip of a frequent word must not weigh more than the word.
        let idf = self.idf(together.max(frequency).min(self.documents));
        for Expansion {
            infos,
            is_prefix,
            share,
            ..
        } in guesses
        {
            let weight = if is_prefix { weight::PREFIX } else { weight::TYPO };
            self.push(
                Reason::Guess,
                self.fields.forms,
                infos,
                idf * weight * share,
                vec![place],
                weight * share,
            );
        }
        Ok(())
    }

    fn add_codes(&mut self, asked: &Asked) -> tantivy::Result<()> {
        let norms = norms(self.searcher, self.fields.codes, self.documents)?;
        let mut added = 0;
        for code in &asked.codes {
            let (infos, documents) = self.look_up(self.fields.codes, &code.form)?;
            if documents == 0 || added >= TEXT_CODES_MAX {
                continue;
            }
            added += 1;
            let is_whole = asked.whole.as_deref() == Some(code.form.as_str());
            let weight = self.idf(documents) * if is_whole { weight::WHOLE } else { weight::CODE };
            let list = List {
                reason: if is_whole { Reason::Whole } else { Reason::Code },
                documents: Documents::Term {
                    field: self.fields.codes,
                    infos,
                },
                weight: weight * (K1 + 1.0),
                norms: Some(Arc::clone(&norms)),
                units: code.units.clone(),
                share: 1.0,
                is_exact: is_whole || is_long(code),
            };
            self.plan.lists.push(list);
        }
        self.add_near_codes(asked)
    }

    /// Adds codes that begin with one that was written as such and that no listing says, or differ from it by a slip.
    fn add_near_codes(&mut self, asked: &Asked) -> tantivy::Result<()> {
        let is_code = |list: &&List| matches!(list.reason, Reason::Whole | Reason::Code);
        let codes = self.plan.lists.iter().filter(is_code);
        let known: Vec<Vec<usize>> = codes.map(|list| list.units.clone()).collect();
        let is_known = |code: &Code| {
            let is_part = |units: &Vec<usize>| code.units.iter().all(|unit| units.contains(unit));
            known.iter().any(is_part)
        };
        let is_asked = |code: &&Code| code.is_written || asked.whole.as_deref() == Some(code.form.as_str());
        let unknown = asked.codes.iter().filter(is_asked).filter(|code| !is_known(code));
        for code in unknown.take(expand::CODES_MAX) {
            let near = expand::near_codes(self.searcher, self.fields.codes, &code.form)?;
            self.push_codes(near, &code.units);
        }
        Ok(())
    }

    /// Adds codes that may have been meant by these words.
    fn push_codes(&mut self, guesses: Vec<Expansion>, units: &[usize]) {
        let together: u64 = guesses.iter().map(|guess| guess.documents).sum();
        let idf = self.idf(together);
        for Expansion { infos, share, .. } in guesses {
            let weight = idf * weight::NEAR_CODE * share;
            self.push(
                Reason::Guess,
                self.fields.codes,
                infos,
                weight,
                units.to_vec(),
                share,
            );
        }
    }

    fn add_grams(&mut self, asked: &Asked) -> tantivy::Result<()> {
        let norms = norms(self.searcher, self.fields.grams, self.documents)?;
        let count = f64::from(u32::try_from(asked.grams.len()).unwrap_or(u32::MAX)).max(1.0);
        for gram in &asked.grams {
            let (infos, documents) = self.look_up(self.fields.grams, &gram.form)?;
            if documents > 0 {
                let list = List {
                    reason: Reason::Gram,
                    documents: Documents::Term {
                        field: self.fields.grams,
                        infos,
                    },
                    weight: self.idf(documents) * weight::GRAM * (K1 + 1.0),
                    norms: Some(Arc::clone(&norms)),
                    units: gram.units.clone(),
                    share: 1.0 / count,
                    is_exact: false,
                };
                self.plan.lists.push(list);
            }
        }
        Ok(())
    }

    /// Adds what is more than its words: a name that is the whole query, and what stood in quotes.
    fn add_exact(&mut self, asked: &Asked) -> tantivy::Result<()> {
        let (infos, documents) = self.look_up(self.fields.name, &asked.name)?;
        if documents > 0 && !asked.name.is_empty() {
            let weight = self.plan.masses.iter().sum::<f64>() * weight::NAME * (K1 + 1.0);
            let units = (0..asked.units.len()).collect();
            let documents = Documents::Term {
                field: self.fields.name,
                infos,
            };
            self.plan
                .lists
                .push(constant(Reason::Name, documents, weight, units));
        }
        for phrase in &asked.phrases {
            let terms: Vec<Term> = phrase
                .iter()
                .map(|form| Term::from_field_text(self.fields.forms, form))
                .collect();
            let found = self.holding(terms)?;
            let is_part = |unit: &Unit| phrase.contains(&unit.form);
            let units: Vec<usize> = (0..)
                .zip(&asked.units)
                .filter(|(_, unit)| is_part(unit))
                .map(|(place, _)| place)
                .collect();
            let mass: f64 = units
                .iter()
                .filter_map(|place| self.plan.masses.get(*place))
                .sum();
            let weight = mass.max(1.0) * weight::PHRASE * (K1 + 1.0);
            self.plan
                .lists
                .push(constant(Reason::Phrase, Documents::Found(found), weight, units));
        }
        Ok(())
    }

    /// The documents of each segment that hold the terms one after the other.
    fn holding(&self, terms: Vec<Term>) -> tantivy::Result<Vec<Vec<DocId>>> {
        let weight = PhraseQuery::new(terms).weight(EnableScoring::disabled_from_searcher(self.searcher))?;
        let mut found = Vec::new();
        for segment in self.searcher.segment_readers() {
            let mut scorer = weight.scorer(segment, 1.0)?;
            let mut documents = Vec::new();
            while scorer.doc() != TERMINATED {
                documents.push(scorer.doc());
                scorer.advance();
            }
            found.push(documents);
        }
        Ok(found)
    }

    fn push(
        &mut self,
        reason: Reason,
        field: Field,
        infos: Vec<Option<TermInfo>>,
        weight: f64,
        units: Vec<usize>,
        share: f64,
    ) {
        let norms = (field == self.fields.words).then(|| Arc::clone(&self.words));
        // Without lengths it counts as said once in a text of average length, where BM25 gives its weight once.
        let weight = if norms.is_some() {
            weight * (K1 + 1.0)
        } else {
            weight
        };
        self.plan.lists.push(List {
            reason,
            documents: Documents::Term { field, infos },
            weight,
            norms,
            units,
            share,
            is_exact: false,
        });
    }

    fn look_up(&self, field: Field, term: &str) -> tantivy::Result<(Vec<Option<TermInfo>>, u64)> {
        let term = Term::from_field_text(field, term);
        let mut infos = Vec::new();
        for segment in self.searcher.segment_readers() {
            infos.push(segment.inverted_index(field)?.get_term_info(&term)?);
        }
        let documents = infos.iter().flatten().map(|info| u64::from(info.doc_freq)).sum();
        Ok((infos, documents))
    }

    fn idf(&self, documents: u64) -> f64 {
        let (all, holding) = (float(self.documents), float(documents.min(self.documents)));
        (1.0 + (all - holding + 0.5) / (holding + 0.5)).ln()
    }
}

fn constant(reason: Reason, documents: Documents, weight: f64, units: Vec<usize>) -> List {
    List {
        reason,
        documents,
        weight,
        norms: None,
        units,
        share: 1.0,
        is_exact: true,
    }
}

/// Long enough that nobody says it by chance.
fn is_long(code: &Code) -> bool {
    const LETTERS_MIN: usize = 6;
    code.form.chars().count() >= LETTERS_MIN
        && code.form.chars().filter(|letter| letter.is_numeric()).count() >= 2
}

/// The length norms of a field.
fn norms(searcher: &Searcher, field: Field, documents: u64) -> tantivy::Result<Arc<Norms>> {
    let mut tokens = 0;
    for segment in searcher.segment_readers() {
        tokens += segment.inverted_index(field)?.total_num_tokens();
    }
    let average = (float(tokens) / float(documents.max(1))).max(1.0);
    let mut norms = [0.0; 256];
    for (code, norm) in (0..=u8::MAX).zip(&mut norms) {
        let length = f64::from(tantivy::fieldnorm::FieldNormReader::id_to_fieldnorm(code));
        *norm = K1 * (1.0 - B + B * length / average);
    }
    Ok(Arc::new(norms))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of documents and tokens are far below 2^53"
)]
const fn float(count: u64) -> f64 {
    count as f64
}

impl Plan {
    /// The share of the query that lists cover, each unit weighed by how rare it is. `matched` has one bit for each list.
    pub(super) fn coverage(&self, matched: u128) -> f64 {
        let mut covered = vec![0.0_f64; self.masses.len()];
        let mut grams = vec![0.0_f64; self.masses.len()];
        for list in self.matched(matched) {
            for unit in &list.units {
                if let (Some(covered), Some(grams)) = (covered.get_mut(*unit), grams.get_mut(*unit)) {
                    match list.reason {
                        Reason::Gram => *grams += list.share,
                        _ => *covered = covered.max(list.share),
                    }
                }
            }
        }
        let total: f64 = self.masses.iter().sum();
        let parts = self.masses.iter().zip(covered.iter().zip(&grams));
        let found: f64 = parts
            .map(|(mass, (covered, grams))| mass * covered.max(*grams).min(1.0))
            .sum();
        if total > 0.0 { found / total } else { 0.0 }
    }

    /// The share of the query that is words which are codes by themselves, weighed as in the coverage.
    pub(super) fn code_share(&self, asked: &Asked) -> f64 {
        let mut masses = self.masses.clone();
        for unit in asked
            .codes
            .iter()
            .filter(|code| code.units.len() == 1)
            .flat_map(|code| &code.units)
        {
            if let Some(mass) = masses.get_mut(*unit) {
                *mass = 0.0;
            }
        }
        let (total, rest): (f64, f64) = (self.masses.iter().sum(), masses.iter().sum());
        if total > 0.0 { 1.0 - rest / total } else { 0.0 }
    }

    /// Whether a list of those matched holds only what says exactly what was asked.
    pub(super) fn is_exact(&self, matched: u128) -> bool {
        self.matched(matched).any(|list| list.is_exact)
    }

    fn matched(&self, matched: u128) -> impl Iterator<Item = &List> {
        let lists = self.lists.iter().enumerate();
        lists
            .filter(move |(place, _)| {
                matched
                    .checked_shr(u32::try_from(*place).unwrap_or(u32::MAX))
                    .unwrap_or(0)
                    & 1
                    == 1
            })
            .map(|(_, list)| list)
    }
}
