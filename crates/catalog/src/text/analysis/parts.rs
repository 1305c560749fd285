//! Text cut into parts: runs of letters and digits, and which of them stood together without a space.

use unicode_normalization::UnicodeNormalization;

use super::cut;
use super::fold::{fold, is_invisible, is_unspaced, is_word_letter, lower};

/// One run of letters and digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// Lower case, with accents: what stemmers take.
    pub(super) text: String,
    /// Folded: what is compared.
    pub(super) folded: String,
    /// The words of `camelCase`, where there are several, folded.
    pub(super) humps: Vec<String>,
    /// Parts with no space between them have the same one.
    pub(super) chunk: usize,
    /// What stood before it in its chunk.
    pub(super) joint: Option<char>,
    /// In a script without spaces.
    pub(super) is_unspaced: bool,
    /// Holds a digit.
    pub(super) has_digit: bool,
}

impl Part {
    /// Letters of it, folded.
    pub(super) fn len(&self) -> usize {
        self.folded.chars().count()
    }
}

/// The parts of the first `bytes_max` bytes of the text, at most `parts_max` of them, each cut at `letters_max` letters.
pub(super) fn parts(text: &str, bytes_max: usize, parts_max: usize, letters_max: usize) -> Vec<Part> {
    let cutter = Cutter {
        parts_max,
        letters_max,
        ..Cutter::default()
    };
    let text = cut(text, bytes_max);
    if text.is_ascii() {
        // It is its own NFKC.
        cutter.all(text.chars())
    } else {
        cutter.all(text.nfkc())
    }
}

#[derive(Debug, Default)]
struct Cutter {
    parts: Vec<Part>,
    parts_max: usize,
    letters_max: usize,
    run: String,
    letters: usize,
    chunk: usize,
    joint: Option<char>,
    is_unspaced: bool,
}

impl Cutter {
    /// The parts of these letters.
    fn all(mut self, letters: impl Iterator<Item = char>) -> Vec<Part> {
        for letter in letters.filter(|letter| !is_invisible(*letter)) {
            if self.parts.len() >= self.parts_max {
                break;
            }
            self.take(letter);
        }
        self.end_part();
        self.parts
    }

    fn take(&mut self, letter: char) {
        // Sizes are written with either: 8×20, 8x20.
        let letter = if letter == '×' { 'x' } else { letter };
        if is_word_letter(letter) {
            let is_unspaced = is_unspaced(letter);
            if is_unspaced != self.is_unspaced && !self.run.is_empty() {
                self.end_part();
            }
            self.is_unspaced = is_unspaced;
            if self.letters < self.letters_max {
                self.run.push(letter);
                self.letters += 1;
            }
            return;
        }
        self.end_part();
        if letter.is_whitespace() || letter.is_control() {
            self.chunk += 1;
            self.joint = None;
        } else {
            self.joint = Some(letter);
        }
    }

    fn end_part(&mut self) {
        if self.run.is_empty() || self.parts.len() >= self.parts_max {
            return;
        }
        let run = std::mem::take(&mut self.run);
        self.letters = 0;
        let text = lower(&run);
        let folded = if run.is_ascii() { text.clone() } else { fold(&run) };
        if folded.is_empty() {
            return;
        }
        let has_digit = folded.chars().any(char::is_numeric);
        self.parts.push(Part {
            humps: humps(&run),
            text,
            folded,
            chunk: self.chunk,
            joint: self.joint.take(),
            is_unspaced: self.is_unspaced,
            has_digit,
        });
    }
}

/// `getWeatherNow` is three words. One letter is none: `iPhone` is one word.
fn humps(run: &str) -> Vec<String> {
    const LETTERS_MIN: usize = 2;
    let pairs = run.chars().zip(run.chars().skip(1));
    if !pairs
        .into_iter()
        .any(|(letter, next)| letter.is_lowercase() && next.is_uppercase())
    {
        return Vec::new();
    }
    let mut words: Vec<String> = Vec::new();
    let mut was_lower = false;
    for letter in run.chars() {
        match words.last_mut() {
            Some(word) if !(was_lower && letter.is_uppercase()) => word.push(letter),
            _ => words.push(letter.to_string()),
        }
        was_lower = letter.is_lowercase();
    }
    let are_words = words.len() > 1 && words.iter().all(|word| word.chars().count() >= LETTERS_MIN);
    if are_words {
        words.iter().map(|word| fold(word)).collect()
    } else {
        Vec::new()
    }
}
