//! Looking for the nearest rows.

use super::code::{QueryCode, differing, weighed};
use super::rows::{Block, Rows};
use super::top::{Near, Top};
use crate::limits::{EXACT_ROWS_MAX, RESCORED_ROWS_MIN, RESCORED_ROWS_PER_RESULT};
use crate::numbers::NumberSet;

/// Stands for the distance of a row that is not looked at.
const LEFT_OUT: u16 = u16::MAX;

/// The `depth` rows nearest to the query among those that are admitted, nearest first.
pub(super) fn nearest(
    rows: &Rows,
    query: &QueryCode,
    admitted: Option<&NumberSet>,
    depth: usize,
) -> Vec<Near> {
    let mut top = Top::new(depth);
    match admitted {
        Some(admitted) if rows.len() > EXACT_ROWS_MAX && admitted.len() <= EXACT_ROWS_MAX => {
            few(rows, query, admitted, &mut top);
        }
        _ if rows.len() <= EXACT_ROWS_MAX => all(rows, query, admitted, &mut top),
        _ => by_signs(rows, query, admitted, depth, &mut top),
    }
    let mut found = top.finish();
    for near in &mut found {
        near.score = query.cosine(near.score);
    }
    found
}

/// Compares with the admitted rows one by one: they are few.
fn few(rows: &Rows, query: &QueryCode, admitted: &NumberSet, top: &mut Top) {
    for row in admitted.iter().filter_map(|number| rows.get(number)) {
        if row.scale >= 0.0 {
            top.push(row.number, weighed(query, row.scale, row.codes));
        }
    }
}

/// Compares with every row.
fn all(rows: &Rows, query: &QueryCode, admitted: Option<&NumberSet>, top: &mut Top) {
    let dimensions = rows.dimensions();
    let mut weights = Vec::new();
    for block in &rows.blocks {
        weigh(block, query, dimensions, &mut weights);
        for ((number, scale), weight) in block.numbers.iter().zip(&block.scales).zip(&weights) {
            if *scale >= 0.0 && admitted.is_none_or(|admitted| admitted.contains(*number)) {
                top.push(*number, *weight);
            }
        }
    }
}

/// What each row of a block weighs, with the widest registers that the machine has.
fn weigh(block: &Block, query: &QueryCode, dimensions: usize, weights: &mut Vec<f32>) {
    weights.clear();
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            let rows = block.codes.chunks_exact(dimensions).zip(&block.scales);
            weights.extend(rows.map(|(codes, scale)| weighed(query, *scale, codes)));
        },
    );
}

/// Compares signs with every row, and codes with those whose signs differ least.
fn by_signs(rows: &Rows, query: &QueryCode, admitted: Option<&NumberSet>, depth: usize, top: &mut Top) {
    let distances = distances(rows, query, admitted);
    let wanted = depth
        .saturating_mul(RESCORED_ROWS_PER_RESULT)
        .max(RESCORED_ROWS_MIN);
    let most = farthest(&distances, rows.dimensions(), wanted);
    let mut distances = distances.iter();
    for block in &rows.blocks {
        // All rows at the last distance are taken: the answer does not hang on the order of rows.
        let near = (0..block.numbers.len())
            .zip(distances.by_ref())
            .filter(|(_, distance)| **distance <= most);
        let near = near.filter_map(|(at, _)| block.row(at, rows.dimensions()));
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for row in near {
                    top.push(row.number, weighed(query, row.scale, row.codes));
                }
            },
        );
    }
}

/// How many signs of each row differ from the query's.
fn distances(rows: &Rows, query: &QueryCode, admitted: Option<&NumberSet>) -> Vec<u16> {
    let words = rows.words();
    let mut distances = Vec::with_capacity(rows.len());
    for block in &rows.blocks {
        let start = distances.len();
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                let counts = block.signs.chunks_exact(words);
                distances.extend(
                    counts.map(|row| u16::try_from(differing(&query.signs, row)).unwrap_or(LEFT_OUT)),
                );
            },
        );
        let judged = distances
            .iter_mut()
            .skip(start)
            .zip(&block.numbers)
            .zip(&block.scales);
        for ((distance, number), scale) in judged {
            if *scale < 0.0 || admitted.is_some_and(|admitted| !admitted.contains(*number)) {
                *distance = LEFT_OUT;
            }
        }
    }
    distances
}

/// The least distance that `wanted` rows keep within.
fn farthest(distances: &[u16], dimensions: usize, wanted: usize) -> u16 {
    let mut counts = vec![0_usize; dimensions + 1];
    for distance in distances {
        if let Some(count) = counts.get_mut(usize::from(*distance)) {
            *count += 1;
        }
    }
    let mut within = 0;
    for (distance, count) in (0_u16..).zip(&counts) {
        within += count;
        if within >= wanted {
            return distance;
        }
    }
    u16::try_from(dimensions).unwrap_or(LEFT_OUT - 1)
}
