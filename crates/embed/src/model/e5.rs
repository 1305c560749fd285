//! multilingual-e5-small: a BERT of twelve layers whose matrices are in `Q4_0`. Its file is described in
//! `models/multilingual-e5-small-q4-67k/README.md`.

use aip_catalog::{EmbedError, Purpose};
use bytes::Bytes;
use candle_core::{IndexOp, Result, Tensor};

use super::files::ModelFiles;
use super::ops::{Norm, add, for_rows, gelu, number, softmax, tensor};
use super::pieces::Pieces;
use super::weights::{Q4_BYTES, Q4_WEIGHTS, Weights, q4_into, unpack};
use super::{Model, broken, normalise};
use crate::limits::TEXT_PIECES_MAX;

/// Numbers in a vector, and in each place of a text.
pub(crate) const WIDTH: usize = 384;

const WORDS: usize = 67_000;
const PLACES: usize = 512;
const LAYERS: usize = 12;
const HEADS: usize = 12;
const HEAD_WIDTH: usize = WIDTH / HEADS;
const INNER_WIDTH: usize = 1_536;
const WORD_BYTES: usize = WIDTH / Q4_WEIGHTS * Q4_BYTES;
const EPS: f32 = 1e-12;

/// The marks of begin and end.
const BEGIN: u32 = 0;
const END: u32 = 2;
/// These, the filler and the blank.
const MARKS: &[u32] = &[BEGIN, 1, END, 66_999];

/// The model.
pub(crate) struct E5 {
    pieces: Pieces,
    /// A row of `Q4_0` blocks for each piece.
    words: Bytes,
    /// A row for each place in a text; what the model adds to all of them is in it.
    places: Vec<f32>,
    first_norm: Norm,
    layers: Vec<Layer>,
}

impl E5 {
    /// Reads the model; about half a second.
    pub(crate) fn load(files: &ModelFiles) -> std::result::Result<Self, EmbedError> {
        let pieces = Pieces::load(&files.tokenizer.read()?, WORDS, MARKS)?;
        let file = unpack(files.model.read()?)?;
        let weights = Weights::read(&file)?;
        let kind = weights.floats("emb.type", 2 * WIDTH)?;
        let mut places = weights.floats("emb.pos", PLACES * WIDTH)?;
        for row in places.chunks_exact_mut(WIDTH) {
            add(row, kind.get(..WIDTH).unwrap_or_default());
        }
        Ok(Self {
            pieces,
            words: weights.bytes("emb.word", WORDS * WORD_BYTES)?,
            places,
            first_norm: norm(&weights, "emb.ln")?,
            layers: (0..LAYERS)
                .map(|number| Layer::read(&weights, number))
                .collect::<std::result::Result<_, _>>()?,
        })
    }

    /// All places of all texts, one below the other.
    fn forward(&self, texts: &[Vec<u32>]) -> Result<Tensor> {
        let count: usize = texts.iter().map(Vec::len).sum();
        let mut rows = Vec::with_capacity(count * WIDTH);
        for text in texts {
            for (word, place) in text.iter().zip(self.places.chunks_exact(WIDTH)) {
                let from = rows.len();
                let at = *word as usize * WORD_BYTES;
                q4_into(self.words.get(at..at + WORD_BYTES).unwrap_or_default(), &mut rows);
                add(rows.get_mut(from..).unwrap_or_default(), place);
            }
        }
        let mut x = tensor(rows, [count, WIDTH])?;
        for_rows(&x, |row| self.first_norm.apply(row))?;
        let lengths: Vec<usize> = texts.iter().map(Vec::len).collect();
        for layer in &self.layers {
            x = layer.forward(&x, &lengths)?;
        }
        Ok(x)
    }
}

impl Model for E5 {
    fn pieces(&self, purpose: Purpose, text: &str) -> std::result::Result<Vec<u32>, EmbedError> {
        let text = match purpose {
            Purpose::Query => format!("query: {text}"),
            Purpose::Passage => format!("passage: {text}"),
        };
        let mut pieces = vec![BEGIN];
        pieces.extend(self.pieces.of(&text, TEXT_PIECES_MAX.min(PLACES) - 2)?);
        pieces.push(END);
        Ok(pieces)
    }

    fn vectors(&self, texts: &[Vec<u32>]) -> std::result::Result<Vec<Vec<f32>>, EmbedError> {
        let rows = self
            .forward(texts)
            .and_then(|x| x.flatten_all()?.to_vec1::<f32>());
        let rows = rows.map_err(broken)?;
        let mut rows = rows.chunks_exact(WIDTH);
        let vectors = texts.iter().map(|text| {
            let mut vector = vec![0.0; WIDTH];
            rows.by_ref()
                .take(text.len())
                .for_each(|row| add(&mut vector, row));
            normalise(&mut vector);
            vector
        });
        Ok(vectors.collect())
    }
}

