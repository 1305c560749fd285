//! The bounds of the embedders.

use std::time::Duration;

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

/// Texts in one call of a model behind HTTP; they are sent in batches.
pub const HTTP_TEXTS_MAX: usize = 1_024;

/// Texts in one request to a server.
pub const HTTP_BATCH_TEXTS_MAX: usize = 256;

/// Bytes of a text that are sent to a server.
pub const HTTP_TEXT_BYTES_MAX: usize = 32 * 1024;

/// Numbers in a vector of a server.
pub const HTTP_DIMENSIONS_MAX: usize = 8_192;

/// Bytes of a model's name.
pub const MODEL_NAME_BYTES_MAX: usize = 256;

/// Bytes of what is put before a text.
pub const PREFIX_BYTES_MAX: usize = 1_024;

/// Bytes of a number in a server's answer, with what separates it from the next.
pub const NUMBER_BYTES_MAX: usize = 40;

/// Bytes of a server's refusal that are read.
pub const HTTP_REFUSAL_BYTES_MAX: usize = 16 * 1024;

/// How long connecting to a server may take.
pub const HTTP_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Calls for queries that are with a server at once; others wait.
pub const HTTP_QUERY_CALLS_MAX: usize = 16;

/// Calls for passages that are with a server at once; others wait.
pub const HTTP_PASSAGE_CALLS_MAX: usize = 2;

/// How often a server is asked for the vectors of a query.
pub const QUERY_ATTEMPTS_MAX: u32 = 2;

/// How often a server is asked for the vectors of a batch of passages.
pub const PASSAGE_ATTEMPTS_MAX: u32 = 4;

/// The pause between two attempts for a query, at most. A server that wants more is not asked again.
pub const QUERY_WAIT_MAX: Duration = Duration::from_millis(200);

/// The pause between two attempts for passages, at most, whatever the server asks for.
pub const PASSAGE_WAIT_MAX: Duration = Duration::from_secs(10);

/// How often a text that a server finds too long is halved.
pub const SHORTENED_MAX: u32 = 4;
