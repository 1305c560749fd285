//! A bare scan of vectors of one byte a dimension, and one that looks at signs first.

use super::bare::TOP;
use super::meaning::Recombined;

/// Rows whose bytes are compared after signs were, for each result.
const RESCORED_PER_RESULT: usize = 100;

/// The widest byte.
const CODE_MAX: f32 = 127.0;

/// Vectors around the mean of the probes, row by row.
pub(super) struct Rows {
    dimensions: usize,
    mean: Vec<f32>,
    codes: Vec<i8>,
    scales: Vec<f32>,
    signs: Vec<u64>,
}

impl Rows {
    pub(super) fn new(of: &Recombined) -> Self {
        let mut mean: Vec<f32> = Vec::new();
        let mut count = 0.0_f32;
        for probe in of.probes() {
            mean.resize(probe.len(), 0.0);
            mean.iter_mut().zip(probe).for_each(|(sum, part)| *sum += part);
            count += 1.0;
        }
        for sum in &mut mean {
            *sum /= count.max(1.0);
        }
        Self {
            dimensions: mean.len(),
            mean,
            codes: Vec::new(),
            scales: Vec::new(),
            signs: Vec::new(),
        }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, vector: &[f32]) {
        let rest: Vec<f32> = vector
            .iter()
            .zip(&self.mean)
            .map(|(part, mean)| part - mean)
            .collect();
        let widest = rest
            .iter()
            .fold(f32::MIN_POSITIVE, |widest, part| widest.max(part.abs()));
        let scale = widest / CODE_MAX;
        self.codes.extend(rest.iter().map(|part| byte(part / scale)));
        self.scales.push(scale);
        self.signs.extend(signs(&rest));
    }

    /// The nearest rows: every one is compared.
    pub(super) fn exact(&self, query: &[f32]) -> Vec<(f32, usize)> {
        let query = codes(query);
        let mut scores = vec![0.0_f32; self.scales.len()];
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                let rows = self.codes.chunks_exact(self.dimensions).zip(&self.scales);
                for (score, (row, scale)) in scores.iter_mut().zip(rows) {
                    *score = scale * dot(&query, row);
                }
            },
        );
        best(scores.into_iter().zip(0..))
    }

    /// The nearest rows among those whose signs differ least.
    pub(super) fn by_signs(&self, query: &[f32]) -> Vec<(f32, usize)> {
        let rest: Vec<f32> = query
            .iter()
            .zip(&self.mean)
            .map(|(part, mean)| part - mean)
            .collect();
        let (words, query) = (signs(&rest), codes(query));
        let mut distances = vec![0_u32; self.scales.len()];
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for (distance, row) in distances.iter_mut().zip(self.signs.chunks_exact(words.len())) {
                    *distance = words.iter().zip(row).map(|(a, b)| (a ^ b).count_ones()).sum();
                }
            },
        );
        let farthest = within(&distances, self.dimensions, TOP * RESCORED_PER_RESULT);
        let rows = self
            .codes
            .chunks_exact(self.dimensions)
            .zip(&self.scales)
            .zip(0..);
        let near = rows
            .zip(&distances)
            .filter(|(_, distance)| **distance <= farthest);
        let mut scores = Vec::new();
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || scores.extend(near.map(|(((row, scale), place), _)| (scale * dot(&query, row), place))),
        );
        best(scores.into_iter())
    }
}

/// The distance that `wanted` rows keep within.
fn within(distances: &[u32], dimensions: usize, wanted: usize) -> u32 {
    let mut counts = vec![0_usize; dimensions + 1];
    for distance in distances {
        if let Some(count) = counts.get_mut(*distance as usize) {
            *count += 1;
        }
    }
    let mut sum = 0;
    (0_u32..)
        .zip(counts)
        .find(|(_, count)| {
            sum += count;
            sum >= wanted
        })
        .map_or(u32::MAX, |(distance, _)| distance)
}

/// The best few: kept in room for twice as many, the rest is let go whenever that is full.
fn best(rows: impl Iterator<Item = (f32, usize)>) -> Vec<(f32, usize)> {
    let order = |a: &(f32, usize), b: &(f32, usize)| b.0.total_cmp(&a.0);
    let mut kept: Vec<(f32, usize)> = Vec::with_capacity(2 * TOP);
    let mut floor = f32::NEG_INFINITY;
    for row in rows {
        if row.0 <= floor {
            continue;
        }
        kept.push(row);
        if kept.len() == 2 * TOP {
            let (_, last, _) = kept.select_nth_unstable_by(TOP - 1, order);
            floor = last.0;
            kept.truncate(TOP);
        }
    }
    kept.sort_unstable_by(order);
    kept.truncate(TOP);
    kept
}

#[expect(
    clippy::inline_always,
    reason = "it is compiled into loops for wider registers"
)]
#[expect(clippy::cast_precision_loss, reason = "codes hold fewer digits")]
#[inline(always)]
fn dot(query: &[i16], row: &[i8]) -> f32 {
    let products = query.iter().zip(row).map(|(a, b)| i32::from(*a) * i32::from(*b));
    products.fold(0_i32, i32::wrapping_add) as f32
}

fn signs(parts: &[f32]) -> Vec<u64> {
    let word = |parts: &[f32]| {
        let bits = parts.iter().zip(0_u32..);
        bits.fold(0_u64, |word, (part, bit)| word | u64::from(*part > 0.0) << bit)
    };
    parts.chunks(64).map(word).collect()
}

/// A query in whole numbers, so small that their products fit.
#[expect(clippy::cast_possible_truncation, reason = "within 16 bits")]
fn codes(query: &[f32]) -> Vec<i16> {
    let widest = query
        .iter()
        .fold(f32::MIN_POSITIVE, |widest, part| widest.max(part.abs()));
    query
        .iter()
        .map(|part| (part / widest * 8_191.0).round() as i16)
        .collect()
}

#[expect(clippy::cast_possible_truncation, reason = "within a byte")]
fn byte(part: f32) -> i8 {
    part.round().clamp(-CODE_MAX, CODE_MAX) as i8
}