struct Layer {
    /// Query, key and value, one beside the other.
    qkv: Linear,
    attended: Linear,
    attended_norm: Norm,
    up: Linear,
    down: Linear,
    norm: Norm,
}

impl Layer {
    fn read(weights: &Weights<'_>, number: usize) -> std::result::Result<Self, EmbedError> {
        let name = |part: &str| format!("l{number}.{part}");
        let (q, k, v) = (name("q"), name("k"), name("v"));
        Ok(Self {
            qkv: Linear::read(weights, &[&q, &k, &v], WIDTH, WIDTH)?,
            attended: Linear::read(weights, &[&name("ao")], WIDTH, WIDTH)?,
            attended_norm: norm(weights, &name("aln"))?,
            up: Linear::read(weights, &[&name("fi")], INNER_WIDTH, WIDTH)?,
            down: Linear::read(weights, &[&name("fo")], WIDTH, INNER_WIDTH)?,
            norm: norm(weights, &name("oln"))?,
        })
    }

    fn forward(&self, x: &Tensor, lengths: &[usize]) -> Result<Tensor> {
        let qkv = self.qkv.times(x)?;
        for_rows(&qkv, |row| add(row, &self.qkv.bias))?;
        let attended = self.attended.times(&attention(&qkv, lengths)?)?;
        let x = (x + attended)?;
        for_rows(&x, |row| {
            add(row, &self.attended.bias);
            self.attended_norm.apply(row);
        })?;
        let inner = self.up.times(&x)?;
        for_rows(&inner, |row| {
            add(row, &self.up.bias);
            gelu(row);
        })?;
        let x = (x + self.down.times(&inner)?)?;
        for_rows(&x, |row| {
            add(row, &self.down.bias);
            self.norm.apply(row);
        })?;
        Ok(x)
    }
}

/// Within each text, each place takes from the places that answer it.
fn attention(qkv: &Tensor, lengths: &[usize]) -> Result<Tensor> {
    let scale = 1.0 / number(HEAD_WIDTH).sqrt();
    let mut start = 0;
    let mut texts = Vec::with_capacity(lengths.len());
    for length in lengths {
        let text = qkv.narrow(0, start, *length)?;
        start += length;
        // From (place, q or k or v, head, number) to (q or k or v, head, place, number).
        let text = text.reshape((*length, 3, HEADS, HEAD_WIDTH))?;
        let text = text.permute((1, 2, 0, 3))?.contiguous()?;
        let scores = text.i(0)?.matmul(&text.i(1)?.t()?)?;
        for_rows(&scores, |row| {
            for x in row.iter_mut() {
                *x *= scale;
            }
            softmax(row);
        })?;
        let taken = scores.matmul(&text.i(2)?)?;
        texts.push(taken.transpose(0, 1)?.reshape((*length, WIDTH))?);
    }
    Tensor::cat(&texts, 0)
}

struct Linear {
    /// A column for each number that comes out: so it is multiplied as it lies, and not packed anew each time.
    weight: Tensor,
    bias: Vec<f32>,
}

impl Linear {
    /// One or more matrices of the same shape, one below the other, with their biases.
    fn read(
        weights: &Weights<'_>,
        names: &[&str],
        rows: usize,
        columns: usize,
    ) -> std::result::Result<Self, EmbedError> {
        let mut weight = Vec::new();
        let mut bias = Vec::new();
        for name in names {
            weight.extend(weights.q4(&format!("{name}.w"), rows * columns)?);
            bias.extend(weights.floats(&format!("{name}.b"), rows)?);
        }
        let weight = tensor(weight, [names.len() * rows, columns]);
        let weight = weight
            .and_then(|weight| weight.t()?.contiguous())
            .map_err(broken)?;
        Ok(Self { weight, bias })
    }

    /// Without the bias: that is added where the next thing is done to each row.
    fn times(&self, x: &Tensor) -> Result<Tensor> {
        x.matmul(&self.weight)
    }
}

fn norm(weights: &Weights<'_>, name: &str) -> std::result::Result<Norm, EmbedError> {
    Ok(Norm {
        gain: weights.floats(&format!("{name}.w"), WIDTH)?,
        bias: weights.floats(&format!("{name}.b"), WIDTH)?,
        eps: EPS,
    })
}
