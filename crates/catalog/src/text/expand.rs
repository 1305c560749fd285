//! Words that may have been meant: those that begin with what was typed, and those that differ from it by a slip.

use std::collections::BTreeMap;

use tantivy::postings::TermInfo;
use tantivy::query::FuzzyTermQuery;
use tantivy::schema::Field;
use tantivy::{Searcher, Term};

use crate::limits::{TEXT_GUESS_STEPS_MAX, TEXT_GUESSES_MAX};

/// Words of one query that are guessed at.
pub(super) const UNITS_MAX: usize = 8;

/// Codes of one query that are guessed at.
pub(super) const CODES_MAX: usize = 4;

/// Letters a word needs before its beginning says anything, before one slip in it is looked for, and before two are.
const PREFIX_LETTERS_MIN: usize = 3;
const SLIP_LETTERS_MIN: usize = 4;
const SLIPS_LETTERS_MIN: usize = 8;

/// Letters a code needs before its beginning or a slip in it is looked for.
const CODE_LETTERS_MIN: usize = 4;

/// A word of the index that may have been meant.
#[derive(Debug, Clone)]
pub(super) struct Expansion {
    pub(super) infos: Vec<Option<TermInfo>>,
    /// Listings that hold it.
    pub(super) documents: u64,
    pub(super) is_prefix: bool,
    /// How much of the typed word it has in common, 0 to 1.
    pub(super) share: f64,
}

type Found = BTreeMap<String, (Vec<Option<TermInfo>>, u64)>;

/// The words that are the likeliest, at most [`TEXT_GUESSES_MAX`] of them; slips only where asked for.
pub(super) fn guesses(
    searcher: &Searcher,
    forms: Field,
    typed: &str,
    with_slips: bool,
) -> tantivy::Result<Vec<Expansion>> {
    let letters = typed.chars().count();
    let mut all = Vec::new();
    if letters >= PREFIX_LETTERS_MIN {
        all.extend(ranked(begun(searcher, forms, typed)?, true, |word| {
            share_of_prefix(letters, word)
        }));
    }
    if with_slips && letters >= SLIP_LETTERS_MIN {
        let slips = if letters >= SLIPS_LETTERS_MIN { 2 } else { 1 };
        let found = slipped(searcher, forms, typed, slips, first(typed))?;
        all.extend(ranked(found, false, |word| share_of_slip(typed, word)));
    }
    Ok(all)
}

/// The codes that the typed one begins, and those that differ from it by one slip, wherever it is; the likeliest of both, at
/// most [`TEXT_GUESSES_MAX`] each.
pub(super) fn near_codes(searcher: &Searcher, codes: Field, typed: &str) -> tantivy::Result<Vec<Expansion>> {
    let mut all = begun_codes(searcher, codes, typed)?;
    if typed.chars().count() >= CODE_LETTERS_MIN {
        let slipped = slipped(searcher, codes, typed, 1, "")?;
        all.extend(ranked(slipped, false, |code| share_of_slip(typed, code)));
    }
    Ok(all)
}

/// The codes that the typed one begins, the likeliest, at most [`TEXT_GUESSES_MAX`].
pub(super) fn begun_codes(searcher: &Searcher, codes: Field, typed: &str) -> tantivy::Result<Vec<Expansion>> {
    let letters = typed.chars().count();
    if letters < CODE_LETTERS_MIN {
        return Ok(Vec::new());
    }
    let begun = begun(searcher, codes, typed)?;
    Ok(ranked(begun, true, |code| share_of_prefix(letters, code)))
}

/// The first letter of a word.
fn first(word: &str) -> &str {
    let end = word.chars().next().map_or(0, char::len_utf8);
    word.get(..end).unwrap_or_default()
}

/// The best by share, then by how many hold them, then by their letters.
fn ranked(found: Found, is_prefix: bool, share: impl Fn(&str) -> f64) -> Vec<Expansion> {
    let mut ranked: Vec<(String, Expansion)> = found
        .into_iter()
        .map(|(word, (infos, documents))| {
            let share = share(&word);
            (
                word,
                Expansion {
                    infos,
                    documents,
                    is_prefix,
                    share,
                },
            )
        })
        .collect();
    ranked.sort_by(|(word, a), (other, b)| {
        b.share
            .total_cmp(&a.share)
            .then(b.documents.cmp(&a.documents))
            .then_with(|| word.cmp(other))
    });
    ranked.truncate(TEXT_GUESSES_MAX);
    ranked.into_iter().map(|(_, expansion)| expansion).collect()
}

fn share_of_prefix(letters: usize, word: &str) -> f64 {
    ratio(letters, word.chars().count())
}

/// A slip at the first letter is less likely.
fn share_of_slip(typed: &str, word: &str) -> f64 {
    let same_start = typed
        .chars()
        .zip(word.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let longest = typed.chars().count().max(word.chars().count());
    0.5 + 0.5 * ratio(same_start, longest)
}

fn ratio(part: usize, whole: usize) -> f64 {
    let float = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    float(part) / float(whole.max(1))
}

/// Words of the index that begin with what was typed and go on.
fn begun(searcher: &Searcher, forms: Field, typed: &str) -> tantivy::Result<Found> {
    let mut found = Found::new();
    for (place, segment) in searcher.segment_readers().iter().enumerate() {
        let index = segment.inverted_index(forms)?;
        let mut words = index.terms().range().gt(typed.as_bytes()).into_stream()?;
        for _ in 0..TEXT_GUESS_STEPS_MAX {
            if !words.advance() || !words.key().starts_with(typed.as_bytes()) {
                break;
            }
            note(&mut found, searcher, place, words.key(), words.value());
        }
    }
    Ok(found)
}

/// Words of the index that differ by so many slips: a letter wrong, missing, too much, or two changed about. The beginning is
/// taken to be right, so that only that part of the index is walked.
fn slipped(
    searcher: &Searcher,
    field: Field,
    typed: &str,
    slips: u8,
    beginning: &str,
) -> tantivy::Result<Found> {
    let mut found = Found::new();
    let query = FuzzyTermQuery::new(Term::from_field_text(field, typed), slips, true);
    for (place, segment) in searcher.segment_readers().iter().enumerate() {
        let index = segment.inverted_index(field)?;
        let mut words = index
            .terms()
            .search(query.automaton()?)
            .ge(beginning.as_bytes())
            .into_stream()?;
        for _ in 0..TEXT_GUESS_STEPS_MAX {
            if !words.advance() || !words.key().starts_with(beginning.as_bytes()) {
                break;
            }
            if words.key() != typed.as_bytes() {
                note(&mut found, searcher, place, words.key(), words.value());
            }
        }
    }
    Ok(found)
}

fn note(found: &mut Found, searcher: &Searcher, place: usize, word: &[u8], info: &TermInfo) {
    let Ok(word) = std::str::from_utf8(word) else {
        return;
    };
    let segments = searcher.segment_readers().len();
    let (infos, documents) = found
        .entry(word.to_owned())
        .or_insert_with(|| (vec![None; segments], 0));
    if let Some(slot) = infos.get_mut(place) {
        *slot = Some(info.clone());
        *documents += u64::from(info.doc_freq);
    }
}
