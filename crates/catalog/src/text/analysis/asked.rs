//! What a query asks for. Nothing in its text is an error, and nothing in it is a language.

use std::collections::BTreeSet;

use crate::limits::{TEXT_LETTERS_MAX, TEXT_QUERY_BYTES_MAX, TEXT_QUERY_PARTS_MAX};

use super::language::{Language, detect};
use super::parts::{Part, parts};
use super::{Terms, codes, cut, name_key, pairs, stem};

/// Letters a whole query may have to be one code.
const WHOLE_LETTERS_MAX: usize = 24;

/// One word of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::text) struct Unit {
    /// Folded, unstemmed.
    pub(in crate::text) form: String,
    /// What it may be in the index of words, one for each language it may be in; the first is the likeliest.
    pub(in crate::text) stems: Vec<String>,
    /// The words of `camelCase`, as they may be in the index of words.
    pub(in crate::text) humps: Vec<String>,
    /// Holds a digit.
    pub(in crate::text) has_digit: bool,
    /// In a script without spaces: two letters, or one.
    pub(in crate::text) is_unspaced: bool,
}

/// A code in a query, and which words it was written with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::text) struct Code {
    /// Folded, in one.
    pub(in crate::text) form: String,
    /// Places in [`Asked::units`].
    pub(in crate::text) units: Vec<usize>,
    /// It was written as one code, not as words that may be one together.
    pub(in crate::text) is_written: bool,
}

/// What a query asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::text) struct Asked {
    /// The different words.
    pub(in crate::text) units: Vec<Unit>,
    /// All codes that neighbouring words make up.
    pub(in crate::text) codes: Vec<Code>,
    /// The whole query, where it may be one code.
    pub(in crate::text) whole: Option<String>,
    /// Three letters each.
    pub(in crate::text) grams: Vec<Code>,
    /// What stood in quotes: forms in order.
    pub(in crate::text) phrases: Vec<Vec<String>>,
    /// The query as the name of a listing.
    pub(in crate::text) name: String,
}

/// Reads the first bytes of what somebody typed, for an index that holds texts in these languages.
pub(in crate::text) fn asked(text: &str, languages: &[Language]) -> Asked {
    let text = cut(text, TEXT_QUERY_BYTES_MAX);
    let parts = parts(text, TEXT_QUERY_BYTES_MAX, TEXT_QUERY_PARTS_MAX, TEXT_LETTERS_MAX);
    let mut asked = Asked {
        name: name_key(text),
        phrases: phrases(text),
        ..Asked::default()
    };
    let languages = order(languages, detect(text));
    let places: Vec<Vec<usize>> = parts
        .iter()
        .map(|part| asked.add_units(part, &languages))
        .collect();
    for number in codes::decimals(&parts) {
        asked.unit(&number.code.clone(), vec![number.code], Vec::new(), (true, false));
    }
    asked.add_codes(&parts, &places);
    asked
}

impl Asked {
    /// Adds the words of a part; their places.
    fn add_units(&mut self, part: &Part, languages: &[Language]) -> Vec<usize> {
        let signs = (part.has_digit, part.is_unspaced);
        if part.is_unspaced {
            let pairs = pairs(&part.folded).into_iter();
            return pairs
                .map(|pair| self.unit(&pair.clone(), vec![pair], Vec::new(), signs))
                .collect();
        }
        let mut stems: Vec<String> = Vec::new();
        for stem in languages.iter().map(|language| stem(&part.text, *language)) {
            if !stems.contains(&stem) {
                stems.push(stem);
            }
        }
        let language = languages.first().copied().unwrap_or(Language::English);
        let humps = part.humps.iter().map(|hump| stem(hump, language)).collect();
        vec![self.unit(&part.folded, stems, humps, signs)]
    }

