//! The bounds of the catalog.

/// Digits before the point of a price.
pub const PRICE_WHOLE_DIGITS_MAX: usize = 11;

/// Digits after the point of a price.
pub const PRICE_FRACTION_DIGITS_MAX: usize = 8;

/// Bytes of a query's text; a longer one is refused.
pub const QUERY_BYTES_MAX: usize = 8 * 1024;

/// Different terms of a query that are looked for; the rest only counts for its meaning.
pub const QUERY_TERMS_MAX: usize = 128;

/// Places of each list that are fused, at least (spec §9).
pub const LEG_DEPTH_MIN: usize = 200;

/// Results on one page.
pub const PAGE_RESULTS_MAX: u32 = 100;

/// Changes that are taken from the source at once.
pub const CHANGES_AT_ONCE_MAX: usize = 1_000;

/// Bytes of a query that the text list reads.
pub const TEXT_QUERY_BYTES_MAX: usize = QUERY_BYTES_MAX;

/// Words of a query that the text list reads; the different ones of them are at most [`QUERY_TERMS_MAX`].
pub const TEXT_QUERY_PARTS_MAX: usize = 512;

/// Bytes of one text of a listing that are read.
pub const TEXT_LISTING_BYTES_MAX: usize = 64 * 1024;

/// Words of one text of a listing that are read.
pub const TEXT_LISTING_PARTS_MAX: usize = 10_000;

/// Letters of a word; the rest of it is not looked at.
pub const TEXT_LETTERS_MAX: usize = 64;

/// Bytes from which a text's language is told.
pub const TEXT_DETECT_BYTES_MAX: usize = 1024;

/// Rows up to which every vector is compared with the query: 5 ms.
pub const EXACT_ROWS_MAX: usize = 50_000;

/// Rows whose codes are compared, at least, where their signs are compared first.
pub const RESCORED_ROWS_MIN: usize = 5_000;

/// Rows whose codes are compared for each result that is wanted.
pub const RESCORED_ROWS_PER_RESULT: usize = 25;

/// Numbers in a vector.
pub const VECTOR_DIMENSIONS_MAX: usize = 8_192;

/// Bytes of an embedder's id.
pub const EMBEDDER_ID_BYTES_MAX: usize = 128;

/// Codes of a query that are looked for.
pub const TEXT_CODES_MAX: usize = 32;

/// A last word that so many listings hold is not taken to be the beginning of another.
pub const TEXT_COMMON_HITS: u64 = 20;

/// Words that are guessed for one that was typed: so many that it begins, and so many that differ by a slip.
pub const TEXT_GUESSES_MAX: usize = 8;

/// Words of one segment that are looked at for guesses.
pub const TEXT_GUESS_STEPS_MAX: usize = 512;

/// Bytes that the writer of the full-text index takes at least while it is at work.
pub const TEXT_WRITER_BYTES_MIN: usize = 15_000_000;

/// Listings of a part of the full-text index that is small: small ones are merged whatever their sizes. It bounds how often the
/// same listings are written anew while few come in with each commit.
pub const TEXT_SMALL_PART: u32 = 1_000;

/// Values of one facet that are counted.
pub const FACET_VALUES_MAX: usize = 20;

/// Bytes of a listing's id in a cursor.
pub const CURSOR_ID_BYTES_MAX: usize = 128;

/// How often a list of results is made four times deeper as pages go on; then it ends.
pub const LIST_LEVEL_MAX: u8 = 3;

/// Places of each list that are fused, at most.
pub const LEG_DEPTH_MAX: usize = 10_000;

/// Bytes of lists of results that are kept for the next page.
pub const LISTS_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// How long a list of results is kept for the next page.
pub const LISTS_KEPT_SECS: u64 = 600;

/// Bytes of queries' vectors that are kept.
pub const QUERY_VECTORS_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Queries that are being embedded at once; one more goes by text alone.
pub const QUERIES_EMBEDDED_AT_ONCE_MAX: usize = 64;

/// Failures in a row after which an embedder is left alone for [`EMBEDDER_REST_SECS`].
pub const EMBEDDER_FAILURES_MAX: u32 = 3;

/// How long queries go by text alone after an embedder failed repeatedly.
pub const EMBEDDER_REST_SECS: u64 = 5;

/// Searches that run or wait; one more is refused.
pub const SEARCHES_WAITING_MAX: usize = 1_024;

/// Bytes of a listing's text that are embedded: models read no further.
pub const PASSAGE_BYTES_MAX: usize = 4 * 1024;

/// Attributes of a listing that are embedded.
pub const PASSAGE_ATTRIBUTES_MAX: usize = 8;

/// Bytes of an attribute that is embedded; a longer one is left out.
pub const PASSAGE_ATTRIBUTE_BYTES_MAX: usize = 64;

/// Listings that wait for an embedder in memory, 24 bytes each; further ones are read from the source again.
pub const EMBEDDINGS_WAITING_MAX: usize = 100_000;

/// Listings that are embedded at once.
pub const EMBEDDED_AT_ONCE_MAX: usize = 256;

/// Bytes of listings, about, that are committed at once while an index is built anew.
pub const COMMITTED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Time from one commit to the next while changes come in, in milliseconds; a commit that takes longer is followed at once.
pub const COMMIT_INTERVAL_MILLIS: u64 = 250;

/// Jobs that wait for a thread of the catalog; whoever has one more waits until there is room.
pub const JOBS_WAITING_MAX: usize = 16;

/// Steps by which the thread that takes listings up gives way to searches, see [`give_way`](crate::give_way): it has a quarter
/// of a processor that is wanted by both.
pub const TAKING_UP_STEPS: i32 = 5;

/// Steps by which the thread gives way that keeps vectors: what is found by its text waits for none.
pub const EMBEDDING_STEPS: i32 = 10;

/// Time after which the source is asked although nobody said that it changed, in milliseconds.
pub const POLL_INTERVAL_MILLIS: u64 = 1_000;

/// Time after which a source or an embedder that failed is asked again, in milliseconds; it doubles up to a minute.
pub const RETRY_MILLIS: u64 = 1_000;
