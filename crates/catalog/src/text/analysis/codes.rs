//! Codes: model numbers, sizes, names of tools. People write one code in many ways; joined, all are the same.

use super::parts::Part;

/// Letters of a joined code.
const CODE_LETTERS_MAX: usize = 16;

/// Letters of a joined chunk that is kept whole.
const CHUNK_LETTERS_MAX: usize = 48;

/// Digits that are a code by themselves.
const DIGITS_MIN: usize = 5;

/// Digits that are one when they stood together: `1,000`.
const DIGITS_TOGETHER_MIN: usize = 4;

/// Digits of a code that is written with signs between.
const DIGITS_WRITTEN_MIN: usize = 3;

/// Parts that are joined in a listing, and in a query, where a code may have been cut at every letter and digit.
pub(super) const PARTS_OF_LISTING: usize = 4;
pub(super) const PARTS_OF_QUERY: usize = 8;

/// Some neighbouring parts, joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Joined {
    pub(super) code: String,
    /// The first part.
    pub(super) start: usize,
    /// How many parts.
    pub(super) len: usize,
}

/// Every code that some neighbouring parts make up, at most `parts_max` each.
pub(super) fn joined(parts: &[Part], parts_max: usize) -> Vec<Joined> {
    let mut found = Vec::new();
    for (start, rest) in (0..parts.len()).map(|start| (start, parts.get(start..).unwrap_or_default())) {
        // Most words have no digit near, and are no beginning of a code.
        if !rest.iter().take(parts_max).any(|part| part.has_digit) {
            continue;
        }
        let mut code = String::new();
        let mut letters = 0;
        for (len, part) in (1..=parts_max).zip(rest) {
            letters += part.len();
            if part.is_unspaced || letters > CODE_LETTERS_MAX {
                break;
            }
            code.push_str(&part.folded);
            if rest.get(..len).is_some_and(|parts| is_code(parts, letters)) {
                found.push(Joined {
                    code: code.clone(),
                    start,
                    len,
                });
            }
        }
    }
    found
}

/// Whether the parts, of so many letters together, are a code: letters with digits, or many digits.
fn is_code(parts: &[Part], letters: usize) -> bool {
    let has_digit = parts.iter().any(|part| part.has_digit);
    let has_letter = parts
        .iter()
        .any(|part| part.folded.chars().any(|letter| !letter.is_numeric()));
    let is_together = parts.len() > 1 && is_one_chunk(parts);
    has_digit && (has_letter || letters >= DIGITS_MIN || (is_together && letters >= DIGITS_TOGETHER_MIN))
}

/// Whether the parts, a code together, were written as one, with signs between: `TD-8816`, not `2-day`.
pub(super) fn is_written_as_one(parts: &[Part]) -> bool {
    let letters = parts.iter().flat_map(|part| part.folded.chars());
    is_one_chunk(parts) && letters.filter(|letter| letter.is_numeric()).count() >= DIGITS_WRITTEN_MIN
}

fn is_one_chunk(parts: &[Part]) -> bool {
    parts.first().map(|part| part.chunk) == parts.last().map(|part| part.chunk)
}

/// Chunks of several parts that are a name as a whole, joined: `sortes.draw@v1`, `get_weather`.
pub(super) fn whole_chunks(parts: &[Part]) -> Vec<Joined> {
    chunks(parts)
        .filter(|(_, chunk)| chunk.len() > 1 && chunk.iter().skip(1).all(|part| part.joint.is_some()))
        .filter(|(_, chunk)| {
            let is_named = |part: &Part| matches!(part.joint, Some('.' | '_' | '@' | '/' | ':' | '-' | '#'));
            chunk.iter().any(|part| part.has_digit) || chunk.iter().skip(1).any(is_named)
        })
        .filter(|(_, chunk)| chunk.iter().map(Part::len).sum::<usize>() <= CHUNK_LETTERS_MAX)
        .map(|(start, chunk)| Joined {
            code: join(chunk),
            start,
            len: chunk.len(),
        })
        .collect()
}

/// The parts of each chunk, with the place of its first part.
pub(super) fn chunks(parts: &[Part]) -> impl Iterator<Item = (usize, &[Part])> {
    let mut start = 0;
    parts.chunk_by(|a, b| a.chunk == b.chunk).map(move |chunk| {
        let first = start;
        start += chunk.len();
        (first, chunk)
    })
}

/// All in one, without what stood between.
pub(super) fn join(parts: &[Part]) -> String {
    parts.iter().map(|part| part.folded.as_str()).collect()
}

/// Numbers with a fraction, one form for comma and point: `5,5` is `5.5`.
pub(super) fn decimals(parts: &[Part]) -> Vec<Joined> {
    let is_digits = |part: &Part| part.folded.chars().all(char::is_numeric);
    let pairs = parts
        .windows(2)
        .enumerate()
        .filter_map(|(start, pair)| match pair {
            [whole, fraction]
                if whole.chunk == fraction.chunk && matches!(fraction.joint, Some('.' | ',')) =>
            {
                (is_digits(whole) && is_digits(fraction))
                    .then(|| (start, format!("{}.{}", whole.folded, fraction.folded)))
            }
            _ => None,
        });
    pairs
        .map(|(start, code)| Joined { code, start, len: 2 })
        .collect()
}

/// Every three neighbouring letters of a code; none of a shorter one.
pub(super) fn trigrams(code: &str) -> Vec<String> {
    let letters: Vec<char> = code.chars().take(CHUNK_LETTERS_MAX).collect();
    letters.windows(3).map(|three| three.iter().collect()).collect()
}
