//! What can fail in the catalog. What a caller asked wrongly is a refusal, not one of these.

/// The index could not be read, written or understood.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The disk, or the files on it.
    #[error("the catalog's files: {0}")]
    Files(#[from] std::io::Error),
    /// The full-text index.
    #[error("the full-text index: {0}")]
    Text(String),
    /// The vectors.
    #[error("the vectors: {0}")]
    Vectors(String),
    /// The store of listings.
    #[error(transparent)]
    Source(#[from] crate::source::SourceError),
}
