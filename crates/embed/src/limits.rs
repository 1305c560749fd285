//! The bounds of the embedders.

/// Bytes of a text that a model in this process reads; what follows does not count for its meaning.
pub const TEXT_BYTES_MAX: usize = 8 * 1024;

/// Pieces of a text that a model in this process reads, its marks of begin and end among them.
pub const TEXT_PIECES_MAX: usize = 512;

/// Pieces that go through a model at once. A query waits for no more than that many pieces of passages.
pub const STEP_PIECES_MAX: usize = 512;

/// Texts in one call of a model in this process that are best given at once.
pub const LOCAL_BATCH_TEXTS: usize = 32;

/// Texts in one call of a model in this process.
pub const LOCAL_TEXTS_MAX: usize = 1_024;

/// Calls for queries that wait for a model in this process; another one is told so.
pub const QUERY_CALLS_MAX: usize = 256;

/// Calls for passages that wait for a model in this process; another one is told so.
pub const PASSAGE_CALLS_MAX: usize = 64;

/// Threads of one model in this process.
pub const THREADS_MAX: usize = 64;

/// Bytes of a model's file after it was unpacked.
pub const MODEL_BYTES_MAX: usize = 256 * 1024 * 1024;
