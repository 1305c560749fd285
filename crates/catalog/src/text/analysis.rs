//! Text to terms: the same for listings and for what is looked for.
//!
//! Words: NFKC, lower case, the stem of the text's language, accents folded; runs of scripts without spaces in pairs of
//! letters. Forms: words unstemmed, in order, for phrases, prefixes and typing errors. Codes: see [`codes`]. Grams: three
//! letters each of what holds a digit, so that a code with a letter wrong or missing is near. No word is left out for being
//! frequent: a name may be made of such.

mod asked;
mod codes;
mod fold;
mod language;
mod parts;

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization;

use crate::limits::{
    TEXT_LETTERS_MAX, TEXT_LISTING_BYTES_MAX, TEXT_LISTING_PARTS_MAX, TEXT_QUERY_BYTES_MAX,
    TEXT_QUERY_PARTS_MAX,
};

pub(super) use self::asked::{Asked, Code, Unit, asked};
pub(super) use self::language::{Language, detect, primary};
use self::parts::{Part, parts};

/// Raised with every change of what the same text is turned into; an index of another number is built anew.
pub(super) const VERSION: u32 = 1;

/// Places between two texts of a listing, so that no phrase reaches from one into the next.
const GAP: usize = 8;

/// The terms of a listing's texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) words: Vec<String>,
    /// In order, with empty ones between two texts.
    pub(super) forms: Vec<String>,
    pub(super) codes: Vec<String>,
    pub(super) grams: Vec<String>,
}

impl Terms {
    /// Adds a text in this language (primary subtag).
    pub(super) fn add(&mut self, text: &str, lang: Option<&str>) {
        let language = language::or_english(lang);
        let parts = parts(
            text,
            TEXT_LISTING_BYTES_MAX,
            TEXT_LISTING_PARTS_MAX,
            TEXT_LETTERS_MAX,
        );
        let decimals = codes::decimals(&parts);
        let joined = codes::joined(&parts, codes::PARTS_OF_LISTING);
        let mut codes: BTreeSet<String> = joined.into_iter().map(|joined| joined.code).collect();
        codes.extend(codes::whole_chunks(&parts).into_iter().map(|joined| joined.code));
        self.codes.extend(codes);
        for (_, chunk) in codes::chunks(&parts).filter(|(_, chunk)| chunk.iter().any(|part| part.has_digit)) {
            self.grams.extend(codes::trigrams(&codes::join(chunk)));
        }
        for part in parts {
            self.add_part(part, language);
        }
        self.words.extend(decimals.into_iter().map(|number| number.code));
        self.forms.extend(std::iter::repeat_n(String::new(), GAP));
    }

    fn add_part(&mut self, part: Part, language: Language) {
        if part.is_unspaced {
            self.words.extend(pairs(&part.folded));
            self.forms.extend(part.folded.chars().map(String::from));
            return;
        }
        self.words.push(stem(&part.text, language));
        self.words
            .extend(part.humps.iter().map(|hump| stem(hump, language)));
        self.forms.push(part.folded);
    }
}

/// What a name is looked up by: its parts, folded, one space between.
pub(super) fn name_key(text: &str) -> String {
    const NAME_LETTERS_MAX: usize = 120;
    let parts = parts(text, TEXT_QUERY_BYTES_MAX, TEXT_QUERY_PARTS_MAX, TEXT_LETTERS_MAX);
    let words: Vec<&str> = parts.iter().map(|part| part.folded.as_str()).collect();
    words.join(" ").chars().take(NAME_LETTERS_MAX).collect()
}

/// What a filter compares: NFKC, lower case, blanks at the ends and in rows taken away.
pub(super) fn label(text: &str) -> String {
    let text = cut(text, TEXT_QUERY_BYTES_MAX);
    let text: String = if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        text.nfkc().flat_map(char::to_lowercase).collect()
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The beginning of a text, at most so many bytes.
fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

fn stem(word: &str, language: Language) -> String {
    let stem = language::stem(word, language);
    // A stem is lower case already.
    if stem.is_ascii() { stem } else { fold::fold(&stem) }
}

/// Neighbouring letters in pairs; a single letter alone.
fn pairs(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() < 2 {
        return vec![text.to_owned()];
    }
    letters.windows(2).map(|pair| pair.iter().collect()).collect()
}

#[cfg(test)]
mod tests;
