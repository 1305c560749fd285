//! Which language a text is in, and what its words come from.

use frostem::{Algorithm, Stemmer};
use whatlang::{Detector, Lang};

use crate::limits::TEXT_DETECT_BYTES_MAX;

use super::cut;

/// The languages whose words are brought to their stems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::text) enum Language {
    English,
    French,
    Russian,
    German,
    Spanish,
}

impl Language {
    pub(in crate::text) const ALL: [Self; 5] = [
        Self::English,
        Self::French,
        Self::Russian,
        Self::German,
        Self::Spanish,
    ];

    /// The primary subtag.
    pub(in crate::text) const fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::French => "fr",
            Self::Russian => "ru",
            Self::German => "de",
            Self::Spanish => "es",
        }
    }

    /// The language of a primary subtag, where its words are stemmed.
    pub(in crate::text) fn of_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.code() == code)
    }

    const fn of_detected(lang: Lang) -> Option<Self> {
        match lang {
            Lang::Eng => Some(Self::English),
            Lang::Fra => Some(Self::French),
            Lang::Rus => Some(Self::Russian),
            Lang::Deu => Some(Self::German),
            Lang::Spa => Some(Self::Spanish),
            _ => None,
        }
    }

    const fn algorithm(self) -> Algorithm {
        match self {
            Self::English => Algorithm::English,
            Self::French => Algorithm::French,
            Self::Russian => Algorithm::Russian,
            Self::German => Algorithm::German,
            Self::Spanish => Algorithm::Spanish,
        }
    }
}

/// What the word comes from: by the script first, then by the language; itself where it holds a digit. The word is lower case
/// with its accents.
pub(super) fn stem(word: &str, language: Language) -> String {
    if word.chars().any(char::is_numeric) {
        return word.to_owned();
    }
    let is_cyrillic = word.chars().any(|letter| matches!(letter, '\u{400}'..='\u{52f}'));
    let language = match (is_cyrillic, language) {
        (true, _) => Language::Russian,
        (false, Language::Russian) => Language::English,
        (false, language) => language,
    };
    Stemmer::new(language.algorithm()).stem(word).into_owned()
}

/// The primary subtag in lower case of a language tag.
pub(in crate::text) fn primary(tag: &str) -> String {
    tag.split(['-', '_'])
        .next()
        .unwrap_or(tag)
        .trim()
        .to_ascii_lowercase()
}

/// From where on a detected language is believed. Names of products, mostly in no language, stay below it; four of five
/// questions of ten words are above.
const CONFIDENCE_MIN: f64 = 0.5;

/// What language the text is in, when that is all but certain.
pub(in crate::text) fn detect(text: &str) -> Option<&'static str> {
    let text = cut(text, TEXT_DETECT_BYTES_MAX);
    let candidates = vec![Lang::Eng, Lang::Fra, Lang::Rus, Lang::Deu, Lang::Spa];
    match whatlang::detect_script(text)? {
        whatlang::Script::Mandarin => Some("zh"),
        whatlang::Script::Hiragana | whatlang::Script::Katakana => Some("ja"),
        whatlang::Script::Hangul => Some("ko"),
        whatlang::Script::Thai => Some("th"),
        whatlang::Script::Greek => Some("el"),
        // One language of a script needs no proof; of several, the nearest is only a guess where there is little text.
        whatlang::Script::Cyrillic => Some("ru"),
        whatlang::Script::Latin => {
            let info = Detector::with_allowlist(candidates).detect(text)?;
            let language = Language::of_detected(info.lang())?;
            (info.confidence() >= CONFIDENCE_MIN).then_some(language.code())
        }
        _ => None,
    }
}

/// The language of a listing's text when nothing tells it: by far the most of the short Latin ones are English.
pub(super) fn or_english(code: Option<&str>) -> Language {
    code.and_then(Language::of_code).unwrap_or(Language::English)
}
