//! The best of many, in room for twice as many as are wanted.

use std::cmp::Ordering;

/// A row that is near to a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    /// The listing's number.
    pub number: u64,
    /// The cosine of query and listing, -1 to 1, to two digits or three.
    pub score: f32,
}

/// Keeps the best `most` of what is pushed; equals go by number, lowest first.
#[derive(Debug)]
pub(super) struct Top {
    most: usize,
    floor: f32,
    kept: Vec<Near>,
}

impl Top {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            floor: f32::NEG_INFINITY,
            kept: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, number: u64, score: f32) {
        // One that equals the last may still come before it by its number.
        if score < self.floor {
            return;
        }
        self.kept.push(Near { number, score });
        if self.kept.len() >= self.most.saturating_mul(2).max(64) {
            self.prune();
        }
    }

    fn prune(&mut self) {
        if self.kept.len() <= self.most {
            return;
        }
        let Some(last) = self.most.checked_sub(1) else {
            return self.kept.clear();
        };
        let (_, at, _) = self.kept.select_nth_unstable_by(last, order);
        self.floor = at.score;
        self.kept.truncate(self.most);
    }

    /// The best, best first.
    pub(super) fn finish(mut self) -> Vec<Near> {
        self.prune();
        self.kept.sort_unstable_by(order);
        self.kept
    }
}

fn order(a: &Near, b: &Near) -> Ordering {
    b.score.total_cmp(&a.score).then(a.number.cmp(&b.number))
}
