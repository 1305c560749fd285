//! Why a listing is found: which words of the query it says, and where.

use std::collections::BTreeSet;

use crate::entry::Entry;

use super::analysis::{Asked, Terms};
use super::document::{language, texts};

/// What one part of a listing says of the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matched {
    /// `name`, `description`, `tags`, `category`, `brand` or `attributes`.
    pub field: &'static str,
    /// Words and codes of the query, as they are compared; a word that only begins as one of the query ends with `…`.
    pub terms: Vec<String>,
}

pub(super) fn matched(entry: &Entry, asked: &Asked) -> Vec<Matched> {
    let lang = language(entry);
    let mut matched: Vec<(&'static str, BTreeSet<String>)> = Vec::new();
    for (field, text) in texts(entry) {
        let mut terms = Terms::default();
        terms.add(&text, lang.as_deref());
        let said = said(&terms, asked);
        match matched.iter_mut().find(|(known, _)| *known == field) {
            Some((_, terms)) => terms.extend(said),
            None => matched.push((field, said)),
        }
    }
    let matched = matched.into_iter().filter(|(_, terms)| !terms.is_empty());
    matched
        .map(|(field, terms)| Matched {
            field,
            terms: terms.into_iter().collect(),
        })
        .collect()
}

fn said(terms: &Terms, asked: &Asked) -> BTreeSet<String> {
    const PREFIX_LETTERS_MIN: usize = 3;
    let words: BTreeSet<&str> = terms.words.iter().map(String::as_str).collect();
    let codes: BTreeSet<&str> = terms.codes.iter().map(String::as_str).collect();
    let mut said = BTreeSet::new();
    for unit in &asked.units {
        let may_begin =
            !unit.has_digit && !unit.is_unspaced && unit.form.chars().count() >= PREFIX_LETTERS_MIN;
        if unit
            .stems
            .iter()
            .chain(&unit.humps)
            .any(|stem| words.contains(stem.as_str()))
            || terms.forms.contains(&unit.form)
        {
            said.insert(unit.form.clone());
        } else if may_begin && terms.forms.iter().any(|form| form.starts_with(&unit.form)) {
            said.insert(format!("{}…", unit.form));
        }
    }
    said.extend(
        asked
            .codes
            .iter()
            .filter(|code| codes.contains(code.form.as_str()))
            .map(|code| code.form.clone()),
    );
    said
}
