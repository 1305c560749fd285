//! Feeds as merchants give them to Google: RSS 2.0 or Atom, with members of the namespace `g:` or without one.
//!
//! A document type is refused unread, so that no entity can be declared: the five of XML and characters by number are all
//! there is.

use aip_protocol::listing::ListingKind;
use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::row::{RowDraft, broken, short};
use super::table::put;
use super::words::{Column, attribute_name, is_image};
use super::{Format, ImportError, Options, Row};
use crate::limits::{IMPORT_LEVELS_MAX, IMPORT_ROW_BYTES_MAX, IMPORT_ROWS_MAX};

/// Attributes of a tag that are looked at.
const TAG_ATTRIBUTES_MAX: usize = 16;

/// One member of an item: its name, and the name of the member that it lies in, if it does.
#[derive(Debug, Default)]
struct Field {
    name: String,
    inside: Option<String>,
    text: String,
}

/// Where the reader stands.
#[derive(Debug, Default)]
struct Feed {
    /// Names of the open elements.
    open: Vec<String>,
    /// How many were open when the item began.
    item_at: Option<usize>,
    fields: Vec<Field>,
    bytes: usize,
    /// Entities that nobody declared.
    unknown: Vec<String>,
}

pub(super) fn read(text: &str, options: &Options) -> Result<Vec<Row>, ImportError> {
    let mut reader = Reader::from_str(text);
    let mut feed = Feed::default();
    let mut rows = Vec::new();
    loop {
        let event = reader
            .read_event()
            .map_err(|error| malformed(format!("{error}, at byte {}", reader.error_position())))?;
        match event {
            Event::Start(tag) => feed.enter(&tag)?,
            Event::Empty(tag) => {
                feed.enter(&tag)?;
                feed.leave();
            }
            Event::End(_) => {
                if feed.leave() {
                    if rows.len() == IMPORT_ROWS_MAX {
                        return Err(ImportError::TooManyRows);
                    }
                    rows.push(feed.row(rows.len() + 1, options));
                }
            }
            Event::Text(text) => feed.take(&text.xml10_content()),
            Event::CData(text) => feed.take(&text.xml10_content()),
            Event::GeneralRef(reference) => feed.refer(&reference),
            Event::DocType(declared) => return Err(malformed(document_type(&declared).to_owned())),
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) => {}
            Event::Eof => break,
        }
    }
    match feed.open.last() {
        Some(name) => Err(malformed(format!("it ends inside <{}>", short(name)))),
        None if rows.is_empty() => Err(malformed("it holds neither <item> nor <entry>".to_owned())),
        None => Ok(rows),
    }
}

fn malformed(why: String) -> ImportError {
    ImportError::Malformed {
        format: Format::Merchant,
        why,
    }
}

fn document_type(declared: &str) -> &'static str {
    if declared.trim_start().to_ascii_lowercase().starts_with("html") {
        return "it is a web page, not a feed";
    }
    "it declares a document type, which is not read; take the DOCTYPE out"
}

impl Feed {
    fn enter(&mut self, tag: &BytesStart<'_>) -> Result<(), ImportError> {
        if self.open.len() >= IMPORT_LEVELS_MAX {
            return Err(malformed(format!(
                "it is nested deeper than {IMPORT_LEVELS_MAX} levels"
            )));
        }
        let name = tag.local_name().as_ref().to_ascii_lowercase();
        if self.item_at.is_none() && matches!(name.as_str(), "item" | "entry") {
            self.item_at = Some(self.open.len());
        } else if self.item_at.is_some() {
            let inside = (self.level() > 0).then(|| self.open.last().cloned()).flatten();
            let text = href(tag).filter(|_| name == "link").unwrap_or_default();
            self.bytes += name.len() + text.len();
            self.begin(Field {
                name: name.clone(),
                inside,
                text,
            });
        }
        self.open.push(name);
        Ok(())
    }

    /// How deep below the item's own members the reader stands.
    fn level(&self) -> usize {
        self.item_at
            .map_or(0, |at| self.open.len().saturating_sub(at + 1))
    }

    fn begin(&mut self, field: Field) {
        if self.bytes <= IMPORT_ROW_BYTES_MAX {
            self.fields.push(field);
        }
    }

    /// True when an item ends.
    fn leave(&mut self) -> bool {
        self.open.pop();
        self.item_at == Some(self.open.len())
    }

    /// Text belongs to the member that was begun last, if that is still open.
    fn take(&mut self, text: &str) {
        if self.item_at.is_none() || self.level() == 0 {
            return;
        }
        self.bytes += text.len();
        let open = self.open.last();
        if let Some(field) = self.fields.last_mut().filter(|field| Some(&field.name) == open)
            && self.bytes <= IMPORT_ROW_BYTES_MAX
        {
            field.text.push_str(text);
        }
    }

    fn refer(&mut self, reference: &BytesRef<'_>) {
        match (reference.resolve_char_ref(), resolve_xml_entity(reference)) {
            (Ok(Some(character)), _) => self.take(character.encode_utf8(&mut [0; 4])),
            (Ok(None), Some(text)) => self.take(text),
            _ if self.item_at.is_some() && self.unknown.is_empty() => self.unknown.push(short(reference)),
            _ => {}
        }
    }

    fn row(&mut self, number: usize, options: &Options) -> Row {
        let feed = std::mem::take(self);
        self.open = feed.open;
        if feed.bytes > IMPORT_ROW_BYTES_MAX {
            let what = format!(
                "it has {} bytes, at most {IMPORT_ROW_BYTES_MAX} are read",
                feed.bytes
            );
            return broken(number, None, what, "shorten it");
        }
        let mut draft = RowDraft::new(ListingKind::Product, options);
        for name in &feed.unknown {
            draft.flaw(
                "row",
                format!("&{name}; is not an entity of XML"),
                "write the character itself, or its number",
            );
        }
        for field in &feed.fields {
            put_field(&mut draft, field);
        }
        details(&mut draft, &feed.fields);
        draft.finish(number, None)
    }
}

fn put_field(draft: &mut RowDraft<'_>, field: &Field) {
    if field.inside.is_some() || field.text.trim().is_empty() {
        return;
    }
    match Column::named(&field.name) {
        // A feed has its own `description`, `summary` and `content`.
        Some(column) => put(draft, column, &field.text),
        None if matches!(field.name.as_str(), "summary" | "content") => draft.description(&field.text),
        None if field.name == "google_product_category" => draft.attribute_text("category", &field.text),
        None if is_image(&field.name) => {}
        None => draft.attribute_text(&attribute_name(&field.name), &field.text),
    }
}

/// `product_detail` names an attribute and its value.
fn details(draft: &mut RowDraft<'_>, fields: &[Field]) {
    let mut name = None;
    for field in fields
        .iter()
        .filter(|field| field.inside.as_deref() == Some("product_detail"))
    {
        match field.name.as_str() {
            "attribute_name" => name = Some(attribute_name(&field.text)),
            "attribute_value" => {
                if let Some(name) = name.take() {
                    draft.attribute_text(&name, &field.text);
                }
            }
            _ => {}
        }
    }
}

/// The address of an Atom link.
fn href(tag: &BytesStart<'_>) -> Option<String> {
    let mut attributes = tag.attributes();
    // Looking for doubles takes the square of their number.
    attributes.with_checks(false);
    let address = attributes
        .take(TAG_ATTRIBUTES_MAX)
        .flatten()
        .find(|attribute| attribute.key.as_ref() == "href")?;
    let address = address.normalized_value(XmlVersion::Implicit1_0).ok()?;
    Some(address.into_owned())
}
