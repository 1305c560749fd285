//! Rows in memory: blocks of vectors, dense, found by number.

use std::collections::HashMap;

use super::TextHash;
use super::code::{BLANK, Code, signs};

/// Rows of a block: growing copies one block at most.
const BLOCK_ROWS: usize = 4096;

/// Row counts at which the mean is taken anew. By the last of them it has settled.
const MEAN_ROWS: [usize; 3] = [64, 1_024, 16_384];

/// Some rows, column by column.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub numbers: Vec<u64>,
    pub scales: Vec<f32>,
    /// `dimensions` to a row.
    pub codes: Vec<i8>,
    /// [`Rows::words`] to a row.
    pub signs: Vec<u64>,
    hashes: Vec<TextHash>,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub number: u64,
    pub hash: TextHash,
    pub scale: f32,
    pub codes: &'a [i8],
}

/// All rows of a space.
#[derive(Debug)]
pub(super) struct Rows {
    pub mean: Vec<f32>,
    pub blocks: Vec<Block>,
    places: HashMap<u64, u32>,
}

impl Rows {
    pub(super) fn new(dimensions: usize) -> Self {
        Self {
            mean: vec![0.0; dimensions],
            blocks: Vec::new(),
            places: HashMap::new(),
        }
    }

    pub(super) fn dimensions(&self) -> usize {
        self.mean.len()
    }

    /// Words of signs to a row.
    pub(super) fn words(&self) -> usize {
        self.dimensions().div_ceil(64)
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Adds a row in place of one with its number.
    pub(super) fn put(&mut self, number: u64, hash: TextHash, code: &Code) {
        self.remove(number);
        let Ok(place) = u32::try_from(self.len()) else {
            return;
        };
        if self.len() == self.blocks.len() * BLOCK_ROWS {
            self.blocks.push(Block::default());
        }
        if let Some(block) = self.blocks.last_mut() {
            block.numbers.push(number);
            block.hashes.push(hash);
            block.scales.push(code.scale);
            block.codes.extend_from_slice(&code.codes);
            signs(&code.codes, &mut block.signs);
            self.places.insert(number, place);
        }
    }

    /// Takes a row away and puts the last one into its place. False where there was none.
    pub(super) fn remove(&mut self, number: u64) -> bool {
        let Some(place) = self.places.remove(&number) else {
            return false;
        };
        let (dimensions, words) = (self.dimensions(), self.words());
        let Some(mut last) = self.blocks.pop() else {
            return false;
        };
        let moved = last.take_last(dimensions, words);
        if !last.numbers.is_empty() {
            self.blocks.push(last);
        }
        if let Some(moved) = moved
            && moved.number != number
        {
            self.places.insert(moved.number, place);
            let (block, at) = split(place);
            if let Some(block) = self.blocks.get_mut(block) {
                block.set(at, moved, dimensions, words);
            }
        }
        true
    }

    pub(super) fn get(&self, number: u64) -> Option<Row<'_>> {
        let (block, at) = split(*self.places.get(&number)?);
        self.blocks.get(block)?.row(at, self.dimensions())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        let dimensions = self.dimensions();
        let rows = move |block: &'_ Block| block.numbers.len();
        self.blocks
            .iter()
            .flat_map(move |block| (0..rows(block)).filter_map(move |at| block.row(at, dimensions)))
    }

    /// Whether growing from `before` rows to what there are now asks for a new mean.
    pub(super) fn wants_mean(&self, before: usize) -> bool {
        MEAN_ROWS.iter().any(|rows| before < *rows && self.len() >= *rows)
    }

    /// Takes the mean of all rows and codes them around it.
    pub(super) fn recentre(&mut self) {
        let mut sums = vec![0.0_f64; self.dimensions()];
        let mut count = 0.0_f64;
        for row in self.iter().filter(|row| row.scale >= 0.0) {
            count += 1.0;
            for ((sum, code), mean) in sums.iter_mut().zip(row.codes).zip(&self.mean) {
                *sum += f64::from(*mean) + f64::from(row.scale) * f64::from(*code);
            }
        }
        if count == 0.0 {
            return;
        }
        let old = std::mem::replace(&mut self.mean, sums.iter().map(|sum| narrow(sum / count)).collect());
        for block in &mut self.blocks {
            block.recode(&old, &self.mean);
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a mean of 32-bit floats")]
fn narrow(value: f64) -> f32 {
    value as f32
}

/// Block and place in it.
fn split(place: u32) -> (usize, usize) {
    let place = usize::try_from(place).unwrap_or(usize::MAX);
    (place / BLOCK_ROWS, place % BLOCK_ROWS)
}

/// A row on its way to another place.
#[derive(Debug)]
struct Moved {
    number: u64,
    hash: TextHash,
    scale: f32,
    codes: Vec<i8>,
    signs: Vec<u64>,
}

impl Block {
    pub(super) fn row(&self, at: usize, dimensions: usize) -> Option<Row<'_>> {
        Some(Row {
            number: *self.numbers.get(at)?,
            hash: *self.hashes.get(at)?,
            scale: *self.scales.get(at)?,
            codes: self.codes.get(at * dimensions..(at + 1) * dimensions)?,
        })
    }

    fn take_last(&mut self, dimensions: usize, words: usize) -> Option<Moved> {
        let codes = self.codes.len().checked_sub(dimensions)?;
        let signs = self.signs.len().checked_sub(words)?;
        Some(Moved {
            number: self.numbers.pop()?,
            hash: self.hashes.pop()?,
            scale: self.scales.pop()?,
            codes: self.codes.split_off(codes),
            signs: self.signs.split_off(signs),
        })
    }

    fn set(&mut self, at: usize, row: Moved, dimensions: usize, words: usize) {
        put(&mut self.numbers, at, row.number);
        put(&mut self.hashes, at, row.hash);
        put(&mut self.scales, at, row.scale);
        if let Some(codes) = self.codes.get_mut(at * dimensions..(at + 1) * dimensions) {
            codes.copy_from_slice(&row.codes);
        }
        if let Some(signs) = self.signs.get_mut(at * words..(at + 1) * words) {
            signs.copy_from_slice(&row.signs);
        }
    }

    fn recode(&mut self, old: &[f32], new: &[f32]) {
        self.signs.clear();
        for (scale, codes) in self.scales.iter_mut().zip(self.codes.chunks_exact_mut(old.len())) {
            if *scale >= 0.0 {
                // About the vector: one coding more is less than the coding itself.
                let code = Code::of(&Code::vector(*scale, codes, old), new);
                if code.scale > BLANK {
                    *scale = code.scale;
                    codes.copy_from_slice(&code.codes);
                }
            }
            signs(codes, &mut self.signs);
        }
    }
}

fn put<T>(column: &mut [T], at: usize, value: T) {
    if let Some(slot) = column.get_mut(at) {
        *slot = value;
    }
}
