//! Foreign lists of capabilities and products, read into offers: pure text in, rows with a report each out.
//!
//! | format | what it is | a row is named by |
//! |---|---|---|
//! | [`Format::Manifest`] | JSON: an `AIMarket` manifest, MCP `tools/list`, a list of functions, listings as objects, one a line too | `listing_id`, product and capability, `id`, `name` |
//! | [`Format::JsonLd`] | schema.org `Product`s, also in `@graph`, in lists, in web pages, with `Offer`s | `sku`, `gtin`, `productID`, `mpn`, `@id`, `url` |
//! | [`Format::Csv`] | a table with a header: `,` `;` tab or `\|`, quotes, a byte order mark | its id, SKU, GTIN or MPN column |
//! | [`Format::Merchant`] | a Google-Merchant-style feed: RSS 2.0 or Atom with `g:` members | `g:id`, `g:gtin`, `g:mpn` |
//!
//! Nothing is guessed that could be wrong: a price that may be read in two ways, a `$` that may be one of twenty
//! currencies, a row without a name are said, with what to do, and the other rows are still read. What is only left out is a
//! note. Prices are decimal text from the file to the hub; no float is ever made of them.
//!
//! The same row gives the same offer every time, under the same `listing_id`: its own id, or, where it has none, a hash of its
//! name. Importing a file twice therefore changes nothing.

mod json;
mod jsonld;
mod manifest;
mod merchant;
mod page;
mod price;
mod row;
mod table;
#[cfg(test)]
mod tests;
mod words;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use aip_protocol::listing::{ListingKind, Offer};

use crate::limits::{IMPORT_BYTES_MAX, IMPORT_ROWS_MAX};

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// A list of capabilities in JSON.
    Manifest,
    /// schema.org products in JSON-LD.
    JsonLd,
    /// A table of products.
    Csv,
    /// A Google-Merchant-style feed in XML.
    Merchant,
}

impl Format {
    /// As the command line names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::JsonLd => "jsonld",
            Self::Csv => "csv",
            Self::Merchant => "merchant",
        }
    }

    /// What the text looks like: JSON with members that begin with `@`, and a page that holds such, is JSON-LD, other JSON a
    /// manifest, what else begins with `<` a feed, and anything else a table.
    pub fn detect(bytes: &[u8]) -> Self {
        let text = decode(bytes).unwrap_or_default();
        let is_ld = || {
            [&b"\"@type\""[..], b"\"@graph\"", b"\"@context\""]
                .iter()
                .any(|name| contains(&text, name))
        };
        match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{' | b'[') if is_ld() => Self::JsonLd,
            Some(b'{' | b'[') => Self::Manifest,
            Some(b'<') if contains(&text, page::JSON_LD.as_bytes()) => Self::JsonLd,
            Some(b'<') => Self::Merchant,
            _ => Self::Csv,
        }
    }
}

/// What the file does not say of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The currency of prices that name none: three upper-case letters.
    pub currency: Option<String>,
    /// The language of rows that name none (BCP 47).
    pub lang: Option<String>,
    /// What kind of thing each row offers; by default capabilities in a manifest, products elsewhere.
    pub kind: Option<ListingKind>,
    /// In the prices of tables and feeds, the comma is the decimal point and the point groups thousands.
    pub decimal_comma: bool,
    /// In the prices of tables, the point is the decimal point, also before three digits; in feeds and JSON it always is.
    pub decimal_point: bool,
    /// What separates the columns of a table; by default what its header uses most of `,` `;` tab and `|`.
    pub separator: Option<u8>,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Import {
    /// What it was read as.
    pub format: Format,
    /// Its rows, in their order.
    pub rows: Vec<Row>,
}

/// One row of a file, good or not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// Its number among the rows, from 1; the header of a table is none.
    pub number: usize,
    /// The line of the file that it begins on, where that is known.
    pub line: Option<u64>,
    /// The id it has, as far as that could be told.
    pub listing_id: Option<String>,
    /// What it offers; `None` when something is wrong with it.
    pub offer: Option<Offer>,
    /// What is wrong. Empty when the row is good.
    pub flaws: Vec<Remark>,
    /// What was left out or is worth a look.
    pub notes: Vec<Remark>,
}

/// A remark on a row.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remark {
    /// The member of the listing, or the column, that it is about.
    pub member: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub todo: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.member, self.what, self.todo)
    }
}

/// Why a file could not be read at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file is too large.
    #[error("the file is longer than {IMPORT_BYTES_MAX} bytes; split it")]
    TooLarge,
    /// It holds too many rows.
    #[error("the file holds more than {IMPORT_ROWS_MAX} rows; split it")]
    TooManyRows,
    /// It is not text.
    #[error("byte {offset} of the file is not UTF-8; save it as UTF-8")]
    NotUtf8 {
        /// Where.
        offset: usize,
    },
    /// It is not what it was taken for.
    #[error("this cannot be read as {}: {why}", format.as_str())]
    Malformed {
        /// What it was taken for.
        format: Format,
        /// What is wrong, and where.
        why: String,
    },
}

/// Reads a file; without a format, as what it looks like.
///
/// # Errors
/// Only for what makes the whole file unreadable; what is wrong with a row is said in the row.
pub fn read(bytes: &[u8], format: Option<Format>, options: &Options) -> Result<Import, ImportError> {
    if bytes.len() > IMPORT_BYTES_MAX {
        return Err(ImportError::TooLarge);
    }
    let format = format.unwrap_or_else(|| Format::detect(bytes));
    let bytes = decode(bytes)?;
    // JSON has one way to write a number, and schema.org asks for it in text too.
    let is_json = matches!(format, Format::Manifest | Format::JsonLd);
    let options = &Options {
        decimal_comma: options.decimal_comma && !is_json,
        decimal_point: options.decimal_point || format != Format::Csv,
        ..options.clone()
    };
    let mut rows = match format {
        Format::Manifest => manifest::read(utf8(&bytes)?, options)?,
        Format::JsonLd => jsonld::read(utf8(&bytes)?, options)?,
        Format::Csv => table::read(&bytes, options)?,
        Format::Merchant => merchant::read(utf8(&bytes)?, options)?,
    };
    refuse_doubles(&mut rows);
    Ok(Import { format, rows })
}

/// UTF-8 without its byte order mark; UTF-16 with one, as spreadsheets write it, is turned into UTF-8.
fn decode(bytes: &[u8]) -> Result<Cow<'_, [u8]>, ImportError> {
    let wide = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, odd) = rest.as_chunks::<2>();
        let text: Result<String, _> = char::decode_utf16(pairs.iter().copied().map(unit)).collect();
        match text {
            Ok(text) if odd.is_empty() => Ok(Cow::Owned(text.into_bytes())),
            _ => Err(ImportError::NotUtf8 { offset: 0 }),
        }
    };
    match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => Ok(Cow::Borrowed(rest)),
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        _ => Ok(Cow::Borrowed(bytes)),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, ImportError> {
    std::str::from_utf8(bytes).map_err(|error| ImportError::NotUtf8 {
        offset: error.valid_up_to(),
    })
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Two rows under one id would take turns in replacing each other.
fn refuse_doubles(rows: &mut [Row]) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for row in rows.iter_mut() {
        let Some(id) = row.offer.as_ref().map(|offer| offer.listing_id.clone()) else {
            continue;
        };
        if let Some(first) = seen.get(&id) {
            row.offer = None;
            row.flaws.push(Remark {
                member: "listing_id".to_owned(),
                what: format!("row {first} has the same"),
                todo: "give each row an id of its own".to_owned(),
            });
        } else {
            seen.insert(id, row.number);
        }
    }
}
