//! Vectors as bytes, and queries that are compared with them.

/// The widest value of a byte's code.
const CODE_MAX: f32 = 127.0;

/// What stands for the scale of a vector without any content: it is near to nothing.
pub(super) const BLANK: f32 = -1.0;

/// A vector around the mean: `mean + scale * codes`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Code {
    /// [`BLANK`] for a vector of zeros.
    pub scale: f32,
    /// One for each dimension.
    pub codes: Vec<i8>,
}

impl Code {
    /// The nearest code. A vector of another length than the mean, or with what is no number in it, is blank.
    pub(super) fn of(vector: &[f32], mean: &[f32]) -> Self {
        let blank = || Self {
            scale: BLANK,
            codes: vec![0; mean.len()],
        };
        let is_sound = vector.len() == mean.len() && vector.iter().all(|value| value.is_finite());
        if !is_sound || vector.iter().all(|value| *value == 0.0) {
            return blank();
        }
        let rest = || vector.iter().zip(mean).map(|(value, mean)| value - mean);
        let widest = rest().fold(0.0_f32, |widest, value| widest.max(value.abs()));
        if !widest.is_finite() {
            return blank();
        }
        let scale = widest / CODE_MAX;
        let codes = rest().map(|value| rounded(value / scale)).collect();
        Self { scale, codes }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "clamped to what a byte takes; NaN becomes 0"
)]
fn rounded(value: f32) -> i8 {
    value.round().clamp(-CODE_MAX, CODE_MAX) as i8
}

/// Signs, 64 to a word: a bit is set where a part is positive.
pub(super) fn signs(parts: impl Iterator<Item = f32>, words: &mut Vec<u64>) {
    let (mut word, mut filled) = (0_u64, 0_u32);
    for part in parts {
        word |= u64::from(part > 0.0) << filled;
        filled += 1;
        if filled == 64 {
            words.push(std::mem::take(&mut word));
            filled = 0;
        }
    }
    if filled > 0 {
        words.push(word);
    }
}

/// A query, ready to be compared with codes.
#[derive(Debug, Clone)]
pub(super) struct QueryCode {
    /// The query in whole numbers, so small that no product sum leaves 32 bits.
    pub codes: Vec<i16>,
    /// What one of them is worth.
    pub scale: f32,
    /// Its product with the mean.
    pub base: f32,
    /// Its signs around the pivot, where rows have signs.
    pub signs: Vec<u64>,
}

impl QueryCode {
    /// None for a query of another length than the mean, or without any content.
    pub(super) fn of(query: &[f32], mean: &[f32], pivot: Option<&[f32]>) -> Option<Self> {
        if query.len() != mean.len() || !query.iter().all(|value| value.is_finite()) {
            return None;
        }
        let widest = query
            .iter()
            .fold(0.0_f32, |widest, value| widest.max(value.abs()));
        if widest == 0.0 {
            return None;
        }
        let scale = widest / code_max(query.len());
        let mut words = Vec::new();
        if let Some(pivot) = pivot {
            let parts = query.iter().zip(mean).zip(pivot);
            signs(
                parts.map(|((value, mean), pivot)| value - mean - pivot),
                &mut words,
            );
        }
        Some(Self {
            codes: query.iter().map(|value| widened(value / scale)).collect(),
            scale,
            base: query.iter().zip(mean).map(|(value, mean)| value * mean).sum(),
            signs: words,
        })
    }

    /// The cosine of query and row, about.
    pub(super) fn cosine(&self, weighed: f32) -> f32 {
        self.base + self.scale * weighed
    }
}

/// The widest code of a query of so many dimensions: `dimensions * 127 * code` stays within 31 bits.
#[expect(
    clippy::cast_precision_loss,
    reason = "at most 32,767, which a float of 24 bits holds exactly"
)]
fn code_max(dimensions: usize) -> f32 {
    let most = usize::try_from(i32::MAX).unwrap_or(usize::MAX) / 128 / dimensions.max(1);
    most.clamp(1, 32_767) as f32
}

#[expect(clippy::cast_possible_truncation, reason = "clamped to what 16 bits take")]
fn widened(value: f32) -> i16 {
    value.round().clamp(-32_767.0, 32_767.0) as i16
}

/// The product sum of query and row.
#[expect(
    clippy::inline_always,
    reason = "it is compiled into loops that are built for wider registers"
)]
#[inline(always)]
pub(super) fn dot(query: &[i16], row: &[i8]) -> i32 {
    let products = query.iter().zip(row);
    products
        .map(|(query, row)| i32::from(*query) * i32::from(*row))
        .fold(0_i32, i32::wrapping_add)
}

/// What a row weighs for a query: the product sum in units of the row.
#[expect(clippy::inline_always, reason = "as `dot`")]
#[expect(
    clippy::cast_precision_loss,
    reason = "seven digits are more than the codes hold"
)]
#[inline(always)]
pub(super) fn weighed(query: &QueryCode, scale: f32, row: &[i8]) -> f32 {
    scale * dot(&query.codes, row) as f32
}

/// How many signs differ.
#[expect(clippy::inline_always, reason = "as `dot`")]
#[inline(always)]
pub(super) fn differing(query: &[u64], row: &[u64]) -> u32 {
    let words = query.iter().zip(row);
    words.map(|(query, row)| (query ^ row).count_ones()).sum()
}
