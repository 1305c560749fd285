//! From what text and meaning found to the two lists that are fused (spec §9).
//!
//! Fused as they come, the lists of text and meaning do harm where one of them is there by chance: a French question shares
//! a few names with English listings, a model number means nothing to a model. So the query is measured first: what the best
//! listing says of it, in words that no other says, against what meaning may say of the rest. Both lists are put into the
//! one order that follows; each holds what its side found, so that the ranks still say who found what, and the formula of
//! the specification fuses them as ever. The list of text ends where chance begins: at the first listing that is better
//! although it says nothing of the query.
//!
//! No number here was fitted to a set: docs/SEARCH.md has what was measured.

use std::collections::{HashMap, HashSet};

use crate::numbers::NumberSet;
use crate::text::{TextHit, TextHits};
use crate::vectors::{Near, Space};

/// What one space of vectors says of a query.
#[derive(Debug, Clone, Default)]
pub struct Meaning {
    /// The nearest listings, nearest first.
    pub nearest: Vec<Near>,
    /// The cosines of the listings that text or another space found; none of those without a vector here.
    pub others: HashMap<u64, f32>,
}

/// The two lists, best first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lists {
    /// Listings that say something of the query.
    pub fts: Vec<u64>,
    /// Listings that have a vector: those near to the query, and those of the text's.
    pub semantic: Vec<u64>,
}

/// Asks every space, with the vector of the query in it: the `depth` nearest admitted listings of each, and how near the
/// rest of what was found is.
pub fn meanings(
    text: &TextHits,
    spaces: &[(&Space, &[f32])],
    admitted: Option<&NumberSet>,
    depth: usize,
) -> Vec<Meaning> {
    let nearest = |(space, query): &(&Space, &[f32])| space.nearest(query, admitted, depth);
    let nearest: Vec<Vec<Near>> = spaces.iter().map(nearest).collect();
    let found = text.hits.iter().map(|hit| hit.number);
    let found: HashSet<u64> = found
        .chain(nearest.iter().flatten().map(|near| near.number))
        .collect();
    let with_others = |((space, query), nearest): (&(&Space, &[f32]), Vec<Near>)| {
        let known: HashSet<u64> = nearest.iter().map(|near| near.number).collect();
        let rest: Vec<u64> = found.difference(&known).copied().collect();
        let cosines = space.cosines(query, rest.iter().copied());
        let others = rest.into_iter().zip(cosines);
        let others = others
            .filter_map(|(number, cosine)| Some((number, cosine?)))
            .collect();
        Meaning { nearest, others }
    };
    spaces.iter().zip(nearest).map(with_others).collect()
}

/// The lists to fuse. Without any meaning the list of text is what text found, in its order.
pub fn lists(text: &TextHits, meanings: &[Meaning]) -> Lists {
    let nearness = nearness(meanings);
    if nearness.is_empty() {
        let fts = text.hits.iter().map(|hit| hit.number).collect();
        return Lists {
            fts,
            semantic: Vec::new(),
        };
    }
    part(&ordered(text, &nearness))
}

/// What only meaning finds, best first: the semantic list where there is no text.
pub fn by_meaning(meanings: &[Meaning]) -> Vec<u64> {
    let mut near: Vec<(f64, u64)> = nearness(meanings)
        .into_iter()
        .map(|(number, near)| (near, number))
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    near.into_iter().map(|(_, number)| number).collect()
}

/// A listing that was found, and by whom.
#[derive(Debug, Clone, Copy)]
struct Found {
    number: u64,
    worth: f64,
    /// 0 to 1.
    nearness: f64,
    by_text: bool,
    has_meaning: bool,
}

/// Everything that was found in one order: text counts as much as it is believed, meaning the rest.
fn ordered(text: &TextHits, nearness: &HashMap<u64, f64>) -> Vec<Found> {
    let belief = belief(text);
    let best = text
        .hits
        .iter()
        .map(|hit| hit.score)
        .fold(f64::MIN_POSITIVE, f64::max);
    let of_text = |hit: &TextHit| {
        let near = nearness.get(&hit.number).copied();
        // What has no vector yet is taken to be as near as it says what is asked.
        let nearness = near.unwrap_or(hit.coverage);
        let worth = belief * (hit.score / best) + (1.0 - belief) * nearness;
        Found {
            number: hit.number,
            worth,
            nearness,
            by_text: true,
            has_meaning: near.is_some(),
        }
    };
    let said: HashSet<u64> = text.hits.iter().map(|hit| hit.number).collect();
    let unsaid = nearness.iter().filter(|(number, _)| !said.contains(number));
    let of_meaning = |(number, near): (&u64, &f64)| Found {
        number: *number,
        worth: (1.0 - belief) * near,
        nearness: *near,
        by_text: false,
        has_meaning: true,
    };
    let mut found: Vec<Found> = text
        .hits
        .iter()
        .map(of_text)
        .chain(unsaid.map(of_meaning))
        .collect();
    // Of equals, what says something comes first, then the nearer (codes alone leave nearness out of the worth), then the older.
    found.sort_by(|a, b| {
        b.worth
            .total_cmp(&a.worth)
            .then(b.by_text.cmp(&a.by_text))
            .then(b.nearness.total_cmp(&a.nearness))
            .then(a.number.cmp(&b.number))
    });
    found
}

