//! Tables of products: a header, and a row each. Columns that are not known become attributes.

use aip_protocol::listing::ListingKind;
use csv::{ByteRecord, ReaderBuilder};

use super::row::{IdRank, RowDraft, broken, short};
use super::words::{Column, attribute_name, is_image};
use super::{Format, ImportError, Options, Row};
use crate::limits::{IMPORT_COLUMNS_MAX, IMPORT_ROW_BYTES_MAX, IMPORT_ROWS_MAX};

/// What a column is for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Use {
    Known(Column),
    Attribute(String),
    Nothing,
}

pub(super) fn read(bytes: &[u8], options: &Options) -> Result<Vec<Row>, ImportError> {
    let separator = options.separator.unwrap_or_else(|| separator_of(bytes));
    let mut reader = ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(false)
        .flexible(true)
        .from_reader(bytes);
    let mut record = ByteRecord::new();
    let mut next = move |record: &mut ByteRecord| {
        reader
            .read_byte_record(record)
            .map_err(|error| malformed(error.to_string()))
    };
    if !next(&mut record)? {
        return Err(malformed("it is empty".to_owned()));
    }
    let columns = columns(&record)?;
    let (mut rows, mut start) = (Vec::new(), 0);
    while next(&mut record)? {
        if is_blank(&record) {
            continue;
        }
        start = record.position().map_or(0, csv::Position::byte);
        if rows.len() == IMPORT_ROWS_MAX {
            return Err(ImportError::TooManyRows);
        }
        rows.push(row(&record, rows.len() + 1, &columns, options));
    }
    if rows.is_empty() && ends_inside_quotes(bytes, separator) {
        return Err(malformed(
            "a quote is opened in its first line and never closed".to_owned(),
        ));
    }
    let last = usize::try_from(start).ok().and_then(|start| bytes.get(start..));
    mark_open_quote(last.unwrap_or_default(), separator, &mut rows);
    Ok(rows)
}

fn malformed(why: String) -> ImportError {
    ImportError::Malformed {
        format: Format::Csv,
        why,
    }
}

/// The one that the header holds most of, outside quotes.
fn separator_of(bytes: &[u8]) -> u8 {
    let mut counts = [(b',', 0_usize), (b';', 0), (b'\t', 0), (b'|', 0)];
    let mut is_quoted = false;
    for byte in bytes {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\n' | b'\r' if !is_quoted => break,
            byte => {
                for (_, count) in counts.iter_mut().filter(|(mark, _)| mark == byte && !is_quoted) {
                    *count += 1;
                }
            }
        }
    }
    // Of equals the first is taken; `max_by_key` takes the last.
    counts
        .iter()
        .rev()
        .max_by_key(|(_, count)| *count)
        .map_or(b',', |(mark, _)| *mark)
}

fn columns(header: &ByteRecord) -> Result<Vec<Use>, ImportError> {
    if header.len() > IMPORT_COLUMNS_MAX {
        return Err(malformed(format!(
            "it has more than {IMPORT_COLUMNS_MAX} columns"
        )));
    }
    let mut columns = Vec::with_capacity(header.len());
    for (field, number) in header.iter().zip(1..) {
        let name = std::str::from_utf8(field)
            .map_err(|error| malformed(format!("the name of column {number} is not UTF-8: {error}")))?;
        columns.push(match (Column::named(name), attribute_name(name)) {
            (Some(column), _) => Use::Known(column),
            (None, attribute) if attribute.is_empty() || is_image(name) => Use::Nothing,
            (None, attribute) => Use::Attribute(attribute),
        });
    }
    let is_named = |column| columns.contains(&Use::Known(column));
    if !is_named(Column::Name) {
        let names: Vec<String> = header
            .iter()
            .take(8)
            .map(|field| short(&String::from_utf8_lossy(field)))
            .collect();
        return Err(malformed(format!(
            "the first line names no column `name` or `title`; it reads: {}",
            names.join(" | ")
        )));
    }
    Ok(columns)
}

