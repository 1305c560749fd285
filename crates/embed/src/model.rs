//! What a model does: text to pieces, pieces to vectors. No threads, no waiting.

pub(crate) mod e5;
pub(crate) mod files;
mod ops;
mod pieces;
pub(crate) mod universal;
mod weights;

use std::fmt::Display;

use aip_catalog::{EmbedError, Purpose};

/// A model that has been loaded.
pub(crate) trait Model: Send + Sync {
    /// The pieces of a text with the marks the model wants around them; at most
    /// [`TEXT_PIECES_MAX`](crate::limits::TEXT_PIECES_MAX).
    fn pieces(&self, purpose: Purpose, text: &str) -> Result<Vec<u32>, EmbedError>;

    /// A vector of length 1 for each text. What one text becomes does not depend on its neighbours.
    fn vectors(&self, texts: &[Vec<u32>]) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// A model or a file that cannot be used, with the reason.
fn broken(reason: impl Display) -> EmbedError {
    EmbedError::Broken(reason.to_string())
}

/// Makes the vector's length 1; one without any length stays as it is.
pub(crate) fn normalise(vector: &mut [f32]) {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        for x in vector {
            *x /= length;
        }
    }
}

#[cfg(test)]
mod tests;
