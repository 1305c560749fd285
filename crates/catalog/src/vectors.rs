//! The list by meaning: the vectors of listings, one [`Space`] for each embedder.
//!
//! A vector is kept as one signed byte per dimension around a mean, with a scale of its own: that keeps the order
//! (`q·v - q·mean` is `q·(v - mean)`) and spends the byte's range on what tells vectors apart. The mean is that of a few
//! fixed texts, so that a code hangs on nothing but embedder and text, whenever and wherever it is made. Up to
//! [`EXACT_ROWS_MAX`](crate::limits::EXACT_ROWS_MAX) rows are all compared; above, the signs of the dimensions choose
//! those that are. What a filter does not admit is left out before the best are chosen, never after.
//!
//! Memory for a listing, in bytes: one for each dimension, an eighth of that for signs where there are many listings, 28 for
//! number, scale and the hash of its text, and about 30 for finding it by number: 490 for 384 dimensions, 640 for 512. The
//! file takes 33 and the code.

mod code;
mod log;
mod probes;
mod rows;
mod scan;
mod space;
mod top;

pub use probes::PROBES;
pub use space::{NewVector, Space};
pub use top::Near;

/// What tells whether a text is the one that was embedded: the first half of its SHA-256.
pub type TextHash = [u8; 16];

#[cfg(test)]
mod tests;
