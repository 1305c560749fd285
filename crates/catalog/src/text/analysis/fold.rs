//! One form for what people take to be the same letters.

use unicode_normalization::char::{decompose_canonical, is_combining_mark};

/// Lower case without the accents of Latin and Greek letters; `ё` is `е`, `ß` is `ss`. Marks of other scripts stay: in many
/// of them they are letters.
pub(super) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(text.len());
    for letter in text.chars().flat_map(char::to_lowercase) {
        push_folded(letter, &mut folded);
    }
    folded
}

/// The lower case of what was normalised (NFKC) already, with accents, as stemmers know it.
pub(super) fn lower(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let letters = text.chars().flat_map(char::to_lowercase);
    letters
        .filter(|letter| !is_stray_accent(*letter))
        .map(|letter| if letter == 'ё' { 'е' } else { letter })
        .collect()
}

/// Signs nobody sees: they neither part words nor belong to them.
pub(super) const fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(letter, '\u{fe00}'..='\u{fe0f}' | '\u{61c}' | '\u{180e}' | '\u{e0000}'..='\u{e0fff}')
}

/// Letters of scripts that put no spaces between words, and of Korean, whose words end in many ways.
pub(super) const fn is_unspaced(letter: char) -> bool {
    matches!(letter,
        '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}'
        | '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
}

/// What a word is made of.
pub(super) fn is_word_letter(letter: char) -> bool {
    letter.is_alphanumeric() || is_combining_mark(letter)
}

const fn is_stray_accent(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}')
}

fn push_folded(letter: char, folded: &mut String) {
    match letter {
        _ if letter.is_ascii() => folded.push(letter),
        'ё' => folded.push('е'),
        'ς' => folded.push('σ'),
        'ß' => folded.push_str("ss"),
        'æ' => folded.push_str("ae"),
        'œ' => folded.push_str("oe"),
        'þ' => folded.push_str("th"),
        'ø' => folded.push('o'),
        'ł' => folded.push('l'),
        'đ' | 'ð' => folded.push('d'),
        'ı' => folded.push('i'),
        _ if is_stray_accent(letter) => {}
        'à'..='\u{24f}' | '\u{1e00}'..='\u{1fff}' | 'Ͱ'..='Ͽ' => {
            decompose_canonical(letter, |piece| {
                if !is_combining_mark(piece) {
                    folded.push(if piece == 'ς' { 'σ' } else { piece });
                }
            });
        }
        _ => folded.push(letter),
    }
}
