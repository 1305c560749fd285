//! The multilingual universal sentence encoder 3: the mean of what three windows over the text see, through a small network.
//! Its file is described in `models/use-multilingual-v3-84k/README.md`.

use aip_catalog::{EmbedError, Purpose};
use bytes::Bytes;
use candle_core::{Result, Tensor};

use super::files::ModelFiles;
use super::ops::{Norm, add, for_rows, number, relu, tensor};
use super::pieces::Pieces;
use super::weights::{Weights, unpack};
use super::{Model, broken, normalise};
use crate::limits::TEXT_PIECES_MAX;

/// Numbers in a vector, and for each piece.
pub(crate) const WIDTH: usize = 512;

const PIECES: usize = 84_000;
/// Rows of the table have one of so many scales.
const SCALES: usize = 17;
/// Numbers for each place in one branch.
const BRANCH: usize = 256;
/// Places that a branch sees at once, and how many of them are to the left.
const WINDOWS: [(usize, usize); 3] = [(2, 0), (3, 1), (5, 2)];
const BRANCHES: usize = WINDOWS.len();
/// Numbers for each place: itself and the three branches.
const SEEN: usize = WIDTH + BRANCHES * BRANCH;
const HIDDEN: usize = 320;

/// The marks of begin and end.
const BEGIN: u32 = 1;
const END: u32 = 2;

/// The model.
pub(crate) struct Universal {
    pieces: Pieces,
    /// A row of 512 bytes for each piece.
    table: Bytes,
    /// Which scale a row has.
    scale_of: Bytes,
    scales: Vec<f32>,
    lows: Vec<f32>,
    /// What each place is for each branch, beside each other.
    projection: Tensor,
    projection_bias: Vec<f32>,
    projection_norm: Norm,
    branches: [Branch; BRANCHES],
    seen_norm: Norm,
    seen: Tensor,
    seen_bias: Vec<f32>,
    deep: Deep,
}

impl Universal {
    /// Reads the model; about half a second.
    pub(crate) fn load(files: &ModelFiles) -> std::result::Result<Self, EmbedError> {
        let pieces = Pieces::load(&files.tokenizer.read()?, PIECES, &[BEGIN, END])?;
        let file = unpack(files.model.read()?)?;
        let weights = Weights::read(&file)?;
        let eps = weights.floats("eps", 1)?.first().copied().unwrap_or_default();
        let joined = |name: &str| -> std::result::Result<Vec<f32>, EmbedError> {
            let parts = WINDOWS.map(|(n, _)| weights.floats(&format!("{name}{n}"), BRANCH));
            Ok(parts
                .into_iter()
                .collect::<std::result::Result<Vec<_>, _>>()?
                .concat())
        };
        let [two, three, five] = WINDOWS.map(|(places, left)| Branch::read(&weights, places, left));
        Ok(Self {
            pieces,
            table: weights.bytes("table", PIECES * WIDTH)?,
            scale_of: weights.bytes("chunk", PIECES)?,
            scales: weights.floats("scale", SCALES)?,
            lows: weights.floats("lo", SCALES)?,
            projection: projection(&weights)?,
            projection_bias: joined("proj_b")?,
            projection_norm: Norm {
                gain: joined("ln_g")?,
                bias: joined("ln_b")?,
                eps,
            },
            branches: [two?, three?, five?],
            seen_norm: Norm {
                gain: weights.floats("ln_g", SEEN)?,
                bias: weights.floats("ln_b", SEEN)?,
                eps,
            },
            seen: matrix(&weights, "cnn_W", SEEN, WIDTH)?,
            seen_bias: weights.floats("cnn_b", WIDTH)?,
            deep: Deep::read(&weights)?,
        })
    }

    /// Appends the row of a piece.
    fn row_into(&self, piece: u32, rows: &mut Vec<f32>) {
        let at = piece as usize;
        let scale_at = self.scale_of.get(at).copied().map_or(0, usize::from);
        let scale = self.scales.get(scale_at).copied().unwrap_or_default();
        let low = self.lows.get(scale_at).copied().unwrap_or_default();
        let row = self.table.get(at * WIDTH..(at + 1) * WIDTH).unwrap_or_default();
        rows.extend(row.iter().map(|x| f32::from(*x) * scale + low));
    }

    fn forward(&self, texts: &[Vec<u32>]) -> Result<Tensor> {
        let lengths: Vec<usize> = texts.iter().map(Vec::len).collect();
        let count = lengths.iter().sum();
        let mut rows = Vec::with_capacity(count * WIDTH);
        texts
            .iter()
            .flatten()
            .for_each(|piece| self.row_into(*piece, &mut rows));
        let x = tensor(rows, [count, WIDTH])?;
        let projected = x.matmul(&self.projection)?;
        for_rows(&projected, |row| {
            add(row, &self.projection_bias);
            self.projection_norm.apply(row);
        })?;
        let mut seen = vec![x];
        for (number, branch) in self.branches.iter().enumerate() {
            let own = projected.narrow(1, number * BRANCH, BRANCH)?.contiguous()?;
            seen.push(branch.forward(own, &lengths)?);
        }
        let seen = Tensor::cat(&seen, 1)?;
        for_rows(&seen, |row| self.seen_norm.apply(row))?;
        self.deep.forward(&self.sums(&seen, &lengths)?)
    }