    fn unit(&mut self, form: &str, stems: Vec<String>, humps: Vec<String>, signs: (bool, bool)) -> usize {
        // What is said twice is not asked for twice: long requests repeat themselves.
        if let Some(place) = self.units.iter().position(|unit| unit.form == form) {
            return place;
        }
        let (has_digit, is_unspaced) = signs;
        self.units.push(Unit {
            form: form.to_owned(),
            stems,
            humps,
            has_digit,
            is_unspaced,
        });
        self.units.len() - 1
    }

    fn add_codes(&mut self, parts: &[Part], places: &[Vec<usize>]) {
        let units_of = |start: usize, len: usize| -> Vec<usize> {
            let places = places.get(start..start + len).unwrap_or_default();
            places.iter().flatten().copied().collect()
        };
        let joined = codes::joined(parts, codes::PARTS_OF_QUERY);
        let is_written = |joined: &codes::Joined| {
            let parts = parts
                .get(joined.start..joined.start + joined.len)
                .unwrap_or_default();
            parts.len() == 1 || codes::is_written_as_one(parts)
        };
        let mut seen = BTreeSet::new();
        for joined in joined.into_iter().chain(codes::whole_chunks(parts)) {
            if seen.insert(joined.code.clone()) {
                self.codes.push(Code {
                    units: units_of(joined.start, joined.len),
                    is_written: is_written(&joined),
                    form: joined.code,
                });
            }
        }
        let letters: usize = parts.iter().map(Part::len).sum();
        let may_be_one = letters <= WHOLE_LETTERS_MAX && parts.iter().any(|part| part.has_digit);
        let is_chunk =
            parts.len() > 1 && parts.first().map(|part| part.chunk) == parts.last().map(|part| part.chunk);
        self.whole = (!parts.is_empty() && (may_be_one || is_chunk)).then(|| codes::join(parts));
        self.add_grams(parts, &units_of, may_be_one);
    }

    fn add_grams(&mut self, parts: &[Part], units_of: &dyn Fn(usize, usize) -> Vec<usize>, may_be_one: bool) {
        let chunks = codes::chunks(parts).filter(|(_, chunk)| chunk.iter().any(|part| part.has_digit));
        let mut sources: Vec<(String, Vec<usize>)> = chunks
            .map(|(start, chunk)| (codes::join(chunk), units_of(start, chunk.len())))
            .collect();
        if may_be_one {
            sources.push((codes::join(parts), units_of(0, parts.len())));
        }
        let mut seen = BTreeSet::new();
        for (code, units) in sources {
            for gram in codes::trigrams(&code) {
                if seen.insert(gram.clone()) {
                    self.grams.push(Code {
                        form: gram,
                        units: units.clone(),
                        is_written: false,
                    });
                }
            }
        }
    }
}

/// The detected one first.
fn order(languages: &[Language], lang: Option<&str>) -> Vec<Language> {
    let detected = lang.and_then(Language::of_code);
    let mut ordered: Vec<Language> = detected.into_iter().collect();
    ordered.extend(languages.iter().filter(|language| Some(**language) != detected));
    if ordered.is_empty() {
        ordered.push(Language::English);
    }
    ordered
}

/// What stands in quotes, of at least two words. A quote that is never closed quotes nothing.
fn phrases(text: &str) -> Vec<Vec<String>> {
    const PHRASES_MAX: usize = 4;
    const WORDS_MAX: usize = 16;
    let mut pieces: Vec<&str> = text.split(['"', '“', '”', '„', '«', '»']).collect();
    if pieces.len().is_multiple_of(2) {
        pieces.pop();
    }
    let quoted = pieces.into_iter().skip(1).step_by(2);
    let forms = quoted.map(|quoted| {
        let mut terms = Terms::default();
        terms.add(quoted, None);
        terms
            .forms
            .into_iter()
            .filter(|form| !form.is_empty())
            .take(WORDS_MAX)
            .collect::<Vec<_>>()
    });
    forms.filter(|forms| forms.len() > 1).take(PHRASES_MAX).collect()
}
