//! Text to the numbers of its pieces.

use aip_catalog::EmbedError;
use tokenizers::Tokenizer;

use super::broken;
use crate::limits::TEXT_BYTES_MAX;

/// The pieces that a model knows.
pub(super) struct Pieces {
    tokenizer: Tokenizer,
    /// Rows of the model.
    rows: usize,
    /// The pieces that stand for begin, end and the like: ours to set. A text that spells one out is read without it.
    marks: &'static [u32],
}

impl Pieces {
    /// Reads a `tokenizer.json`.
    pub(super) fn load(bytes: &[u8], rows: usize, marks: &'static [u32]) -> Result<Self, EmbedError> {
        let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(broken)?;
        tokenizer.set_encode_special_tokens(true);
        Ok(Self {
            tokenizer,
            rows,
            marks,
        })
    }

    /// The numbers of the first pieces of a text, at most `pieces_max`, without any marks.
    pub(super) fn of(&self, text: &str, pieces_max: usize) -> Result<Vec<u32>, EmbedError> {
        let end = text.floor_char_boundary(TEXT_BYTES_MAX);
        let text = text.get(..end).unwrap_or(text);
        let encoding = self.tokenizer.encode_fast(text, false).map_err(broken)?;
        let ids = encoding.get_ids().iter().copied();
        let ids: Vec<u32> = ids
            .filter(|id| !self.marks.contains(id))
            .take(pieces_max)
            .collect();
        match ids.iter().find(|id| **id as usize >= self.rows) {
            Some(id) => Err(broken(format_args!("piece {id} has no row in the model"))),
            None => Ok(ids),
        }
    }
}