    /// The sum over the places of each text, over the root of their number.
    fn sums(&self, seen: &Tensor, lengths: &[usize]) -> Result<Tensor> {
        let rows = seen.flatten_all()?.to_vec1::<f32>()?;
        let mut rows = rows.chunks_exact(SEEN);
        let mut sums = vec![0.0; lengths.len() * SEEN];
        for (sum, length) in sums.chunks_exact_mut(SEEN).zip(lengths) {
            rows.by_ref().take(*length).for_each(|row| add(sum, row));
            let root = number(*length).sqrt();
            for x in sum.iter_mut() {
                *x /= root;
            }
        }
        let mut sums = tensor(sums, [lengths.len(), SEEN])?
            .matmul(&self.seen)?
            .to_vec2::<f32>()?;
        for (sum, length) in sums.iter_mut().zip(lengths) {
            let root = number(*length).sqrt();
            sum.iter_mut()
                .zip(&self.seen_bias)
                .for_each(|(x, bias)| *x += root * bias);
        }
        tensor(sums.concat(), [lengths.len(), WIDTH])
    }
}

impl Model for Universal {
    fn pieces(&self, _purpose: Purpose, text: &str) -> std::result::Result<Vec<u32>, EmbedError> {
        let mut pieces = vec![BEGIN];
        pieces.extend(self.pieces.of(text, TEXT_PIECES_MAX - 2)?);
        pieces.push(END);
        Ok(pieces)
    }

    fn vectors(&self, texts: &[Vec<u32>]) -> std::result::Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = self
            .forward(texts)
            .and_then(|x| x.to_vec2::<f32>())
            .map_err(broken)?;
        for vector in &mut vectors {
            normalise(vector);
        }
        Ok(vectors)
    }
}

/// What a window of so many places sees, twice.
struct Branch {
    places: usize,
    left: usize,
    first: Tensor,
    first_bias: Vec<f32>,
    second: Tensor,
    second_bias: Vec<f32>,
}

impl Branch {
    fn read(weights: &Weights<'_>, places: usize, left: usize) -> std::result::Result<Self, EmbedError> {
        Ok(Self {
            places,
            left,
            first: matrix(weights, &format!("w1_{places}"), places * BRANCH, BRANCH)?,
            first_bias: weights.floats(&format!("b1_{places}"), BRANCH)?,
            second: matrix(weights, &format!("w2_{places}"), places * BRANCH, BRANCH)?,
            second_bias: weights.floats(&format!("b2_{places}"), BRANCH)?,
        })
    }

    fn forward(&self, x: Tensor, lengths: &[usize]) -> Result<Tensor> {
        let h = self.look(&x, lengths, &self.first, &self.first_bias)?;
        let h = (h + x)?;
        self.look(&h, lengths, &self.second, &self.second_bias)? + h
    }

    fn look(&self, x: &Tensor, lengths: &[usize], weight: &Tensor, bias: &[f32]) -> Result<Tensor> {
        let seen = self.windows(x, lengths)?.matmul(weight)?;
        for_rows(&seen, |row| {
            add(row, bias);
            relu(row);
        })?;
        Ok(seen)
    }

    /// For each place its neighbours beside each other; zeros where the text has ended.
    fn windows(&self, x: &Tensor, lengths: &[usize]) -> Result<Tensor> {
        let rows = x.flatten_all()?.to_vec1::<f32>()?;
        let mut rest = rows.as_slice();
        let mut windows = vec![0.0; rows.len() * self.places];
        let mut window = windows.chunks_exact_mut(self.places * BRANCH);
        for length in lengths {
            let (text, after) = rest.split_at(length * BRANCH);
            rest = after;
            for (place, window) in (0..*length).zip(window.by_ref()) {
                for (slot, offset) in window.chunks_exact_mut(BRANCH).zip(0..) {
                    let Some(from) = (place + offset).checked_sub(self.left) else {
                        continue;
                    };
                    if let Some(row) = text.get(from * BRANCH..(from + 1) * BRANCH) {
                        slot.copy_from_slice(row);
                    }
                }
            }
        }
        tensor(windows, [rows.len() / BRANCH, self.places * BRANCH])
    }
}

/// The network after the mean.
struct Deep {
    d0: Tensor,
    d1: Tensor,
    d2: Tensor,
    d3: Tensor,
    p1: Tensor,
    p3: Tensor,
}

impl Deep {
    fn read(weights: &Weights<'_>) -> std::result::Result<Self, EmbedError> {
        Ok(Self {
            d0: matrix(weights, "d0", WIDTH, HIDDEN)?,
            d1: matrix(weights, "d1", HIDDEN, HIDDEN)?,
            d2: matrix(weights, "d2", HIDDEN, WIDTH)?,
            d3: matrix(weights, "d3", WIDTH, WIDTH)?,
            p1: matrix(weights, "p1", WIDTH, HIDDEN)?,
            p3: matrix(weights, "p3", HIDDEN, WIDTH)?,
        })
    }

    fn forward(&self, s: &Tensor) -> Result<Tensor> {
        let y0 = s.matmul(&self.d0)?.relu()?;
        let y1 = (s.matmul(&self.p1)? + y0.matmul(&self.d1)?)?.relu()?;
        let y2 = y1.matmul(&self.d2)?.relu()?;
        (y1.matmul(&self.p3)? + y2.matmul(&self.d3)?)?.tanh()
    }
}

/// The three projections beside each other.
fn projection(weights: &Weights<'_>) -> std::result::Result<Tensor, EmbedError> {
    let parts = WINDOWS.map(|(n, _)| matrix(weights, &format!("proj{n}"), WIDTH, BRANCH));
    let parts = parts.into_iter().collect::<std::result::Result<Vec<_>, _>>()?;
    Tensor::cat(&parts, 1).map_err(broken)
}

fn matrix(
    weights: &Weights<'_>,
    name: &str,
    rows: usize,
    columns: usize,
) -> std::result::Result<Tensor, EmbedError> {
    tensor(weights.floats(name, rows * columns)?, [rows, columns]).map_err(broken)
}
