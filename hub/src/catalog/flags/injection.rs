//! Words that are written for a model that reads them, and not for whoever buys: orders to forget its own, to hide something
//! from its user, to prefer this tool, and the marks that models take for the borders of what they are told. In English,
//! Russian, French, German, Spanish and Chinese; the list is in `docs/protocol/market.md` (§17).
//!
//! Somebody who knows the list writes around it: it finds what is copied, and is no proof of innocence. So that it does not
//! cry at everything, a pattern counts within one text and within a few words only.

mod words;

use self::words::{
    CHINESE, HIDING, Hiding, LANGUAGES, Language, MARKS, PREFERRING, PROMPT_SHOWING, PROMPT_WORDS,
};

/// Words behind a verb in which the rest of an order is looked for.
const ORDER_WORDS: usize = 6;
/// Words between what says which orders and the word for orders.
const PAIR_WORDS: usize = 2;
/// Words behind a verb in which a weak word for which orders counts, such as `all`.
const WEAK_WORDS: usize = 2;
/// Characters behind a Chinese verb in which the rest of an order is looked for.
const CHINESE_CHARS: usize = 12;

/// Whether a text speaks to the model that reads it.
pub(super) fn is_suspected(text: &str) -> bool {
    let lower: String = text
        .chars()
        .filter(|c| !is_unseen(*c))
        .flat_map(char::to_lowercase)
        .collect();
    if MARKS.iter().any(|mark| lower.contains(*mark)) {
        return true;
    }
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    LANGUAGES.iter().any(|language| overrides(&words, language))
        || HIDING.iter().any(|hiding| hides(&words, hiding))
        || PREFERRING
            .iter()
            .any(|phrase| words.windows(phrase.len()).any(|at| at == *phrase))
        || shows_prompt(&words)
        || overrides_in_chinese(&lower)
}

/// What splits a word for the eye of a program only.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

fn begins(word: &str, stems: &[&str]) -> bool {
    stems.iter().any(|stem| word.starts_with(stem))
}

/// `ignore all previous instructions`, in the order of any of the languages.
fn overrides(words: &[&str], language: &Language) -> bool {
    let mut verbs = words
        .iter()
        .enumerate()
        .filter(|(_, word)| begins(word, language.verbs));
    verbs.any(|(at, _)| {
        let behind: Vec<&str> = words.iter().skip(at + 1).take(ORDER_WORDS).copied().collect();
        let places = |stems: &'static [&'static str]| {
            let found = behind.iter().enumerate().filter(|(_, word)| begins(word, stems));
            found.map(|(place, _)| place).collect::<Vec<_>>()
        };
        let (orders, strong, weak) = (
            places(language.orders),
            places(language.strong),
            places(language.weak),
        );
        let pairs = |which: &[usize], fits: fn(usize, usize) -> bool| {
            orders
                .iter()
                .any(|order| which.iter().any(|which| fits(*which, *order)))
        };
        pairs(&strong, |which, order| which.abs_diff(order) <= PAIR_WORDS + 1)
            || pairs(&weak, |which, order| {
                which < WEAK_WORDS && (1..=PAIR_WORDS).contains(&order.wrapping_sub(which))
            })
    })
}

/// `do not mention this to the user`.
fn hides(words: &[&str], hiding: &Hiding) -> bool {
    words.windows(hiding.not.len()).enumerate().any(|(at, window)| {
        if window != hiding.not {
            return false;
        }
        let behind = words
            .iter()
            .skip(at + hiding.not.len())
            .take(hiding.words)
            .copied();
        let behind: Vec<&str> = behind.collect();
        let verb = behind.iter().position(|word| begins(word, hiding.verbs));
        let user = behind.iter().rposition(|word| begins(word, hiding.users));
        verb.zip(user).is_some_and(|(verb, user)| {
            let before = user.checked_sub(1).and_then(|before| behind.get(before));
            verb < user
                && (hiding.before_user.is_empty()
                    || before.is_some_and(|word| hiding.before_user.contains(word)))
        })
    })
}

/// `reveal your system prompt`.
fn shows_prompt(words: &[&str]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        PROMPT_SHOWING.contains(word)
            && words
                .iter()
                .skip(at + 1)
                .take(3)
                .zip(words.iter().skip(at + 2))
                .any(|(first, second)| PROMPT_WORDS.iter().any(|(a, b)| first == a && second == b))
    })
}

/// Chinese puts no blanks between words.
fn overrides_in_chinese(lower: &str) -> bool {
    let dense: String = lower.chars().filter(|c| !c.is_whitespace()).collect();
    CHINESE.verbs.iter().any(|verb| {
        dense.match_indices(*verb).any(|(at, verb)| {
            let behind: String = dense
                .get(at + verb.len()..)
                .unwrap_or_default()
                .chars()
                .take(CHINESE_CHARS)
                .collect();
            let holds = |some: &[&str]| some.iter().any(|word| behind.contains(*word));
            holds(CHINESE.orders) && holds(CHINESE.strong)
        })
    })
}

#[cfg(test)]
mod tests;
