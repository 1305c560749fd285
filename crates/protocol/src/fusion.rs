//! Rank fusion: one order from the full-text and the semantic list, with trust (§9).

use std::collections::BTreeMap;

/// The two numbers of the formula; a hub that sets others than the defaults says so in its answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fusion {
    /// How slowly a rank loses weight; 60 by default.
    pub k: f64,
    /// How much full trust adds; 0.3 by default.
    pub trust_weight: f64,
}

impl Default for Fusion {
    fn default() -> Self {
        Self {
            k: 60.0,
            trust_weight: 0.3,
        }
    }
}

/// The places of one item in the lists that hold it, from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ranks {
    /// In the full-text list.
    pub fts: Option<u32>,
    /// In the semantic list.
    pub semantic: Option<u32>,
}

/// One item of the fused order.
#[derive(Debug, Clone, PartialEq)]
pub struct Fused<'a> {
    /// The listing's id.
    pub id: &'a str,
    /// Its places in the lists.
    pub ranks: Ranks,
    /// The trust in its agent, 0 to 1.
    pub trust_score: f64,
    /// Sum of `1 / (k + rank)` over the lists that hold it.
    pub rrf: f64,
    /// `rrf` divided by its maximum: 1.0 is first in every list that ran.
    pub relevance_score: f64,
    /// `rrf * (1 + trust_weight * trust_score)`: what the order goes by.
    pub final_score: f64,
}

impl Fusion {
    /// Sum of `1 / (k + rank)` over the lists that hold the item, full text first.
    pub fn rrf(&self, ranks: Ranks) -> f64 {
        let part = |rank: Option<u32>| rank.map_or(0.0, |rank| 1.0 / (self.k + f64::from(rank)));
        part(ranks.fts) + part(ranks.semantic)
    }

    /// `rrf` divided by the most that `legs` lists can give.
    pub fn relevance(&self, rrf: f64, legs: u8) -> f64 {
        rrf / (f64::from(legs) / (self.k + 1.0))
    }

    /// `rrf` raised by trust.
    pub fn final_score(&self, rrf: f64, trust_score: f64) -> f64 {
        rrf * (1.0 + self.trust_weight * trust_score)
    }

    /// Fuses two lists of ids, best first; `None` is a leg that did not run. Ties go by id, in
    /// ascending byte order.
    pub fn fuse<'a>(
        &self,
        fts: Option<&[&'a str]>,
        semantic: Option<&[&'a str]>,
        trust: impl Fn(&str) -> f64,
    ) -> Vec<Fused<'a>> {
        let legs = u8::from(fts.is_some()) + u8::from(semantic.is_some());
        let mut ranks: BTreeMap<&'a str, Ranks> = BTreeMap::new();
        for (rank, id) in (1..).zip(fts.unwrap_or_default()) {
            ranks.entry(id).or_default().fts.get_or_insert(rank);
        }
        for (rank, id) in (1..).zip(semantic.unwrap_or_default()) {
            ranks.entry(id).or_default().semantic.get_or_insert(rank);
        }
        let row = |(id, ranks)| {
            let (rrf, trust_score) = (self.rrf(ranks), trust(id));
            let relevance_score = self.relevance(rrf, legs);
            let final_score = self.final_score(rrf, trust_score);
            Fused {
                id,
                ranks,
                trust_score,
                rrf,
                relevance_score,
                final_score,
            }
        };
        // The map yields ids in byte order, and the sort is stable.
        let mut rows: Vec<Fused<'a>> = ranks.into_iter().map(row).collect();
        rows.sort_by(|a, b| b.final_score.total_cmp(&a.final_score));
        rows
    }
}
