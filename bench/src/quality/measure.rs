//! nDCG and recall.

use std::collections::HashMap;

/// Places that nDCG looks at.
const NDCG_DEPTH: usize = 10;

/// Places that recall looks at.
const RECALL_DEPTH: usize = 50;

/// What the lists of one kind were worth, over the queries of a set.
#[derive(Debug, Clone, Copy, Default, serde::Serialize)]
pub(crate) struct Figures {
    /// nDCG over the first ten, with linear gains and logarithmic discount.
    pub(crate) ndcg10: f64,
    /// The share of what is relevant among the first fifty.
    pub(crate) recall50: f64,
    /// How often the first is relevant.
    pub(crate) first: f64,
}

/// Adds up.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    sum: Figures,
    queries: u32,
}

impl Judged {
    /// Judges a list, best first; `grades` has what is relevant.
    pub(crate) fn add(&mut self, list: &[String], grades: &HashMap<String, f64>) {
        let grade = |id: &String| grades.get(id).copied().unwrap_or(0.0);
        let mut ideal: Vec<f64> = grades.values().copied().collect();
        ideal.sort_by(|a, b| b.total_cmp(a));
        let most = gain(ideal.into_iter());
        if most > 0.0 {
            self.sum.ndcg10 += gain(list.iter().map(grade)) / most;
        }
        let found = list
            .iter()
            .take(RECALL_DEPTH)
            .filter(|id| grade(id) > 0.0)
            .count();
        self.sum.recall50 += share(found, grades.len());
        self.sum.first += f64::from(u8::from(list.first().is_some_and(|id| grade(id) > 0.0)));
        self.queries += 1;
    }

    /// The averages.
    pub(crate) fn figures(&self) -> Figures {
        let queries = f64::from(self.queries.max(1));
        Figures {
            ndcg10: self.sum.ndcg10 / queries,
            recall50: self.sum.recall50 / queries,
            first: self.sum.first / queries,
        }
    }
}

fn gain(grades: impl Iterator<Item = f64>) -> f64 {
    let discounts = (2_u32..).map(|place| f64::from(place).log2());
    grades
        .take(NDCG_DEPTH)
        .zip(discounts)
        .map(|(grade, discount)| grade / discount)
        .sum()
}

#[expect(clippy::cast_precision_loss, reason = "counts of documents")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(list: &[&str], grades: &[(&str, f64)]) -> Figures {
        let list: Vec<String> = list.iter().map(|id| (*id).to_owned()).collect();
        let grades = grades
            .iter()
            .map(|(id, grade)| ((*id).to_owned(), *grade))
            .collect();
        let mut judged = Judged::default();
        judged.add(&list, &grades);
        judged.figures()
    }

    #[test]
    fn the_best_order_is_worth_1() {
        let figures = judged(&["b", "a", "x"], &[("a", 1.0), ("b", 3.0)]);
        assert!((figures.ndcg10 - 1.0).abs() < 1e-12);
        assert!((figures.recall50 - 1.0).abs() < 1e-12);
        assert!((figures.first - 1.0).abs() < 1e-12);
    }

    #[test]
    fn one_at_the_second_place() {
        let figures = judged(&["x", "a"], &[("a", 1.0), ("gone", 1.0)]);
        // (1 / log2 3) / (1 / log2 2 + 1 / log2 3)
        assert!((figures.ndcg10 - 0.386_852_807_234_541_6).abs() < 1e-12);
        assert!((figures.recall50 - 0.5).abs() < 1e-12);
        assert!(figures.first.abs() < 1e-12);
    }

    #[test]
    fn nothing_found_is_worth_nothing() {
        let figures = judged(&[], &[("a", 1.0)]);
        assert!((figures.ndcg10 + figures.recall50 + figures.first).abs() < 1e-12);
    }
}
