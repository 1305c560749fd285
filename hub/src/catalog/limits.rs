//! The bounds of a listing (spec §9). Longer ones are refused, not cut.

/// Bytes of a listing on the wire.
pub const LISTING_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a `listing_id`.
pub const LISTING_ID_BYTES_MAX: usize = 128;

/// Bytes of a name.
pub const NAME_BYTES_MAX: usize = 512;

/// Bytes of a description.
pub const DESCRIPTION_BYTES_MAX: usize = 32 * 1024;

/// Bytes of a language (BCP 47).
pub const LANG_BYTES_MAX: usize = 35;

/// Tags of a listing.
pub const TAGS_MAX: usize = 64;

/// Bytes of a tag.
pub const TAG_BYTES_MAX: usize = 128;

/// Attributes of a listing.
pub const ATTRIBUTES_MAX: usize = 128;

/// Bytes of an attribute's name.
pub const ATTRIBUTE_NAME_BYTES_MAX: usize = 64;

/// Bytes of an attribute's text.
pub const ATTRIBUTE_TEXT_BYTES_MAX: usize = 1_024;

/// Levels of arrays and objects in a listing, the listing itself the first.
pub const LISTING_LEVELS_MAX: usize = 24;

/// The highest version that a row of a provider can name, half of what JSON can: its agent can always sign a higher one.
pub const ROW_VERSION_MAX: u64 = 1 << 52;

/// Rows of a provider that are stored in one step.
pub const INGEST_STEP_ROWS: usize = 200;

/// Suspect listings that are looked at in one step.
pub const SUSPECTS_PAGE: u32 = 200;

/// Bytes of a feed that is read at once (products, capabilities); larger ones go to `/api/v1/ingest/listings`, line by line.
pub const FEED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes of a shop's name at its registration.
pub const SHOP_NAME_BYTES_MAX: usize = 128;

/// Bytes of the address of a shop's website.
pub const SHOP_WEBSITE_BYTES_MAX: usize = 512;

/// Bytes of what a shop says about itself.
pub const SHOP_DESCRIPTION_BYTES_MAX: usize = 2_000;

/// Names that are tried for a shop that does not choose one.
pub const SHOP_NAMES_MAX: usize = 4;