fn is_blank(record: &ByteRecord) -> bool {
    record.iter().all(|field| field.trim_ascii().is_empty())
}

fn row(record: &ByteRecord, number: usize, columns: &[Use], options: &Options) -> Row {
    let line = record.position().map(csv::Position::line);
    if record.as_slice().len() > IMPORT_ROW_BYTES_MAX {
        let what = format!(
            "it has {} bytes, at most {IMPORT_ROW_BYTES_MAX} are read",
            record.as_slice().len()
        );
        return broken(number, line, what, "is a quote opened in it and never closed?");
    }
    if record.len() != columns.len() {
        let what = format!("it has {} fields, the header {}", record.len(), columns.len());
        return broken(
            number,
            line,
            what,
            "put fields that hold the separator or a quote into quotes",
        );
    }
    let mut draft = RowDraft::new(ListingKind::Product, options);
    for (field, column) in record.iter().zip(columns) {
        match std::str::from_utf8(field) {
            Ok(field) if field.trim().is_empty() => {}
            Ok(field) => take(&mut draft, column, field),
            Err(_) => draft.flaw(name_of(column), "it is not UTF-8", "save the file as UTF-8"),
        }
    }
    draft.finish(number, line)
}

fn name_of(column: &Use) -> &str {
    match column {
        Use::Attribute(name) => name,
        Use::Known(Column::Name) => "name",
        Use::Known(Column::Description) => "description",
        _ => "row",
    }
}

/// One field of a row.
fn take(draft: &mut RowDraft<'_>, column: &Use, field: &str) {
    match column {
        Use::Known(column) => put(draft, *column, field),
        Use::Attribute(name) => draft.attribute_text(name, field),
        Use::Nothing => {}
    }
}

/// What a known column or member of a feed says.
pub(super) fn put(draft: &mut RowDraft<'_>, column: Column, field: &str) {
    match column {
        Column::Id => draft.id(IdRank::Own, field),
        Column::Sku => {
            draft.id(IdRank::Sku, field);
            draft.attribute_text("sku", field);
        }
        Column::Gtin => {
            draft.id(IdRank::Gtin, field);
            draft.attribute_text("gtin", field);
        }
        Column::Mpn => {
            draft.id(IdRank::Mpn, field);
            draft.attribute_text("mpn", field);
        }
        Column::Page => {
            draft.id(IdRank::Page, field);
            draft.attribute_text("url", field);
        }
        Column::Name => draft.name(field),
        Column::Description => draft.description(field),
        Column::Price => draft.price("price", field),
        Column::SalePrice => draft.sale_price(field),
        Column::SaleDates => draft.sale_is_timed(),
        Column::Currency => draft.currency(field),
        Column::Available => draft.availability(field),
        Column::Brand => draft.attribute_text("brand", field),
        Column::Category => draft.attribute_text("category", field),
        Column::Tags => draft.tags(field),
        Column::Lang => draft.lang(field),
        Column::Kind => draft.kind(field),
        Column::Expires => draft.expires_at(field),
    }
}

/// A quote that is never closed takes all that follows into its field: the row that it stands in is the last one.
fn mark_open_quote(last: &[u8], separator: u8, rows: &mut [Row]) {
    if let Some(row) = rows.last_mut().filter(|_| ends_inside_quotes(last, separator)) {
        let lines = last.split(|byte| *byte == b'\n').count();
        *row = broken(
            row.number,
            row.line,
            format!("a quote is opened in it and never closed, which takes in {lines} lines"),
            "close the quote, or write it twice if it belongs to the text",
        );
    }
}

fn ends_inside_quotes(record: &[u8], separator: u8) -> bool {
    let (mut is_inside, mut is_start) = (false, true);
    for byte in record {
        match byte {
            // A quote that is written twice closes and opens again.
            b'"' if is_inside || is_start => is_inside = !is_inside,
            _ => {}
        }
        let ends_field = *byte == separator || matches!(byte, b'\n' | b'\r' | b'"');
        is_start = ends_field && !is_inside;
    }
    is_inside
}
