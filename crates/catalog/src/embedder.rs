//! What turns text into vectors: a model in this process, or one behind HTTP.

use async_trait::async_trait;

/// What a text is. Some models are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// What people look for.
    Query,
    /// What is to be found.
    Passage,
}

/// No vectors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// It may work later: no answer, a time-out, too much to do.
    #[error("the embedder does not answer: {0}")]
    Unavailable(String),
    /// It will not work: another dimension, a refused key, a model that cannot be read.
    #[error("the embedder cannot be used: {0}")]
    Broken(String),
}

/// Turns texts into vectors of length 1; equal meaning, near vectors.
#[async_trait]
pub trait Embedder: Send + Sync + std::fmt::Debug {
    /// Names the model and its form; vectors of different ids are never compared. Short, of `[a-z0-9._-]`.
    fn id(&self) -> &str;

    /// Numbers in each vector.
    fn dimensions(&self) -> usize;

    /// Texts that are best given at once.
    fn batch_max(&self) -> usize;

    /// A vector for each text, in order, each of length 1 (or all zero for a text without any content). It never blocks the
    /// thread that asks.
    async fn embed(&self, purpose: Purpose, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError>;
}
