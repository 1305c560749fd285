//! What is asked: three words of each real query, and the whole of it.

use std::path::Path;

use super::made::mixed;
use crate::quality::{sets, spread};

/// Letters of a word that is looked for, at least.
const LETTERS_MIN: usize = 3;

/// One query, in three forms.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// Three words of it.
    pub(super) three: String,
    /// The same words the other way round: no model has a vector of it, so it is answered by text alone.
    pub(super) reversed: String,
    /// As it stands in the set.
    pub(super) whole: String,
}

/// At most so many queries, evenly spread over those of all sets.
pub(super) fn read(data: &Path, most: usize) -> anyhow::Result<Vec<Asked>> {
    let mut whole: Vec<String> = Vec::new();
    for run in sets::read(data, &[])? {
        whole.extend(run.queries.into_iter().map(|asked| asked.text));
    }
    whole.sort();
    whole.dedup();
    let asked: Vec<Asked> = whole.into_iter().filter_map(asked).collect();
    Ok(spread(&asked, most).into_iter().cloned().collect())
}

/// None for a query of fewer words.
fn asked(whole: String) -> Option<Asked> {
    let mut words: Vec<&str> = whole
        .split(|sign: char| !sign.is_alphanumeric())
        .filter(|word| word.chars().count() >= LETTERS_MIN)
        .collect();
    words.sort_by_key(|word| (mixed(word), *word));
    words.dedup();
    let [first, second, third] = words.first_chunk::<3>()?;
    Some(Asked {
        three: format!("{first} {second} {third}"),
        reversed: format!("{third} {second} {first}"),
        whole,
    })
}
