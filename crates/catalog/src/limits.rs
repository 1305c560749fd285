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
