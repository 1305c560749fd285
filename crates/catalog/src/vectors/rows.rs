//! Rows in memory: blocks of vectors, dense, found by number.

use std::collections::HashMap;

use super::TextHash;
use super::code::{Code, signs};
use crate::limits::EXACT_ROWS_MAX;

/// Rows of a block: growing copies one block at most.
const BLOCK_ROWS: usize = 4096;

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
    /// What codes are counted from. It never changes while there are rows, so that equal vectors have equal codes.
    pub mean: Vec<f32>,
    /// What signs are counted from: about the mean of the rows around `mean`. Only where there are so many rows that signs
    /// are of use.
    pub pivot: Option<Vec<f32>>,
    pub blocks: Vec<Block>,
    places: HashMap<u64, u32>,
}

impl Rows {
    pub(super) fn new(dimensions: usize) -> Self {
        Self {
            mean: vec![0.0; dimensions],
            pivot: None,
            blocks: Vec::new(),
            places: HashMap::new(),
        }
    }

    pub(super) fn dimensions(&self) -> usize {
        self.mean.len()
    }

    /// Words of signs to a row; 0 where rows have none.
    pub(super) fn words(&self) -> usize {
        self.pivot.as_ref().map_or(0, |pivot| pivot.len().div_ceil(64))
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
            if let Some(pivot) = &self.pivot {
                signs(row_parts(code.scale, &code.codes, pivot), &mut block.signs);
            }
            self.places.insert(number, place);
        }
        if self.pivot.is_none() && self.len() > EXACT_ROWS_MAX {
            self.sign();
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
                block.set(at, &moved, dimensions, words);
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

    /// Gives signs to all rows.
    fn sign(&mut self) {
        let mut sums = vec![0.0_f64; self.dimensions()];
        let mut count = 0.0_f64;
        for row in self.iter().filter(|row| row.scale >= 0.0) {
            count += 1.0;
            for (sum, code) in sums.iter_mut().zip(row.codes) {
                *sum += f64::from(row.scale) * f64::from(*code);
            }
        }
        let pivot: Vec<f32> = sums.iter().map(|sum| narrow(sum / count.max(1.0))).collect();
        for block in &mut self.blocks {
            let rows = block.scales.iter().zip(block.codes.chunks_exact(pivot.len()));
            rows.for_each(|(scale, codes)| signs(row_parts(*scale, codes, &pivot), &mut block.signs));
        }
        self.pivot = Some(pivot);
    }
}

/// What a row is around the pivot.
fn row_parts(scale: f32, codes: &[i8], pivot: &[f32]) -> impl ExactSizeIterator<Item = f32> {
    codes
        .iter()
        .zip(pivot)
        .map(move |(code, pivot)| scale * f32::from(*code) - pivot)
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

    fn set(&mut self, at: usize, row: &Moved, dimensions: usize, words: usize) {
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
}

fn put<T>(column: &mut [T], at: usize, value: T) {
    if let Some(slot) = column.get_mut(at) {
        *slot = value;
    }
}