/// How much text is believed, 0 to 1: what the best hit says against what the nearest may mean. Both are counted in rare words,
/// so that it is the number of words that agree that convinces and not their share: five rare words of a long question are
/// no chance, one of a short one may be. The more of the query is said, the less is left to be meant; codes mean nothing.
fn belief(text: &TextHits) -> f64 {
    /// What the nearest counts as where nothing of the query is said, in words that only one listing says.
    const NEAREST: f64 = 6.0;
    /// Words said one by one are not all that a query means.
    const SAID_MAX: f64 = 0.75;
    let unsaid = 1.0 - SAID_MAX * text.coverage.clamp(0.0, 1.0);
    let meant = NEAREST * unsaid * (1.0 - text.code_share.clamp(0.0, 1.0));
    let said = text.evidence.max(0.0);
    if said > 0.0 { said / (said + meant) } else { 0.0 }
}

/// Parts the order into the two lists. A side leaves out what stands below something that only the other side found, but
/// nothing that would then be in neither list.
fn part(found: &[Found]) -> Lists {
    let mut lists = Lists::default();
    let (mut is_chance, mut is_blind) = (false, false);
    for found in found {
        is_chance |= !found.by_text;
        is_blind |= !found.has_meaning;
        let in_fts = found.by_text && (!is_chance || is_blind);
        let in_semantic = found.has_meaning && (!is_blind || !in_fts);
        if in_fts {
            lists.fts.push(found.number);
        }
        if in_semantic {
            lists.semantic.push(found.number);
        }
    }
    lists
}

/// How near every listing is, 0 to 1: the spaces' words, each weighed by how sure it is.
fn nearness(meanings: &[Meaning]) -> HashMap<u64, f64> {
    let scales: Vec<(Scale, &Meaning)> = meanings
        .iter()
        .filter_map(|meaning| Some((Scale::of(&meaning.nearest)?, meaning)))
        .collect();
    let mut sums: HashMap<u64, (f64, f64)> = HashMap::new();
    for (scale, meaning) in &scales {
        let nearest = meaning.nearest.iter().map(|near| (near.number, near.score));
        let others = meaning.others.iter().map(|(number, cosine)| (*number, *cosine));
        for (number, cosine) in nearest.chain(others) {
            let (sum, sureness) = sums.entry(number).or_default();
            *sum += scale.sureness * scale.place(cosine);
            *sureness += scale.sureness;
        }
    }
    let mut nearness: HashMap<u64, f64> = sums
        .into_iter()
        .map(|(number, (sum, sureness))| (number, sum / sureness))
        .collect();
    let most = nearness.values().copied().fold(f64::MIN_POSITIVE, f64::max);
    for near in nearness.values_mut() {
        *near /= most;
    }
    nearness
}

/// The cosines of a list, from its last (0) to its first (1): what a cosine is worth differs from model to model.
#[derive(Debug, Clone, Copy)]
struct Scale {
    last: f64,
    span: f64,
    /// More than 0. A space is sure whose first stands out; where a model does not understand a query, many listings are
    /// about as near.
    sureness: f64,
}

impl Scale {
    /// None for an empty list.
    fn of(nearest: &[Near]) -> Option<Self> {
        /// The place from which a list is the crowd that its first stands out of.
        const CROWD: usize = 10;
        /// No space is without any say.
        const SURENESS_MIN: f64 = 1e-6;
        let (first, last) = (nearest.first()?, nearest.last()?);
        let crowd = nearest.get(CROWD - 1).unwrap_or(last);
        let mut scale = Self {
            last: f64::from(last.score),
            span: 0.0,
            sureness: 1.0,
        };
        scale.span = f64::from(first.score) - scale.last;
        let ahead = 1.0 - scale.place(crowd.score);
        if scale.span > 0.0 {
            scale.sureness = ahead.powi(4).max(SURENESS_MIN);
        }
        Some(scale)
    }

    fn place(&self, cosine: f32) -> f64 {
        let above = f64::from(cosine) - self.last;
        if self.span > 0.0 {
            (above / self.span).clamp(0.0, 1.0)
        } else {
            f64::from(u8::from(above >= 0.0))
        }
    }
}

#[cfg(test)]
mod tests;
