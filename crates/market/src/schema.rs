//! JSON Schemas of listings: strangers wrote them, so that what a check may cost is known before it is made.

use std::fmt;
use std::sync::{Arc, OnceLock};

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::limits::{CHECK_WORK_MAX, FAULTS_MAX, SCHEMA_BYTES_MAX, SCHEMA_PATTERNS_MAX, TOLD_BYTES_MAX};

mod size;
#[cfg(test)]
mod tests;

/// Memory of one compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 64 * 1024;

/// A schema that can be checked within bounds. Cheap to clone; it is compiled when a value is first checked: compiled it may be a
/// thousand times as large as its document, and most of what is listed is never called.
///
/// Drafts 4 to 2020-12 without what leaves the document or does not end: a `$ref` is `#` and a JSON pointer, and does not come
/// back to itself; `$dynamicRef`, `$recursiveRef`, anchors and ids of parts are not taken, nor patterns that look around.
#[derive(Clone)]
pub struct Schema(Arc<Inner>);

struct Inner {
    value: Value,
    /// Values in it, with every `$ref` followed.
    values: u64,
    usable: OnceLock<bool>,
    compiled: OnceLock<Option<Validator>>,
}

/// Why a schema is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is no object and no boolean.
    #[error("a schema is an object")]
    Form,
    /// It is larger than is taken, or following its references makes it so.
    #[error("the schema is too large")]
    Size,
    /// It points elsewhere, to nothing, or to itself.
    #[error("a reference of the schema is no pointer into it that ends")]
    Reference,
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where: a JSON pointer.
    pub path: String,
    /// What, without the value.
    pub message: String,
}

/// What came of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// It fits.
    Fits,
    /// It does not: some of what is wrong.
    Faulty(Vec<Fault>),
    /// Both are so large together that it is not checked.
    TooLarge,
    /// This is no schema by its own draft.
    NoSchema,
}

impl Schema {
    /// Takes a schema.
    ///
    /// # Errors
    /// It cannot be checked within bounds. Whether its draft allows it shows [`Self::is_usable`].
    pub fn new(value: Value) -> Result<Self, SchemaError> {
        if !value.is_object() && !value.is_boolean() {
            return Err(SchemaError::Form);
        }
        if value.to_string().len() > SCHEMA_BYTES_MAX {
            return Err(SchemaError::Size);
        }
        let values = size::values(&value)?;
        if size::patterns(&value) > SCHEMA_PATTERNS_MAX {
            return Err(SchemaError::Size);
        }
        Ok(Self(Arc::new(Inner {
            value,
            values,
            usable: OnceLock::new(),
            compiled: OnceLock::new(),
        })))
    }

    /// As it is in the listing.
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// Whether it is a schema by its own draft. What was compiled to find that out is not kept.
    pub fn is_usable(&self) -> bool {
        *self.0.usable.get_or_init(|| self.compile().is_some())
    }

    /// What checking a value of so many bytes may come to.
    pub fn work(&self, bytes: usize) -> u64 {
        self.0
            .values
            .saturating_mul(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// Checks a value that has so many bytes as JSON.
    pub fn check(&self, value: &Value, bytes: usize) -> Checked {
        if self.work(bytes) > CHECK_WORK_MAX {
            return Checked::TooLarge;
        }
        let Some(validator) = self.compiled() else {
            return Checked::NoSchema;
        };
        if validator.is_valid(value) {
            return Checked::Fits;
        }
        let faults = validator.iter_errors(value).take(FAULTS_MAX).map(|error| Fault {
            path: crate::text::told(&error.instance_path().to_string(), TOLD_BYTES_MAX),
            message: crate::text::told(&error.masked().to_string(), TOLD_BYTES_MAX),
        });
        Checked::Faulty(faults.collect())
    }

    fn compiled(&self) -> Option<&Validator> {
        self.0.compiled.get_or_init(|| self.compile()).as_ref()
    }

    fn compile(&self) -> Option<Validator> {
        let patterns = PatternOptions::regex()
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(PATTERN_BYTES_MAX);
        jsonschema::options()
            .with_pattern_options(patterns)
            .with_retriever(Nowhere)
            .should_validate_formats(false)
            .build(&self.0.value)
            .ok()
    }
}

/// Nothing is fetched for a schema.
struct Nowhere;

impl jsonschema::Retrieve for Nowhere {
    fn retrieve(
        &self,
        _uri: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(Box::new(SchemaError::Reference))
    }
}

/// By the document.
impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.0.value == other.0.value
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.0.value).finish()
    }
}
