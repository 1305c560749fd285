//! The fields of the full-text index.

use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, NumericOptions, STORED, STRING, Schema, TextFieldIndexing,
    TextOptions,
};

/// Raised with every change of the fields; an index of another number is built anew.
pub(super) const VERSION: u32 = 2;

/// Names of the columns that are read by name.
pub(super) mod column {
    pub(in crate::text) const NUMBER: &str = "number";
    pub(in crate::text) const ID: &str = "id";
    pub(in crate::text) const AGENT: &str = "agent";
    pub(in crate::text) const KIND: &str = "kind";
    pub(in crate::text) const CATEGORY: &str = "category";
    pub(in crate::text) const BRAND: &str = "brand";
    pub(in crate::text) const CURRENCY: &str = "currency";
    pub(in crate::text) const LANG: &str = "lang";
    pub(in crate::text) const DOMAIN: &str = "domain";
    pub(in crate::text) const PRICE: &str = "price";
    pub(in crate::text) const UPDATED_AT: &str = "updated_at";
    pub(in crate::text) const EXPIRES_AT: &str = "expires_at";
}

/// All fields.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    pub(super) schema: Schema,
    /// Stems, and pairs of letters of scripts without spaces.
    pub(super) words: Field,
    /// Words unstemmed, with their places.
    pub(super) forms: Field,
    /// Codes, joined.
    pub(super) codes: Field,
    /// Three letters of what holds a digit.
    pub(super) grams: Field,
    /// The name as a whole.
    pub(super) name: Field,
    pub(super) number: Field,
    pub(super) id: Field,
    pub(super) agent: Field,
    pub(super) kind: Field,
    pub(super) category: Field,
    pub(super) brand: Field,
    pub(super) currency: Field,
    pub(super) lang: Field,
    pub(super) domain: Field,
    /// `yes` or `no`.
    pub(super) available: Field,
    /// `key=value`.
    pub(super) attributes: Field,
    pub(super) price: Field,
    pub(super) updated_at: Field,
    pub(super) expires_at: Field,
    /// The whole listing.
    pub(super) entry: Field,
}

impl Fields {
    pub(super) fn new() -> Self {
        let mut builder = Schema::builder();
        let label = STRING | FAST;
        let unsigned = NumericOptions::default().set_fast();
        Self {
            words: builder.add_text_field("words", terms(IndexRecordOption::WithFreqs)),
            forms: builder.add_text_field("forms", terms(IndexRecordOption::WithFreqsAndPositions)),
            codes: builder.add_text_field("codes", terms(IndexRecordOption::WithFreqs)),
            grams: builder.add_text_field("grams", terms(IndexRecordOption::WithFreqs)),
            name: builder.add_text_field("name", STRING),
            number: builder.add_u64_field(column::NUMBER, unsigned.clone() | INDEXED),
            id: builder.add_text_field(column::ID, label.clone()),
            agent: builder.add_text_field(column::AGENT, label.clone()),
            kind: builder.add_text_field(column::KIND, label.clone()),
            category: builder.add_text_field(column::CATEGORY, label.clone()),
            brand: builder.add_text_field(column::BRAND, label.clone()),
            currency: builder.add_text_field(column::CURRENCY, label.clone()),
            lang: builder.add_text_field(column::LANG, label.clone()),
            domain: builder.add_text_field(column::DOMAIN, label),
            available: builder.add_text_field("available", STRING),
            attributes: builder.add_text_field("attributes", STRING),
            price: builder.add_u64_field(column::PRICE, unsigned),
            updated_at: builder.add_i64_field(column::UPDATED_AT, NumericOptions::default().set_fast()),
            expires_at: builder.add_i64_field(column::EXPIRES_AT, NumericOptions::default().set_fast()),
            entry: builder.add_text_field("entry", STORED),
            schema: builder.build(),
        }
    }
}

/// A field whose terms we make ourselves.
fn terms(record: IndexRecordOption) -> TextOptions {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(super::terms::NAME)
        .set_index_option(record);
    TextOptions::default().set_indexing_options(indexing)
}
